package server

import (
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/gpu"
)

// SchedulerHooks registers metrics of a gpu.Scheduler, and returns the hooks
// that fill them. Failures of devices are logged.
func SchedulerHooks(registry *prometheus.Registry, log *slog.Logger) gpu.Hooks {
	work, device := []string{"model", "priority"}, []string{"model", "device"}
	queue := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "sluice_queue_tokens", Help: "Tokens that wait for a device."}, work)
	wait := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "sluice_queue_wait_seconds", Help: "A text's time from its request to the start of its batch.",
		Buckets: durationBuckets}, work)
	texts := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "sluice_batch_texts", Help: "Texts of a batch.", Buckets: prometheus.ExponentialBuckets(1, 2, 12)}, work)
	tokens := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "sluice_batch_tokens", Help: "Tokens of a batch.", Buckets: prometheus.ExponentialBuckets(8, 2, 12)}, work)
	duration := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "sluice_batch_duration_seconds", Help: "Time that a device took for a batch.", Buckets: durationBuckets}, work)
	up := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "sluice_device_up", Help: "1: the device is in use; 0: it fails its probe."}, device)
	failures := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sluice_device_failures_total", Help: "Batches that a device failed."}, device)
	registry.MustRegister(queue, wait, texts, tokens, duration, up, failures)
	return gpu.Hooks{
		Queue: func(model string, p gpu.Priority, n int) {
			queue.WithLabelValues(model, p.String()).Set(float64(n))
		},
		Wait: func(model string, p gpu.Priority, waited time.Duration) {
			wait.WithLabelValues(model, p.String()).Observe(waited.Seconds())
		},
		Batch: func(model string, p gpu.Priority, n, total int, took time.Duration) {
			texts.WithLabelValues(model, p.String()).Observe(float64(n))
			tokens.WithLabelValues(model, p.String()).Observe(float64(total))
			duration.WithLabelValues(model, p.String()).Observe(took.Seconds())
		},
		Health: func(model string, i int, why error) {
			failures.WithLabelValues(model, strconv.Itoa(i)) // there from the start
			gauge := up.WithLabelValues(model, strconv.Itoa(i))
			if gauge.Set(1); why != nil {
				gauge.Set(0)
				log.Error("a device does not work and is not used", "model", model, "device", i, "error", why)
			}
		},
		Failure: func(model string, i int, why error) {
			failures.WithLabelValues(model, strconv.Itoa(i)).Inc()
			log.Error("a device failed a batch", "model", model, "device", i, "error", why)
		},
	}
}
