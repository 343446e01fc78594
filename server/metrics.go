package server

import (
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"sluice/ingest"
)

type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
	rejected prometheus.Counter
	panics   prometheus.Counter
	handler  fasthttp.RequestHandler // writes the registry out
}

var durationBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

func newMetrics(registry *prometheus.Registry) *metrics {
	labels := []string{"route", "method", "code"}
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_http_requests_total", Help: "Requests answered."}, labels),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sluice_http_request_duration_seconds", Help: "Time from header to answer.",
			Buckets: durationBuckets}, labels),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sluice_http_requests_in_flight", Help: "Requests under way."}),
		rejected: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_http_requests_rejected_total", Help: "Requests answered with 429 for want of a slot."}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_http_panics_total", Help: "Panics caught in handlers."}),
		handler: fasthttpadaptor.NewFastHTTPHandler(promhttp.HandlerFor(registry, promhttp.HandlerOpts{})),
	}
	registry.MustRegister(m.requests, m.duration, m.inFlight, m.rejected, m.panics)
	return m
}

// RegisterProcess adds what the process takes, and which build it is.
func RegisterProcess(registry *prometheus.Registry, version string) {
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "sluice_build_info", Help: "1; the labels say which build it is.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	build.Set(1)
	registry.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

// RegisterPolicyFaults adds what the policies in force deny because of an error.
func RegisterPolicyFaults(registry *prometheus.Registry, faults func() (uint64, error)) {
	registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "sluice_policy_faults_total",
		Help: "Decisions denied because a policy or an attribute could not be evaluated, since the policies were put in force.",
	}, func() float64 {
		count, _ := faults()
		return float64(count)
	}))
}

// RegisterFeed adds how far the daemon has followed the store.
func RegisterFeed(registry *prometheus.Registry, applied func() uint64) {
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "sluice_feed_epoch",
		Help: "Epoch of the store that searches have reached. Daemons of one database differ by what they lag.",
	}, func() float64 { return float64(applied()) }))
}

// RegisterReindexes adds what reindex jobs do, over all collections.
func RegisterReindexes(registry *prometheus.Registry, totals func() ingest.Totals) {
	gauge := func(name, help string, value func(ingest.Totals) int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sluice_reindex_" + name, Help: help}, func() float64 { return float64(value(totals())) })
	}
	counter := func(name, help string, value func(ingest.Totals) int) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "sluice_reindex_" + name, Help: help}, func() float64 { return float64(value(totals())) })
	}
	registry.MustRegister(
		gauge("running", "Jobs under way.", func(t ingest.Totals) int { return t.Running }),
		gauge("documents_built", "Documents that the jobs under way have built.", func(t ingest.Totals) int { return t.Documents }),
		gauge("documents", "Documents that the jobs under way have to build.", func(t ingest.Totals) int { return t.Of }),
		counter("embedded_chunks_total", "Chunks embedded by jobs.", func(t ingest.Totals) int { return t.Embedded }),
		counter("reused_chunks_total", "Chunks whose embedding was there.", func(t ingest.Totals) int { return t.Reused }),
	)
}

// observe counts an answered request.
func (m *metrics) observe(pattern, method string, status int, took time.Duration) {
	labels := []string{pattern, methodLabel(method), strconv.Itoa(status)}
	m.requests.WithLabelValues(labels...).Inc()
	m.duration.WithLabelValues(labels...).Observe(took.Seconds())
	m.inFlight.Dec()
}

// methodLabel bounds the label's values: a method can be any word.
func methodLabel(method string) string {
	if slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}, method) {
		return method
	}
	return "other"
}

func (s *Server) getMetrics(q *request) error {
	s.metrics.handler(q.http)
	return nil
}
