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
	m := &manifest{epoch: 3, nextID: 9, dims: 4, analyzer: "english/2", model: "m"}
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

// FuzzPostings: any bytes decode inside the bounds or are refused.
func FuzzPostings(f *testing.F) {
	lengths := make([]uint32, 400)
	list := []posting{{0, 1}, {3, 2}, {300, 70000}}
	f.Add(appendList(nil, list, []byte{1, 0, 1, 2, 0, 9, 0}, lengths), uint32(3), uint32(0), uint32(400))
	dense := make([]posting, 200)
	for i := range dense {
		dense[i] = posting{uint32(i + i/3), uint32(1 + i%5)}
	}
	f.Add(appendList(nil, dense, nil, lengths), uint32(200), uint32(5), uint32(290))
	f.Fuzz(func(t *testing.T, data []byte, count, lo, hi uint32) {
		l := postingList{count % 1000, append(slices.Clone(data), make([]byte, slack)...)[:len(data)]}
		if l.count == 0 || lo >= hi || hi > 1<<20 {
			return
		}
		if err := l.check(); err != nil {
			require.ErrorIs(t, err, index.ErrRebuild)
			return
		}
		visible := slotSet{words: make([]uint64, (hi+63)/64)}
		setBits(visible.words, lo, hi)
		readAnything(t, l, lo, hi, &visible)
	})
}

// readAnything reads a list in every way there is.
func readAnything(t *testing.T, l postingList, lo, hi uint32, visible *slotSet) {
	c := cursor{list: l, opened: -1, decoded: -1}
	if _, _, err := c.seek(lo); err != nil {
		require.ErrorIs(t, err, index.ErrRebuild)
	}
	scoreAnything(t, l, lo/windowSlots*windowSlots)
	var b block
	var d decoded
	for i := range l.blocks() {
		if err := b.open(l, i); err != nil {
			require.ErrorIs(t, err, index.ErrRebuild)
			continue
		}
		if _, err := b.count(&d, visible); err != nil {
			require.ErrorIs(t, err, index.ErrRebuild)
		}
		if err := b.decode(&d); err != nil {
			require.ErrorIs(t, err, index.ErrRebuild)
			continue
		}
		require.Len(t, d.slots, b.n)
		from, to := d.between(lo, hi)
		require.True(t, 0 <= from && from <= to && to <= b.n)
		if places, err := l.places(i); err == nil {
			if one, err := place(places, b.n-1); err == nil {
				_, err = appendPlaces(nil, one)
				require.True(t, err == nil || errors.Is(err, index.ErrRebuild))
			}
		}
	}
}

// scoreAnything sums a list up, and looks up some slots in it.
func scoreAnything(t *testing.T, l postingList, lo uint32) {
	var m windowMemory
	lengths := make([]uint32, windowSlots)
	c := cursor{list: l, opened: -1, decoded: -1, term: newBM25(1, 10).term(1000)}
	for i := range m.still {
		m.still[i] = 0x8001 << (i % 40)
	}
	for _, look := range []func(*cursor, []uint32, uint32) error{m.sumUp, m.complete} {
		c.at = 0
		if err := look(&c, lengths, lo); err != nil {
			require.ErrorIs(t, err, index.ErrRebuild)
		}
	}
}
