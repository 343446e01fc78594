package local

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/index"
	"sluice/index/conformance"
)

// FuzzManifest: any bytes, with a right checksum or not, decode or are refused.
func FuzzManifest(f *testing.F) {
	m := &manifest{epoch: 3, nextID: 9, dims: 4, analyzer: "english/1", model: "m"}
	m.segments = []segmentEntry{{id: 7, size: 100, sum: 5, deleted: part{}.deleted}}
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

// TestPostings compares random lists and spans with a plain filter.
func TestPostings(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 5))
		var list, want []posting
		for slot := range uint32(3000) {
			if rng.IntN(1+int(seed)%40) == 0 {
				list = append(list, posting{slot, rng.Uint32N(300) + 1})
			}
		}
		var spans []span
		for at := uint32(0); at < 3000; at += rng.Uint32N(400) {
			s := span{at, at + 1 + rng.Uint32N(200)}
			spans, at = append(spans, s), s.hi
		}
		for _, p := range list {
			if slices.ContainsFunc(spans, func(s span) bool { return s.lo <= p.slot && p.slot < s.hi }) {
				want = append(want, p)
			}
		}
		got, err := postingList{data: appendPostings(nil, list)}.within(spans, nil)
		require.NoError(t, err)
		require.Equal(t, want, got, "seed %d", seed)
	}
}

// TestGallop compares with a plain search.
func TestGallop(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 6))
	for range 5000 {
		n := rng.IntN(70)
		from, target := rng.IntN(n+1), rng.IntN(80)
		want := min(max(from, target), n)
		require.Equal(t, want, gallop(from, n, func(i int) bool { return i >= target }), "from %d, n %d, target %d", from, n, target)
	}
}

// TestTopK compares with sorting, ties included.
func TestTopK(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	for range 500 {
		best := topK{k: 1 + rng.IntN(20)}
		var all []index.Hit
		for range rng.IntN(60) {
			h := index.Hit{Row: rng.Uint32(), Score: float32(rng.IntN(5))}
			all = append(all, h)
			if best.beats(h.Score) && best.admits(h.Score, h.Row) {
				best.add(h)
			}
		}
		slices.SortFunc(all, compareHits)
		require.Equal(t, all[:min(best.k, len(all))], best.sorted())
	}
}
