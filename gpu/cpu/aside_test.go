package cpu

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/gpu/golden"
	"sluice/kernels/simd"
	"sluice/model"
)

// What runs aside is, bit for bit, what the device itself says, while it runs too.
func TestAside(t *testing.T) {
	m, err := model.Load(filepath.Join(golden.Dir, "bert"))
	require.NoError(t, err)
	cases := golden.Cases(t, "bert")
	for _, p := range []Precision{F32, BF16, Int8} {
		d := openNarrow(t, m, 2, p, simd.Best())
		beside := d.aside()
		want := runAll(t, d, cases...)
		var running sync.WaitGroup
		for range 20 {
			running.Go(func() { require.Equal(t, want, runAll(t, d, cases...)) })
			require.Equal(t, want, runAll(t, beside.Device, cases...), p)
		}
		running.Wait()
		require.NoError(t, beside.Close())
	}
}
