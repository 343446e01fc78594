package local

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"sluice/index/conformance"
)

// All that is written comes through, in no less than its time, until ctx ends.
func TestPacedWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		text := bytes.Repeat([]byte("0123456789"), 100)
		w := paced(t.Context(), &out, rate.NewLimiter(100, 50))
		began := time.Now()
		n, err := w.Write(text)
		require.NoError(t, err)
		require.Equal(t, len(text), n)
		require.Equal(t, text, out.Bytes())
		require.Equal(t, 9500*time.Millisecond, time.Since(began))

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, cancel)
		out.Reset()
		n, err = paced(ctx, &out, rate.NewLimiter(100, 50)).Write(text)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 250, n)
		require.Equal(t, 250, out.Len())
	})
}

// The limit counts what merges in the background write, and nothing else.
func TestMergesAreLimited(t *testing.T) {
	limit := rate.NewLimiter(0, 1<<30) // nothing comes back: what is missing was taken
	o := testOptions(t, vfs.NewMem())
	o.MergeLimit, o.codedRows, o.listedRows = limit, 8, 16
	ix, err := Open("index", o)
	require.NoError(t, err)
	defer func() { require.NoError(t, ix.Close()) }()
	full, c := limit.Tokens(), conformance.NewCorpus(1, testDims)
	for epoch := uint64(1); epoch <= mergeFanout; epoch++ {
		require.NoError(t, ix.Apply(t.Context(), c.Batch(epoch, testOrdinals)))
		require.NoError(t, ix.Flush(t.Context()))
	}
	require.Equal(t, full, limit.Tokens(), "seals are not limited")
	merged, err := ix.merge(t.Context(), pace{atRest: true, limit: limit})
	require.NoError(t, err)
	require.True(t, merged)
	id := ix.current.parts[len(ix.current.parts)-1].seg.id
	size := sizeOf(t, o.FS, segmentName(id)) + sizeOf(t, o.FS, codesName(id))
	require.InDelta(t, full-float64(size), limit.Tokens(), 0.5)
}

func sizeOf(t *testing.T, fs vfs.FS, name string) int64 {
	info, err := fs.Stat(fs.PathJoin("index", name))
	require.NoError(t, err)
	return info.Size()
}
