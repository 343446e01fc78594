package server

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/gpu/cuda"
)

// gpus collects what GPUs say of themselves, each time it is asked.
type gpus struct {
	ask                       func(context.Context) []cuda.Telemetry
	memory, free, up, started *prometheus.Desc
}

// askTime is the patience with a GPU that is to say how it is.
const askTime = time.Second

// RegisterGPUs registers metrics of GPUs.
func RegisterGPUs(registry *prometheus.Registry, ask func(context.Context) []cuda.Telemetry) {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{"gpu", "name"}, nil)
	}
	registry.MustRegister(&gpus{
		ask:     ask,
		memory:  desc("sluice_gpu_memory_bytes", "Memory of a GPU."),
		free:    desc("sluice_gpu_memory_free_bytes", "What of it is free; absent where the GPU does not answer."),
		up:      desc("sluice_gpu_up", "1: the GPU's worker answers."),
		started: desc("sluice_gpu_worker_starts_total", "Starts of the GPU's worker: more than one says that it failed."),
	})
}

func (g *gpus) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(g, to) }

func (g *gpus) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	for _, t := range g.ask(ctx) {
		labels := []string{strconv.Itoa(t.Device.Ordinal), t.Device.Name}
		up := 0.0
		if t.Up {
			up = 1
			to <- prometheus.MustNewConstMetric(g.free, prometheus.GaugeValue, float64(t.Device.Free), labels...)
		}
		to <- prometheus.MustNewConstMetric(g.up, prometheus.GaugeValue, up, labels...)
		to <- prometheus.MustNewConstMetric(g.memory, prometheus.GaugeValue, float64(t.Device.Memory), labels...)
		to <- prometheus.MustNewConstMetric(g.started, prometheus.CounterValue, float64(t.Starts), labels...)
	}
}
