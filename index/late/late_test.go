package late

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/kernels/ref"
)

func normals(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func TestTheRotationIsOrthogonal(t *testing.T) {
	for _, dims := range []int{1, 2, 3, 7, 64, 100, 384} {
		m := rotation(dims)
		for i := range dims {
			for j := range dims {
				var dot float64
				for k := range dims {
					dot += float64(m[i*dims+k]) * float64(m[j*dims+k])
				}
				want := 0.0
				if i == j {
					want = 1
				}
				require.InDelta(t, want, dot, 1e-5, "%d dimensions, rows %d and %d", dims, i, j)
			}
		}
	}
}

// The rotation is part of the format: another one makes stored codes worthless.
func TestTheRotationIsThatOfTheFormat(t *testing.T) {
	for dims, want := range map[int]string{
		64:  "7e469860a0d45ac9",
		384: "6fde53733376e146",
	} {
		h := sha256.New()
		require.NoError(t, binary.Write(h, binary.LittleEndian, rotation(dims)))
		require.Equal(t, want, hex.EncodeToString(h.Sum(nil)[:8]), "%d dimensions", dims)
	}
}

// A vector of one large element, as outlier channels make them, is spread over all.
func TestTheRotationSpreads(t *testing.T) {
	for _, dims := range []int{100, 384} {
		m := rotation(dims)
		for i := range dims {
			var most float64
			for _, x := range m[i*dims : (i+1)*dims] {
				most = max(most, math.Abs(float64(x)))
			}
			require.Less(t, most, 6/math.Sqrt(float64(dims)), "element %d of %d", i, dims)
		}
	}
}

// The estimate of an inner product has the error that the source states, and
// no bias.
func TestTheEstimateIsUnbiased(t *testing.T) {
	const dims, tokens = 384, 2000
	c := NewCoder(Kind{dims, 1})
	q, passages := normals(1, dims), normals(2, dims*tokens)
	ref.Normalize(q)
	passages[3*dims] = 90 // an outlier
	query := c.Query(q, make([]bool, 1))
	var sum, squares float64
	for i := range tokens {
		v := passages[i*dims : (i+1)*dims]
		for d := range v { // so that products are not all about zero
			v[d] += q[d] * float32(i%30)
		}
		got, ok := query.Score(c.Encode(v, make([]bool, 1)))
		require.True(t, ok)
		ref.Normalize(v)
		off := float64(got) - float64(ref.Dot(q, v))
		sum, squares = sum+off, squares+off*off
	}
	sigma := math.Sqrt((math.Pi/2 - 1) / (dims - 1))
	require.Less(t, math.Abs(sum/tokens), 4*sigma/math.Sqrt(tokens))
	require.Less(t, math.Sqrt(squares/tokens), 1.1*sigma)
}

// A score is what the oracle makes of the rotated query and the codes, whatever
// lengths the vectors have and wherever special tokens stand.
func TestScoreIsTheOracles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dims := rapid.SampledFrom([]int{3, 16, 40, 64}).Draw(t, "dims")
		special := rapid.SliceOfN(rapid.Bool(), 1, 20).Draw(t, "special")
		seed := rapid.Uint64().Draw(t, "seed")
		c := NewCoder(Kind{dims, rapid.SampledFrom([]int{1, 8}).Draw(t, "bits")})
		q, p := normals(seed, 5*dims), normals(seed+1, len(special)*dims)
		codes := c.Encode(p, special)
		got, ok := c.Query(q, make([]bool, 5)).Score(codes)
		require.True(t, ok)

		rotated := c.rotate(new(scratch), q, make([]bool, 5))
		if c.Bits == 1 {
			require.InDelta(t, ref.MaxSim(rotated, dims, codes[headerBytes:]), got, 1e-4)
		} else {
			require.InDelta(t, maxSim8(rotated, dims, codes[headerBytes:]), got, 1e-5)
		}

		var kept []float32 // without special tokens, and longer
		for i, skip := range special {
			for _, x := range p[i*dims : (i+1)*dims] {
				if !skip {
					kept = append(kept, 4*x)
				}
			}
		}
		require.Equal(t, codes, c.Encode(kept, make([]bool, len(kept)/dims)))
	})
}

func maxSim8(rotated []float32, dims int, rows []byte) float32 {
	q, scales := make([]int8, len(rotated)), []float32(nil)
	for at := 0; at < len(rotated); at += dims {
		scales = append(scales, ref.QuantizeWeights(q[at:at+dims], rotated[at:at+dims]))
	}
	return ref.MaxSim8(q, scales, dims, rows)
}

// Eight bits are near the vectors themselves.
func TestEightBitsAreNearlyExact(t *testing.T) {
	for _, dims := range []int{2, 31, 128, 384} {
		c := NewCoder(Kind{dims, 8})
		const tokens, queries = 40, 6
		p, q := normals(3, tokens*dims), normals(4, queries*dims)
		p[5], q[5] = 60, -50 // outliers
		got, ok := c.Query(q, make([]bool, queries)).Score(c.Encode(p, make([]bool, tokens)))
		require.True(t, ok)
		var want float64
		for i := range queries {
			best := -1.0
			for j := range tokens {
				a, b := q[i*dims:(i+1)*dims], p[j*dims:(j+1)*dims]
				ref.Normalize(a)
				ref.Normalize(b)
				best = max(best, float64(ref.Dot(a, b)))
			}
			want += best / queries
		}
		require.InDelta(t, want, got, 0.01, "%d dimensions", dims)
	}
}

func TestCodersAreMadeOnce(t *testing.T) {
	coders := NewCoders()
	one := coders.Of(Kind{48, 1})
	require.Same(t, one, coders.Of(Kind{48, 1}))
	require.NotSame(t, one, coders.Of(Kind{48, 8}))
	require.Equal(t, Kind{40, 1}, coders.Of(Kind{40, 1}).Kind)
}

var raceEnabled bool // set by race_test.go

func TestScoringDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes pools forget")
	}
	for _, bits := range []int{1, 8} {
		c := NewCoder(Kind{128, bits})
		q := c.Query(normals(1, 20*128), make([]bool, 20))
		codes := c.Encode(normals(2, 90*128), make([]bool, 90))
		require.Zero(t, testing.AllocsPerRun(50, func() { q.Score(codes) }), "%d bits", bits)
	}
}

// Whatever bytes are taken for codes: no panic, and a score that is one only of
// what Reads says is codes.
func FuzzScore(f *testing.F) {
	var queries []*Query
	for _, bits := range []int{1, 8} {
		c := NewCoder(Kind{20, bits})
		f.Add(c.Encode(normals(2, 3*20), make([]bool, 3)))
		queries = append(queries, c.Query(normals(1, 2*20), make([]bool, 2)))
	}
	f.Fuzz(func(t *testing.T, codes []byte) {
		for _, q := range queries {
			score, ok := q.Score(codes)
			require.Equal(t, q.coder.Reads(codes), ok)
			again, _ := q.Score(codes)
			require.Equal(t, math.Float32bits(score), math.Float32bits(again))
		}
	})
}

func TestWhatIsNoCode(t *testing.T) {
	for _, bits := range []int{1, 8} {
		checkWhatIsNoCode(t, NewCoder(Kind{64, bits}))
	}
}

func checkWhatIsNoCode(t *testing.T, c *Coder) {
	q := c.Query(normals(1, 64), make([]bool, 1))
	good := c.Encode(normals(2, 3*64), make([]bool, 3))
	require.True(t, c.Reads(good))
	other := append([]byte(nil), good...)
	other[0] ^= 3 // the other format that there is
	for what, codes := range map[string][]byte{
		"nothing": nil, "a short header": good[:headerBytes-1], "half a row": good[:len(good)-1],
		"another format": other, "other dimensions": NewCoder(Kind{48, c.Bits}).Encode(normals(2, 48), make([]bool, 1)),
	} {
		_, ok := q.Score(codes)
		require.False(t, ok, what)
		require.False(t, c.Reads(codes), what)
	}
	none, ok := q.Score(good[:headerBytes])
	require.True(t, ok)
	require.EqualValues(t, -1, none, "a passage without tokens")
	zero, ok := q.Score(c.Encode(make([]float32, 64), make([]bool, 1)))
	require.True(t, ok)
	require.Zero(t, zero, "a token of length zero matches nothing")
}

func BenchmarkEncode(b *testing.B) {
	const tokens = 230
	c := NewCoder(Kind{384, 1})
	vectors, special := normals(1, tokens*384), make([]bool, tokens)
	b.SetBytes(tokens)
	for b.Loop() {
		c.Encode(vectors, special)
	}
}

func BenchmarkNewCoder(b *testing.B) {
	for b.Loop() {
		NewCoder(Kind{384, 1})
	}
}
