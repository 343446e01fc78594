package local

import (
	"io"
	"math"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"sluice/index"
)

// forge writes an index of segments whose checksums are right, whatever they hold.
func forge(t *testing.T, deleted *roaring.Bitmap, segments ...func(*segmentWriter)) *vfs.MemFS {
	t.Helper()
	disk := vfs.NewMem()
	require.NoError(t, disk.MkdirAll("index", 0o750))
	m := &manifest{epoch: 1, nextID: uint64(len(segments)) + 1, dims: testDims, analyzer: english(t).Identity(), model: "m"}
	for i, write := range segments {
		id := uint64(i) + 1
		require.NoError(t, writeFile(disk, "index", segmentName(id), func(out io.Writer) error {
			w := newSegmentWriter(out, testDims)
			write(w)
			return w.finish()
		}))
		seg, err := openSegmentFile("index", testOptions(t, disk), id)
		require.NoError(t, err)
		m.segments = append(m.segments, segmentEntry{id, uint64(len(seg.data)), seg.sum, deleted})
	}
	require.NoError(t, writeManifest(disk, "index", m))
	return disk
}

// oneDocument writes a document of one row and its terms.
func oneDocument(ordinal, row, length uint32, vector []float32, terms ...string) func(*segmentWriter) {
	return func(w *segmentWriter) {
		w.row(row, length, vector)
		w.endDocument(ordinal)
		w.endRows()
		for _, term := range terms {
			w.term([]byte(term), []posting{{0, 1}}, []byte{1, 0})
		}
	}
}

// TestCheckCrossReferences: contradictions under right checksums are found.
func TestCheckCrossReferences(t *testing.T) {
	unit := []float32{1, 0, 0, 0}
	nan := []float32{0, float32(math.NaN()), 0, 0}
	good, other := oneDocument(7, 70, 2, unit, "a", "b"), oneDocument(8, 80, 1, unit, "a")
	_, err := Check("index", forge(t, nil, good, other))
	require.NoError(t, err)
	for want, disk := range map[string]*vfs.MemFS{
		"document 7 is live in another":       forge(t, nil, good, oneDocument(7, 90, 1, unit, "a")),
		"row 70 is live twice":                forge(t, nil, good, oneDocument(9, 70, 1, unit, "a")),
		"row 70 has 2 terms, its length is 3": forge(t, nil, oneDocument(7, 70, 3, unit, "a", "b")),
		`term "a" is out of order`:            forge(t, nil, oneDocument(7, 70, 2, unit, "b", "a")),
		"not finite":                          forge(t, nil, oneDocument(7, 70, 1, nan, "a")),
		"name documents it lacks":             forge(t, roaring.BitmapOf(5), good),
		"postings":                            forge(t, nil, func(w *segmentWriter) { good(w); w.term([]byte("c"), nil, nil) }),
		"document 6 is out of order": forge(t, nil, func(w *segmentWriter) {
			w.row(1, 0, unit)
			w.endDocument(7)
			w.row(2, 0, unit)
			w.endDocument(6)
			w.endRows()
		}),
	} {
		_, err := Check("index", disk)
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, index.ErrRebuild, want)
	}
}

func TestCheckWithoutIndex(t *testing.T) {
	_, err := Check("nowhere", vfs.NewMem())
	require.ErrorIs(t, err, index.ErrRebuild)
}

// TestIdleFlush: where nothing was applied there is nothing to write.
func TestIdleFlush(t *testing.T) {
	writes := 0
	count := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			writes++
		}
		return nil
	})
	ix, err := Open("index", testOptions(t, errorfs.Wrap(vfs.NewMem(), count)))
	require.NoError(t, err)
	require.NoError(t, ix.Apply(t.Context(), index.Batch{Epoch: 3}))
	require.NoError(t, ix.Flush(t.Context()))
	require.Equal(t, uint64(3), ix.Applied())
	before := writes
	require.NoError(t, ix.Flush(t.Context()))
	require.Equal(t, before, writes)
	require.NoError(t, ix.Close())
}
