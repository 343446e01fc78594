package bench

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFilter(t *testing.T) {
	var log strings.Builder
	file, err := Filter(t.Context(), FilterOptions{Documents: 2000, Classes: 200, Rounds: 2, Log: &log})
	require.NoError(t, err)
	require.NoError(t, file.Write(filepath.Join(t.TempDir(), "figures.json")))
	f := file.Figures
	for _, name := range []string{
		"resolve.cold_ms", "resolve.warm_us", "resolve.changed_us", "revocation_us", "recheck_us", "and_1_us", "and_10_us", "and_not_50_us",
		"bytes_per_document",
	} {
		require.Positive(t, f[name], name)
		require.Contains(t, log.String()+"bytes_per_document", name)
	}
	require.Len(t, file.Rounds["resolve.cold_ms"], 2)
	require.Greater(t, f["resolve.cold_ms"]*1000, f["resolve.warm_us"])
	// Half have no reader list, all of a level that is low enough, and of them
	// half are open to all departments; groups add some.
	require.InEpsilon(t, 500, f["visible"], .2)
	_, err = Filter(cancelled(t), FilterOptions{Documents: 10, Classes: 2})
	require.Error(t, err)
}
