package simd

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPostings: every kernel gives the bits of the portable one.
func TestPostings(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 30))
		for _, k := range supportedPostings() {
			testUnpack(t, k, rng, seed)
			testExpand(t, k, rng, seed)
			testScore(t, k, rng, seed)
			testReach(t, k, rng, seed)
			testBound(t, k, rng, seed)
		}
	}
}

func testUnpack(t *testing.T, k Postings, rng *rand.Rand, seed uint64) {
	width, n, add := uint(rng.IntN(33)), 1+rng.IntN(PostingBlock), rng.Uint32N(1<<20)
	packed := randomBytes(rng, (n*int(width)+7)/8+8)
	var got, want PostingNumbers
	k.Unpack(&got, packed, width, n, add)
	unpackGo(&want, packed, width, n, add)
	require.Equal(t, want[:n], got[:n], "seed %d, width %d, n %d", seed, width, n)
}

func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func testExpand(t *testing.T, k Postings, rng *rand.Rand, seed uint64) {
	words := randomBytes(rng, 8*rng.IntN(33))
	for range rng.IntN(5) { // sparser
		for i := range words {
			words[i] &= byte(rng.Uint32())
		}
	}
	first := rng.Uint32N(1 << 20)
	var got, want PostingNumbers
	n := k.Expand(&got, words, first)
	require.Equal(t, expandGo(&want, words, first), n, "seed %d", seed)
	if n > 0 {
		require.Equal(t, want[:n], got[:n], "seed %d", seed)
	}
}

func testScore(t *testing.T, k Postings, rng *rand.Rand, seed uint64) {
	lo, lengths := rng.Uint32N(1<<20), make([]uint32, 1+rng.IntN(PostingWindow+100))
	for i := range lengths {
		lengths[i] = rng.Uint32N(1 << (1 + rng.Uint32N(20)))
	}
	var got, want PostingSums
	for i := range got {
		got[i] = rng.Uint32N(1 << 30)
	}
	want = got
	var slots, freqs []uint32
	for slot := lo - min(lo, 50); len(slots) < PostingBlock; slot += 1 + rng.Uint32N(80) {
		slots, freqs = append(slots, slot), append(freqs, 1+rng.Uint32N(1<<rng.Uint32N(20)))
	}
	s := Saturation{rng.Float64() * (1 << 31), 0.3, rng.Float64() / 50}
	n := 1 + rng.IntN(PostingBlock)
	k.Score(&got, lengths, slots[:n], freqs[:n], lo, s)
	scoreGo(&want, lengths, slots[:n], freqs[:n], lo, s)
	require.Equal(t, want, got, "seed %d", seed)
}

func testBound(t *testing.T, k Postings, rng *rand.Rand, seed uint64) {
	n := rng.IntN(20)
	peaks := randomBytes(rng, 4*PostingPeaks*n)
	for i := 0; i+1 < len(peaks); i += 4 {
		if rng.IntN(2) == 0 {
			peaks[i+1] = 0
		} else if rng.IntN(8) == 0 {
			peaks[i], peaks[i+1] = 0xFF, 0xFF
		}
	}
	got, want := make([]uint32, n), make([]uint32, n)
	s := Saturation{rng.Float64() * (1 << 31), 0.3, rng.Float64() / 50}
	k.Bound(got, peaks, s)
	boundGo(want, peaks, s)
	require.Equal(t, want, got, "seed %d", seed)
}

func testReach(t *testing.T, k Postings, rng *rand.Rand, seed uint64) {
	var sums PostingSums
	for i := range sums {
		sums[i] = rng.Uint32N(100) << 25
	}
	need := sums[rng.IntN(len(sums))]
	var got, want [PostingWindow / 64]uint64
	k.Reach(&got, &sums, need)
	reachGo(&want, &sums, need)
	require.Equal(t, want, got, "seed %d", seed)
}

func BenchmarkPostings(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	packed := randomBytes(rng, 1000)
	var slots, freqs PostingNumbers
	var sums PostingSums
	lengths := make([]uint32, PostingWindow)
	for i := range slots {
		slots[i], freqs[i] = uint32(i*31), 1+uint32(i%3)
	}
	var bits [PostingWindow / 64]uint64
	for i, k := range supportedPostings() {
		name := []string{"best/", "go/"}[min(i, 1)]
		b.Run(name+"unpack", func(b *testing.B) {
			for b.Loop() {
				k.Unpack(&freqs, packed, 11, PostingBlock, 0)
			}
		})
		b.Run(name+"score", func(b *testing.B) {
			for b.Loop() {
				k.Score(&sums, lengths, slots[:PostingBlock], freqs[:PostingBlock], 0, Saturation{1000, 0.3, 0.01})
			}
		})
		b.Run(name+"reach", func(b *testing.B) {
			for b.Loop() {
				k.Reach(&bits, &sums, 1<<30)
			}
		})
		b.Run(name+"expand", func(b *testing.B) {
			words := make([]byte, 256)
			for i := range words {
				words[i] = byte(1 << (i % 8) / (1 + i%2))
			}
			for b.Loop() {
				k.Expand(&slots, words[:128], 0)
			}
		})
	}
}
