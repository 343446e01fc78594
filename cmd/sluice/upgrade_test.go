package main

import (
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
)

// The data directories of earlier programs are opened, searched and written by
// this one, and nobody reads more than before. testdata/formats/make.sh made them.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	archives, err := filepath.Glob("testdata/formats/*.tar.gz")
	require.NoError(t, err)
	require.Len(t, archives, 2)
	for _, archive := range archives {
		t.Run(filepath.Base(archive), func(t *testing.T) {
			h := newHome(t, accessPeople, pretrained(t), settings{"precision": "f32"})
			require.NoError(t, exec.Command("tar", "-xzf", archive, "-C", h.dir).Run())
			d := h.serve()
			require.NotContains(t, d.err.text(), "level=ERROR")
			readable := map[string][]string{"ann": {"buoys", "tides"}, "bob": {"buoys", "pilots", "ropes"}, "root": {"buoys"}}
			for name, keys := range readable {
				for _, strategy := range []string{"sparse", "dense", "hybrid-late"} {
					response, err := d.as(name).Search(t.Context(), "docs", client.SearchRequest{Query: "the harbour", Strategy: strategy})
					require.NoError(t, err)
					require.Equal(t, len(keys), response.Counts.Visible, name)
					require.ElementsMatch(t, keys, slices.Collect(maps.Keys(keysOf(response))), "%s %s", name, strategy)
				}
			}
			response, err := d.as("bob").Search(t.Context(), "docs", client.SearchRequest{Query: "ropes on the wall", Strategy: "dense", K: 1})
			require.NoError(t, err)
			require.Equal(t, "New ropes lie on the harbour wall.", response.Results[0].Text)

			_, err = d.as("root").Write(t.Context(), "docs", note("ropes", "No ropes at the harbour.", "group:hr"))
			require.NoError(t, err)
			require.Equal(t, []string{"ropes"}, found(t, d.as("ann"), "docs", "ropes"))
			require.Empty(t, found(t, d.as("bob"), "docs", "ropes"))
			d.stop()
			h.check()
			h.serve().stop()
		})
	}
}
