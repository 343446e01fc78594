package late

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/kernels/ref"
)

// What is decoded lies near what was encoded.
func TestDecode(t *testing.T) {
	const seed = 11
	random := rand.New(rand.NewPCG(seed, 0))
	for _, kind := range []Kind{{16, 8}, {96, 8}, {100, 8}, {128, 1}, {384, 1}} {
		coder, least := NewCoder(kind), 0.9995
		if kind.Bits == 1 {
			least = 0.7 // √(2/π) on average
		}
		vectors := make([]float32, 5*kind.Dimensions)
		for i := range vectors {
			vectors[i] = float32(random.NormFloat64())
		}
		decoded, ok := coder.Decode(coder.Encode(vectors, make([]bool, 5)))
		require.True(t, ok)
		require.Len(t, decoded, len(vectors))
		for at := 0; at < len(vectors); at += kind.Dimensions {
			v, d := vectors[at:at+kind.Dimensions], decoded[at:at+kind.Dimensions]
			ref.Normalize(v)
			var cosine float64
			for i := range v {
				cosine += float64(v[i]) * float64(d[i])
			}
			require.Greater(t, cosine, least, "%v, seed %d", kind, seed)
		}
	}
	_, ok := NewCoder(Kind{16, 8}).Decode([]byte{1, 2, 3})
	require.False(t, ok)
}
