package simd

import (
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"sluice/kernels/ref"
)

// The narrow kernels' GELU over its whole range, and far beyond.
func TestFinishGELU(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		bias := make([]float32, panelColumns)
		for _, step := range []float32{1e-3, 1, 1e30} {
			for first := float32(-8000); first < 8000; first += 5 * panelColumns {
				x := fenced[float32](t, panelColumns)
				for i := range x {
					x[i] = (first + float32(i)) * step
				}
				want, got := append([]float32(nil), x...), fenced[uint16](t, panelColumns)
				ref.GELU(want)
				s.narrow.finish[fromBF16][gelu][toBF16](&finishArgs{acc: unsafe.Pointer(&x[0]), ldAcc: panelBytes,
					out: unsafe.Pointer(&got[0]), ldOut: panelBytes, rows: 1, bias: &bias[0]})
				for i, v := range want {
					near := 6e-5 + 3e-6*math.Abs(float64(x[i])) + math.Abs(float64(v))/256
					require.InDelta(t, v, ref.FromBF16(got[i]), near, "gelu(%v)", x[i])
				}
			}
		}
	})
}
