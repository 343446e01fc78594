package local

import (
	"io"
	"iter"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"sluice/index"
	"sluice/index/conformance"
	"sluice/index/local/ivf"
)

func inOrder(documents []index.Document) iter.Seq2[index.Document, error] {
	return func(yield func(index.Document, error) bool) {
		for _, d := range documents {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// compared is an index on disk and what it holds: several segments with deleted
// documents, vector codes and lists.
func compared(t *testing.T) (*vfs.MemFS, Options, []index.Document) {
	t.Helper()
	disk := vfs.NewMem()
	options := testOptions(t, disk)
	options.codedRows, options.listedRows, options.manualMerge = 8, 8, true
	ix, err := Open("index", options)
	require.NoError(t, err)
	corpus := conformance.NewCorpus(9, testDims)
	held := map[uint32]index.Document{}
	for round := range uint32(3) {
		b := index.Batch{Epoch: uint64(round) + 1}
		for ordinal := 10 * round; ordinal < 10*round+20; ordinal++ { // half of them again
			d := corpus.Document(ordinal)
			held[ordinal] = d
			b.Put = append(b.Put, d)
		}
		require.NoError(t, ix.Apply(t.Context(), b))
		require.NoError(t, ix.Flush(t.Context()))
	}
	require.NoError(t, ix.Close())
	var documents []index.Document
	for ordinal := range uint32(40) {
		documents = append(documents, held[ordinal])
	}
	return disk, options, documents
}

func faultsOf(t *testing.T, disk *vfs.MemFS, o Options, documents []index.Document, skip ...uint32) map[uint32][]string {
	t.Helper()
	faults := map[uint32][]string{}
	require.NoError(t, Compare(t.Context(), "index", disk, o.Analyzer, inOrder(documents), roaring.BitmapOf(skip...), func(ordinal uint32, fault string) {
		faults[ordinal] = append(faults[ordinal], fault)
	}))
	return faults
}

// Each kind of difference is found, named, and found alone.
func TestCompare(t *testing.T) {
	disk, options, documents := compared(t)
	require.Empty(t, faultsOf(t, disk, options, documents))
	at := slices.IndexFunc(documents, func(d index.Document) bool { return len(d.Rows) > 1 })
	for want, change := range map[string]func(d *index.Document){
		"the index has another vector":             func(d *index.Document) { d.Rows[1].Vector[0] += 1e-6 },
		"its postings are not those of its text":   func(d *index.Document) { d.Rows[1].Text += " zebra" },
		"in its place":                             func(d *index.Document) { d.Rows[1].Row += 1000 },
		"rows of it instead of":                    func(d *index.Document) { d.Rows = d.Rows[:1] },
		"it is not in the index":                   func(d *index.Document) { d.Ordinal = 1000 },
		"it is in the index, and not in the store": func(d *index.Document) { d.Rows = nil },
	} {
		changed := slices.Clone(documents)
		d := changed[at]
		d.Rows = slices.Clone(d.Rows)
		for i := range d.Rows {
			d.Rows[i].Vector = slices.Clone(d.Rows[i].Vector)
		}
		change(&d)
		changed[at] = d
		faults := faultsOf(t, disk, options, changed)
		require.Len(t, faults[d.Ordinal], 1, want)
		require.Contains(t, faults[d.Ordinal][0], want)
		delete(faults, d.Ordinal)
		delete(faults, documents[at].Ordinal) // the old ordinal of a moved one
		require.Empty(t, faults, want)
		require.Empty(t, faultsOf(t, disk, options, changed, d.Ordinal, documents[at].Ordinal), "pending")
	}
}

// Codes of other vectors are found, though they are whole.
func TestCompareCodes(t *testing.T) {
	disk, options, documents := compared(t)
	m, err := readManifest(disk, "index")
	require.NoError(t, err)
	space := ivf.NewSpace(testDims, ivf.DefaultRecall)
	p, err := openPart("index", options, space, m.segments[0])
	require.NoError(t, err)
	require.NotNil(t, p.seg.codes)
	other := make([]float32, testDims)
	vector := func(row int) []float32 {
		if row != 2 {
			return p.seg.vector(uint32(row))
		}
		for i, x := range p.seg.vector(2) {
			other[i] = -x
		}
		return other
	}
	built, err := space.Build(t.Context(), p.seg.rows(), vector, ivf.Options{Lists: 4, Threads: 1, Owner: p.seg.sum})
	require.NoError(t, err)
	require.NoError(t, writeFile(disk, "index", codesName(p.seg.id), func(w io.Writer) error {
		_, err := w.Write(built.Bytes())
		return err
	}))
	_, err = Check("index", disk)
	require.NoError(t, err, "the checksums are right")
	faults := faultsOf(t, disk, options, documents)
	require.Len(t, faults, 1)
	require.Contains(t, faults[p.seg.ordinalOf(2)][0], "its vector codes are not those of its vector")
}

// Link copies what was flushed, while the index goes on.
func TestLink(t *testing.T) {
	disk, options, documents := compared(t)
	ix, err := Open("index", options)
	require.NoError(t, err)
	require.NoError(t, ix.Apply(t.Context(), index.Batch{Epoch: 9, Delete: []uint32{0}}))
	require.NoError(t, Link("index", "copy", disk))
	require.NoError(t, ix.Flush(t.Context()))
	require.NoError(t, ix.Close())
	require.NoError(t, disk.RemoveAll("index"))
	report, err := Check("copy", disk)
	require.NoError(t, err)
	require.Equal(t, uint64(3), report.Epoch)
	require.NoError(t, disk.Rename("copy", "index"))
	require.Empty(t, faultsOf(t, disk, options, documents))
	require.ErrorIs(t, Link("nowhere", "copy", disk), index.ErrRebuild)
}
