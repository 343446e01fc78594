package load

import (
	"net/http"
	"net/http/httptest"
	_ "net/http/pprof"
	"testing"

	"github.com/stretchr/testify/require"
)

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
