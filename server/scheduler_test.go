package server

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"sluice/gpu"
)

func TestSchedulerMetrics(t *testing.T) {
	registry, log := prometheus.NewRegistry(), &bytes.Buffer{}
	h := SchedulerHooks(registry, slog.New(slog.NewTextHandler(log, nil)))
	h.Queue("m", gpu.Bulk, 300)
	h.Wait("m", gpu.Interactive, 3*time.Millisecond)
	h.Batch("m", gpu.Bulk, 7, 200, 20*time.Millisecond)
	h.Health("m", 0, nil)
	h.Health("m", 1, errors.New("gone"))
	h.Failure("m", 1, errors.New("boom"))
	require.Equal(t, map[string]float64{
		"sluice_queue_tokens m bulk": 300, "sluice_queue_wait_seconds m interactive": .003,
		"sluice_batch_texts m bulk": 7, "sluice_batch_tokens m bulk": 200, "sluice_batch_duration_seconds m bulk": .02,
		"sluice_device_up 0 m": 1, "sluice_device_up 1 m": 0,
		"sluice_device_failures_total 0 m": 0, "sluice_device_failures_total 1 m": 1,
	}, gathered(t, registry))
	require.Contains(t, log.String(), "gone")
	require.Contains(t, log.String(), "boom")
}

// gathered is every metric's value, a histogram's sum, by name and labels.
func gathered(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			values[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetHistogram().GetSampleSum()
		}
	}
	return values
}

// Retry-After is the time in which the queue drains, in whole seconds.
func TestRetryAfterIsTheDrainTime(t *testing.T) {
	d := start(t)
	for drain, want := range map[time.Duration]string{0: "1", 300 * time.Millisecond: "1", 12100 * time.Millisecond: "13"} {
		d.fake.onEmbed = func([]string) error { return fmt.Errorf("embedding: %w", &gpu.OverloadedError{Drain: drain}) }
		a := d.send("POST", "/v1/embeddings", `{"input":"a","model":"tiny"}`, "Authorization", bearer("alice"))
		require.Equal(t, 429, a.status)
		require.Equal(t, want, a.header.Get("Retry-After"))
	}
}
