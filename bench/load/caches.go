package load

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

const (
	cacheMetric = "sluice_cache_lookups_total"
	maxMetrics  = 16 << 20
)

// Lookups is how often what a cache was asked for was there.
type Lookups struct{ Hits, Misses float64 }

// CachesOf reads the lookups of all caches of a daemon, by name, from its
// administrators' listener (host:port).
func CachesOf(ctx context.Context, address string) (map[string]Lookups, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(io.LimitReader(response.Body, maxMetrics))
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	caches := map[string]Lookups{}
	for _, m := range families[cacheMetric].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		c := caches[labels["cache"]]
		if labels["result"] == "hit" {
			c.Hits = m.GetCounter().GetValue()
		} else {
			c.Misses = m.GetCounter().GetValue()
		}
		caches[labels["cache"]] = c
	}
	return caches, nil
}
