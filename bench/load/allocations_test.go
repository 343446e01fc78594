package load

import (
	"net/http"
	"net/http/httptest"
	_ "net/http/pprof"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCaches(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/metrics", r.URL.Path)
		_, _ = w.Write([]byte(`# TYPE other counter
other 3
# TYPE sluice_cache_lookups_total counter
sluice_cache_lookups_total{cache="a",result="hit"} 30
sluice_cache_lookups_total{cache="a",result="miss"} 10
sluice_cache_lookups_total{cache="b",result="hit"} 1
`))
	}))
	defer s.Close()
	caches, err := CachesOf(t.Context(), s.Listener.Addr().String())
	require.NoError(t, err)
	require.Equal(t, map[string]Lookups{"a": {30, 10}, "b": {Hits: 1}}, caches)
}

func TestAllocations(t *testing.T) {
	s := httptest.NewServer(http.DefaultServeMux)
	defer s.Close()
	address := s.Listener.Addr().String()
	before, err := AllocationsOf(t.Context(), address)
	require.NoError(t, err)
	var kept [][]byte
	for range 1000 {
		kept = append(kept, make([]byte, 10_000))
	}
	after, err := AllocationsOf(t.Context(), address)
	require.NoError(t, err)
	require.Greater(t, after.Less(before).Objects, uint64(len(kept)))
	require.Greater(t, after.Less(before).Bytes, uint64(10_000_000))

	silent := httptest.NewServer(http.NotFoundHandler())
	defer silent.Close()
	_, err = AllocationsOf(t.Context(), silent.Listener.Addr().String())
	require.ErrorContains(t, err, "does not tell them")
}
