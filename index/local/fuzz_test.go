package local

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"sluice/index"
	"sluice/index/conformance"
)

// FuzzManifest: any bytes, with a right checksum or not, decode or are refused.
func FuzzManifest(f *testing.F) {
	m := &manifest{epoch: 3, nextID: 9, dims: 4, analyzer: "english/1", model: "m"}
	m.segments = []segmentEntry{{id: 7, size: 100, sum: 5, deleted: roaring.BitmapOf(1, 2, 70000)}}
	seed, err := m.encode()
	require.NoError(f, err)
	f.Add(seed)
	f.Add([]byte(manifestMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 4 {
			body := b[:len(b)-4]
			b = binary.LittleEndian.AppendUint32(slices.Clone(body), crc32.Checksum(body, castagnoli))
		}
		m, err := decodeManifest(b)
		if err != nil {
			require.True(t, errors.Is(err, index.ErrRebuild) || errors.Is(err, index.ErrNewerFormat))
			return
		}
		again, err := m.encode()
		require.NoError(t, err)
		_, err = decodeManifest(again)
		require.NoError(t, err)
	})
}

// FuzzSegment: damaged bytes are refused, never a panic.
func FuzzSegment(f *testing.F) {
	c := conformance.NewCorpus(1, testDims)
	seg, err := buildSegment(f.Context(), []index.Document{c.Document(1), c.Document(2), c.Document(3)}, testDims, english(f))
	require.NoError(f, err)
	f.Add(seg.data)
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := openSegment(b); err != nil {
			require.True(t, errors.Is(err, index.ErrRebuild) || errors.Is(err, index.ErrNewerFormat))
		}
	})
}

// FuzzPostings: any bytes decode inside the spans or are refused.
func FuzzPostings(f *testing.F) {
	f.Add(appendPostings(nil, []posting{{0, 1}, {3, 2}, {300, 70000}}), uint32(0), uint32(400))
	f.Add([]byte{255, 255, 255, 255, 1, 0, 0}, uint32(0), uint32(10))
	f.Fuzz(func(t *testing.T, data []byte, lo, hi uint32) {
		list, err := postingList{data: data}.within([]span{{lo, hi}}, nil)
		if err != nil {
			require.ErrorIs(t, err, index.ErrRebuild)
		}
		for i, p := range list {
			require.True(t, p.slot >= lo && p.slot < hi && p.freq > 0)
			require.True(t, i == 0 || p.slot > list[i-1].slot)
		}
	})
}
