package simd

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/kernels/ref"
)

func TestTable(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		for _, width := range []int{1, 16, 48, 384} {
			values := normals(7, 5*width)
			narrow, integers := PackTable(BF16, values, width), PackTable(Int8, values, width)
			require.Equal(t, 5*(2*width+4), narrow.Bytes())
			require.Equal(t, 5*(width+4), integers.Bytes())
			for row := range 5 {
				got, from := fenced[float32](t, width), values[row*width:][:width]
				s.Lookup(got, narrow, row)
				for i, v := range from {
					require.Equal(t, ref.FromBF16(ref.BF16(v)), got[i])
				}
				s.Lookup(got, integers, row)
				var largest float64
				for _, v := range from {
					largest = max(largest, math.Abs(float64(v)))
				}
				for i, v := range from {
					require.InDelta(t, v, got[i], largest/253, "row %d, column %d of %d", row, i, width)
				}
			}
		}
	})
}
