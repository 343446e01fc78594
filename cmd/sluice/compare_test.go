package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/index"
	"sluice/index/local"
	"sluice/index/text"
	"sluice/retrieve"
	"sluice/store"
	"sluice/store/pebble"
)

// forged replaces the index of stocked's collection by one of the same epoch
// that the change made of what it is to hold.
func forged(t *testing.T, h *home, change func([]index.Document) []index.Document) {
	t.Helper()
	st, err := pebble.Open(storeDir(h.data()), pebble.Options{ReadOnly: true})
	require.NoError(t, err)
	defer st.Close()
	all, err := st.Collections(t.Context())
	require.NoError(t, err)
	c := all[0]
	var documents []index.Document
	dimensions := 0
	for record, err := range st.Scan(t.Context(), c.ID, 0) {
		require.NoError(t, err)
		content, err := st.Content(t.Context(), c.ID, record.Ordinal, true)
		require.NoError(t, err)
		documents, dimensions = append(documents, retrieve.Indexed(content)), content.Dimensions
	}
	epoch, err := st.Epoch(t.Context())
	require.NoError(t, err)
	dir := collectionDir(indexDir(h.data()), store.Collection{ID: c.ID})
	require.NoError(t, os.RemoveAll(dir))
	analyzer, err := text.New(c.Settings.Analyzer)
	require.NoError(t, err)
	ix, err := local.Open(dir, local.Options{Dimensions: dimensions, Analyzer: analyzer, Model: "forged"})
	require.NoError(t, err)
	require.NoError(t, ix.Apply(t.Context(), index.Batch{Epoch: epoch, Put: change(documents)}))
	require.NoError(t, ix.Flush(t.Context()))
	require.NoError(t, ix.Close())
}

// An index that is whole, but not of these documents, is found out row by row.
func TestDeepCheckFindsForgedIndexes(t *testing.T) {
	t.Parallel()
	h := stocked(t)
	require.Equal(t, "no faults\n", sluice(t, "check", "--deep", h.data()).out)
	for want, change := range map[string]func(d []index.Document) []index.Document{
		`document 3 "d3": it is not in the index`:                func(d []index.Document) []index.Document { return append(d[:3], d[4:]...) },
		`document 3 "d3": row \d+: the index has another vector`: func(d []index.Document) []index.Document { d[3].Rows[0].Vector[5] += .001; return d },
		`document 3 "d3": row \d+: its postings are not those of its text`: func(d []index.Document) []index.Document {
			d[3].Rows[0].Text = "Harbour 3 opens at 4 o'clock."
			return d
		},
		`document 77: it is in the index, and not in the store`: func(d []index.Document) []index.Document {
			row := d[3].Rows[0]
			row.Row = 7777
			return append(d, index.Document{Ordinal: 77, Rows: []index.Row{row}})
		},
	} {
		forged(t, h, change)
		h.check() // it is whole
		r := sluice(t, "check", "--deep", h.data())
		require.Equal(t, 1, r.code, want)
		require.Regexp(t, want, r.out)
		require.Contains(t, r.err, "1 fault;", "%s", r)
	}
	require.NoError(t, os.MkdirAll(indexDir(h.data())+"/c00000099", 0o700))
	require.Contains(t, sluice(t, "check", "--deep", h.data()).out, "is of no collection")
}

// Of a daemon that was killed the index is behind, which is no fault.
func TestDeepCheckAfterAKill(t *testing.T) {
	t.Parallel()
	h := stocked(t)
	d := h.serve()
	for i := range 10 {
		_, err := d.as("ann").Write(t.Context(), "docs", note(fmt.Sprint("d", 2*i), "Closed."))
		require.NoError(t, err)
	}
	require.NoError(t, d.as("ann").Delete(t.Context(), "docs", "d3"))
	d.kill()
	r := sluice(t, "check", "--deep", h.data())
	require.Equal(t, "no faults\n", r.out, "%s", r)
	require.NoError(t, os.RemoveAll(indexDir(h.data())))
	require.Equal(t, "no faults\n", sluice(t, "check", "--deep", h.data()).out)
}
