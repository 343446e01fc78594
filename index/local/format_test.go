package local

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/filter"
	"sluice/index"
)

var rewrite = flag.Bool("rewrite", false, "write the golden index of the present format anew")

const golden = "testdata/format-2"

// writeGolden makes the index that lies in testdata.
func writeGolden(t *testing.T, dir string) {
	t.Helper()
	ix, err := Open(dir, testOptions(t, nil))
	require.NoError(t, err)
	for epoch, b := range []index.Batch{
		{Put: []index.Document{
			{Ordinal: 4, Rows: []index.Row{{Row: 10, Text: "alpha beta alpha", Vector: []float32{1, 0, 0, 0}}, {Row: 11, Text: "gamma", Vector: []float32{0, 1, 0, 0}}}},
			{Ordinal: 2, Rows: []index.Row{{Row: 12, Text: "beta", Vector: []float32{0, 0, 1, 0}}}},
			{Ordinal: 9},
		}},
		{Put: []index.Document{{Ordinal: 6, Rows: []index.Row{{Row: 13, Text: "alpha delta", Vector: []float32{0.6, 0, 0, 0.8}}}}}, Delete: []uint32{2}},
	} {
		b.Epoch = uint64(epoch + 1)
		require.NoError(t, ix.Apply(t.Context(), b))
		require.NoError(t, ix.Flush(t.Context()))
	}
	require.NoError(t, ix.Close())
}

// TestFormat: the same documents give the same bytes as when the format was
// fixed, and what was written then is read now. If this fails, the format has
// changed: give it a new number and describe it in docs/formats/index.md.
func TestFormat(t *testing.T) {
	if *rewrite {
		require.NoError(t, os.RemoveAll(golden))
		writeGolden(t, golden)
	}
	dir := filepath.Join(t.TempDir(), "index")
	writeGolden(t, dir)
	names, err := os.ReadDir(golden)
	require.NoError(t, err)
	require.Len(t, names, 3)
	for _, name := range names {
		want, err := os.ReadFile(filepath.Join(golden, name.Name()))
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(dir, name.Name()))
		require.NoError(t, err)
		require.Equal(t, want, got, name.Name())
	}
	report, err := Check(golden, nil)
	require.NoError(t, err)
	require.Equal(t, Report{Epoch: 2, Segments: 2, Documents: 2, Rows: 3}, report)

	ix, err := Open(golden, testOptions(t, nil))
	require.NoError(t, err)
	defer ix.Close() //nolint:errcheck
	r, err := ix.Reader()
	require.NoError(t, err)
	defer r.Close()
	hits, err := r.Dense(t.Context(), filter.SetOf(2, 4, 6, 9), []float32{1, 0, 0, 0}, 2)
	require.NoError(t, err)
	require.Equal(t, []index.Hit{{Row: 10, Ordinal: 4, Score: 1}, {Row: 13, Ordinal: 6, Score: 0.6}}, hits)
}

// TestOldFormat: what an earlier version wrote asks to be rebuilt, and is left as it is.
func TestOldFormat(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "index")
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/format-1")))
	_, err := Open(dir, testOptions(t, nil))
	require.ErrorIs(t, err, index.ErrRebuild)
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, names, 3)
	_, err = Check(dir, nil)
	require.ErrorIs(t, err, index.ErrRebuild)
}
