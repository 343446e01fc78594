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
	c := NewCoder(dims)
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
		c := NewCoder(dims)
		q, p := normals(seed, 5*dims), normals(seed+1, len(special)*dims)
		codes := c.Encode(p, special)
		got, ok := c.Query(q, make([]bool, 5)).Score(codes)
		require.True(t, ok)

		rotated := c.rotate(new(scratch), q, make([]bool, 5))
		require.InDelta(t, ref.MaxSim(rotated, dims, codes[headerBytes:]), got, 1e-4)

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

func TestWhatIsNoCode(t *testing.T) {
	c := NewCoder(64)
	q := c.Query(normals(1, 64), make([]bool, 1))
	good := c.Encode(normals(2, 3*64), make([]bool, 3))
	require.True(t, c.Reads(good))
	other := append([]byte(nil), good...)
	other[0]++
	for what, codes := range map[string][]byte{
		"nothing": nil, "a short header": good[:headerBytes-1], "half a row": good[:len(good)-1],
		"another format": other, "other dimensions": NewCoder(48).Encode(normals(2, 48), make([]bool, 1)),
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
	c := NewCoder(384)
	vectors, special := normals(1, tokens*384), make([]bool, tokens)
	b.SetBytes(tokens)
	for b.Loop() {
		c.Encode(vectors, special)
	}
}

func BenchmarkNewCoder(b *testing.B) {
	for b.Loop() {
		NewCoder(384)
	}
}
