package server

import (
	"context"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"sluice/gpu/cuda"
	"sluice/gpu/cuda/wire"
)

func TestGPUMetrics(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	RegisterGPUs(registry, func(context.Context) []cuda.Telemetry {
		return []cuda.Telemetry{
			{Device: wire.Device{Ordinal: 0, Name: "a", Memory: 10, Free: 4}, Up: true, Starts: 1},
			{Device: wire.Device{Ordinal: 1, Name: "a", Memory: 10, Free: 9}, Starts: 3},
		}
	})
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP sluice_gpu_memory_free_bytes What of it is free; absent where the GPU does not answer.
# TYPE sluice_gpu_memory_free_bytes gauge
sluice_gpu_memory_free_bytes{gpu="0",name="a"} 4
# HELP sluice_gpu_up 1: the GPU's worker answers.
# TYPE sluice_gpu_up gauge
sluice_gpu_up{gpu="0",name="a"} 1
sluice_gpu_up{gpu="1",name="a"} 0
# HELP sluice_gpu_worker_starts_total Starts of the GPU's worker: more than one says that it failed.
# TYPE sluice_gpu_worker_starts_total counter
sluice_gpu_worker_starts_total{gpu="0",name="a"} 1
sluice_gpu_worker_starts_total{gpu="1",name="a"} 3
`), "sluice_gpu_memory_free_bytes", "sluice_gpu_up", "sluice_gpu_worker_starts_total"))
}
