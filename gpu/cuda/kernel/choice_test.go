//go:build nvidia

package kernel

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"
)

// The pick counts whose rows are the nearest in proportion.
func TestChoose(t *testing.T) {
	b := open(t)
	all := b.Variants()
	plain, last := all[0].Name, all[len(all)-1].Name
	c, err := b.Choose([]Pick{{16, last}, {64, plain}, {1024, last}})
	require.NoError(t, err)
	for rows, want := range map[int]string{1: last, 16: last, 32: last, 33: plain, 64: plain, 256: plain, 257: last, 1 << 20: last} {
		require.Equal(t, want, b.Set.product(c, rows).Name, rows)
	}
	require.Equal(t, b.products[0].Name, b.Set.product(nil, fewRows-1).Name)
	require.Equal(t, b.products[1].Name, b.Set.product(nil, fewRows).Name)
	_, err = b.Choose([]Pick{{16, "gemm_f32"}})
	require.ErrorContains(t, err, `there is no "gemm_f32" for this device`)
}

func TestSeconds(t *testing.T) {
	b := open(t)
	x := room(b, 1<<10)
	seconds, err := Seconds(cu.NoStream, func() error { return cu.MemsetD8Async(x, 0, 1<<10, cu.NoStream) })
	require.NoError(t, err)
	require.False(t, math.IsNaN(seconds) || seconds < 0)
	_, err = Seconds(cu.NoStream, func() error { return cu.OutOfMemory })
	require.ErrorIs(t, err, cu.OutOfMemory)
}
