package server

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

func TestCacheMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	RegisterCache(registry, "principals", func() (hits, misses uint64) { return 30, 10 })
	families, err := registry.Gather()
	require.NoError(t, err)
	require.Len(t, families, 1)
	require.Equal(t, "sluice_cache_lookups_total", families[0].GetName())
	for i, want := range []float64{30, 10} { // by label: hit, miss
		require.Equal(t, want, families[0].GetMetric()[i].GetCounter().GetValue())
	}
}
