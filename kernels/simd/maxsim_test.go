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

// randomCodes is code rows of random signs, with factors around 1/√dims. What
// the padding holds is random too: it must not count.
func randomCodes(seed uint64, tokens, dims int) []byte {
	r := rand.New(rand.NewPCG(seed, 2))
	stride := ref.CodeBytes(dims)
	codes := make([]byte, tokens*stride)
	for i := range codes {
		codes[i] = byte(r.Uint32())
	}
	for t := range tokens {
		factor := float32((0.5 + r.Float64()) / math.Sqrt(float64(dims)))
		binary.LittleEndian.PutUint32(codes[(t+1)*stride-4:], math.Float32bits(factor))
	}
	return codes
}

func query(vectors []float32, dims int) *SimQuery {
	var q SimQuery
	q.Reset(vectors, dims)
	return &q
}

func TestMaxSimIsTheOracles(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		var reused SimQuery
		rapid.Check(t, func(rt *rapid.T) {
			dims := rapid.IntRange(1, 400).Draw(rt, "dims")
			queryTokens := rapid.IntRange(0, 40).Draw(rt, "query tokens")
			tokens := rapid.IntRange(0, 20).Draw(rt, "tokens")
			seed := rapid.Uint64().Draw(rt, "seed")
			vectors := normals(seed, queryTokens*dims)
			codes := randomCodes(seed, tokens, dims)
			reused.Reset(vectors, dims)
			got := s.MaxSim(&reused, codes)
			require.InDelta(rt, ref.MaxSim(vectors, dims, codes), got, 1e-6*float64(dims))
			require.Equal(rt, math.Float32bits(portable().MaxSim(query(vectors, dims), codes)), math.Float32bits(got),
				"every set gives the same bits")
		})
	})
}

// The order of a passage's tokens does not matter, and a token more never makes it worse.
func TestMaxSimIsOfASet(t *testing.T) {
	const dims, tokens = 48, 9
	everySet(t, func(t *testing.T, s *Set) {
		q := query(normals(1, 5*dims), dims)
		codes := randomCodes(1, tokens, dims)
		rows := slices.Collect(slices.Chunk(codes, ref.CodeBytes(dims)))
		last := float32(-1)
		for n := range tokens {
			score := s.MaxSim(q, slices.Concat(rows[:n]...))
			require.GreaterOrEqual(t, score, last)
			last = score
		}
		slices.Reverse(rows)
		require.Equal(t, s.MaxSim(q, codes), s.MaxSim(q, slices.Concat(rows...)))
		require.Greater(t, last, float32(-1))
	})
}

func TestMaxSimDoesNotAllocate(t *testing.T) {
	const dims = 384
	vectors, codes := normals(1, 20*dims), randomCodes(1, 10, dims)
	everySet(t, func(t *testing.T, s *Set) {
		q := query(vectors, dims)
		require.Zero(t, testing.AllocsPerRun(10, func() {
			q.Reset(vectors, dims)
			s.MaxSim(q, codes)
		}))
	})
}

// Thirty passages of 230 tokens with a query of twelve.
func BenchmarkMaxSim(b *testing.B) {
	const dims, candidates = 384, 30
	vectors := normals(1, 12*dims)
	var passages [][]byte
	for i := range candidates {
		passages = append(passages, randomCodes(uint64(i), 230, dims))
	}
	for _, s := range Supported() {
		b.Run(fmt.Sprintf("%s/%d", s.Level, candidates), func(b *testing.B) {
			var q SimQuery
			for b.Loop() {
				q.Reset(vectors, dims)
				for _, codes := range passages {
					s.MaxSim(&q, codes)
				}
			}
		})
	}
	b.Run("prepare", func(b *testing.B) {
		var q SimQuery
		for b.Loop() {
			q.Reset(vectors, dims)
		}
	})
}
