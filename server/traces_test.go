package server

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/server/config"
	"sluice/server/traces"
	"sluice/server/traces/tracestest"
)

// Of what anybody may ask there are no traces, whatever is asked for.
func TestOpenRoutesHaveNoTraces(t *testing.T) {
	r := tracestest.New(t)
	exporter, err := traces.Open(t.Context(), config.Traces{Endpoint: r.URL, SamplePercent: 100, TrustParent: true}, "v", slog.Default())
	require.NoError(t, err)
	d := start(t, func(s *setup) { s.traces = exporter })
	const wanted = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	require.Equal(t, 200, d.send("GET", "/openapi.json", "", "traceparent", wanted).status)
	require.Equal(t, 401, d.send("GET", "/v1/collections/c", "", "traceparent", wanted).status)
	require.Equal(t, 404, d.send("GET", "/v1/collections/c", "", "Authorization", bearer("alice")).status)
	require.NoError(t, d.stop())
	require.NoError(t, exporter.Close(t.Context()))
	require.Len(t, r.Spans(), 1)
	require.Equal(t, "GET /v1/collections/{collection}", r.Spans()[0].Name)
}
