//go:build nvidia

package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"

	"sluice/kernels/ref"
)

// codes makes code rows of random bits and factors.
func (b *bench) codes(rows, dims int) []byte {
	var codes []byte
	for range rows {
		row := make([]byte, ref.CodeBytes(dims))
		for i := range dims / 8 {
			row[i] = byte(b.rng.Uint32())
		}
		binary.LittleEndian.PutUint32(row[len(row)-4:], math.Float32bits(float32(b.rng.Float64()/math.Sqrt(float64(dims)))))
		codes = append(codes, row...)
	}
	return codes
}

func TestMaxSim(t *testing.T) {
	for _, dims := range []int{32, 96, 384} {
		for _, tokens := range []int{1, 7, 40} {
			t.Run(fmt.Sprint(dims, " ", tokens), func(t *testing.T) {
				b := open(t)
				query := make([]float32, tokens*dims)
				for i := range tokens {
					row := b.normals(dims, 1)
					ref.Normalize(row)
					copy(query[i*dims:], row)
				}
				offsets := []int32{0, 1, 1, 131, 140} // one without tokens
				codes := b.codes(140, dims)
				want := make([]float32, 4)
				for i := range want {
					want[i] = ref.MaxSim(query, dims, codes[int(offsets[i])*ref.CodeBytes(dims):int(offsets[i+1])*ref.CodeBytes(dims)])
				}
				require.Equal(t, float32(-1), want[1])
				scores := room(b, 16)
				require.NoError(t, b.MaxSim(cu.NoStream, scores, upload(b, query), tokens, dims, upload(b, codes), upload(b, offsets), 4))
				near(b, want, download[float32](b, scores, 4), 0, 2e-6)
			})
		}
	}
}

func TestMaxSimTooLarge(t *testing.T) {
	b := open(t)
	require.Error(t, b.MaxSim(cu.NoStream, 0, 0, 1000, 384, 0, 0, 1))
	require.Error(t, b.MaxSim(cu.NoStream, 0, 0, 1, 48, 0, 0, 1))
}
