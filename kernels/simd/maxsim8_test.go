package simd

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/kernels/ref"
)

// randomCodes8 is code rows of random bytes and scales. What the padding holds
// is random too: it must not count. Nothing lies behind the last row.
func randomCodes8(seed uint64, tokens, dims int) []byte {
	r := rand.New(rand.NewPCG(seed, 3))
	stride := ref.Code8Bytes(dims)
	codes := make([]byte, tokens*stride)
	for i := range codes {
		codes[i] = byte(r.Uint32())
	}
	for t := range tokens {
		scale := float32((0.5 + r.Float64()) / 127 / math.Sqrt(float64(dims)))
		binary.LittleEndian.PutUint32(codes[(t+1)*stride-4:], math.Float32bits(scale))
	}
	return codes
}

func quantised(vectors []float32, dims int) (q []int8, scales []float32) {
	q = make([]int8, len(vectors))
	for at := 0; at < len(vectors); at += dims {
		scales = append(scales, ref.QuantizeWeights(q[at:at+dims], vectors[at:at+dims]))
	}
	return q, scales
}

func TestMaxSim8IsTheOracles(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		var scratch Scratch
		rapid.Check(t, func(rt *rapid.T) {
			dims := rapid.IntRange(1, 200).Draw(rt, "dims")
			queryTokens := rapid.IntRange(0, 70).Draw(rt, "query tokens")
			tokens := rapid.IntRange(0, 110).Draw(rt, "tokens")
			seed := rapid.Uint64().Draw(rt, "seed")
			vectors := normals(seed, queryTokens*dims)
			codes := fenced[byte](t, tokens*ref.Code8Bytes(dims))
			copy(codes, randomCodes8(seed, tokens, dims))
			query := NewSimQuery8(vectors, dims)
			got := s.MaxSim8(query, codes, &scratch)
			q, scales := quantised(vectors, dims)
			require.InDelta(rt, ref.MaxSim8(q, scales, dims, codes), got, 1e-4)
			require.Equal(rt, math.Float32bits(portable().MaxSim8(query, codes, new(Scratch))), math.Float32bits(got),
				"every set gives the same bits")
		})
	})
}

// The order of a passage's tokens does not matter, and a token more never makes it worse.
func TestMaxSim8IsOfASet(t *testing.T) {
	const dims, tokens = 48, 60
	everySet(t, func(t *testing.T, s *Set) {
		var scratch Scratch
		q := NewSimQuery8(normals(1, 5*dims), dims)
		codes := randomCodes8(1, tokens, dims)
		rows := slices.Collect(slices.Chunk(codes, ref.Code8Bytes(dims)))
		last := float32(-1)
		for n := range tokens {
			score := s.MaxSim8(q, slices.Concat(rows[:n]...), &scratch)
			require.GreaterOrEqual(t, score, last)
			last = score
		}
		slices.Reverse(rows)
		require.Equal(t, s.MaxSim8(q, codes, &scratch), s.MaxSim8(q, slices.Concat(rows...), &scratch))
		require.Greater(t, last, float32(-1))
	})
}

func TestMaxSim8DoesNotAllocate(t *testing.T) {
	const dims = 128
	codes := randomCodes8(1, 100, dims)
	everySet(t, func(t *testing.T, s *Set) {
		var scratch Scratch
		q := NewSimQuery8(normals(1, 40*dims), dims)
		require.Zero(t, testing.AllocsPerRun(10, func() { s.MaxSim8(q, codes, &scratch) }))
	})
}

// Thirty passages of 230 tokens with a query of twelve.
func BenchmarkMaxSim8(b *testing.B) {
	const dims, candidates = 384, 30
	vectors := normals(1, 12*dims)
	var passages [][]byte
	for i := range candidates {
		passages = append(passages, randomCodes8(uint64(i), 230, dims))
	}
	for _, s := range Supported() {
		b.Run(fmt.Sprintf("%s/%d", s.Level, candidates), func(b *testing.B) {
			var scratch Scratch
			for b.Loop() {
				q := NewSimQuery8(vectors, dims)
				for _, codes := range passages {
					s.MaxSim8(q, codes, &scratch)
				}
			}
		})
	}
}
