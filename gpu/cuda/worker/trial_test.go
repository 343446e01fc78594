//go:build nvidia

package worker

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"

	"sluice/gpu/cuda/kernel"
	"sluice/gpu/cuda/wire"
	"sluice/gpu/golden"
	"sluice/model"
)

var tinyConfig = model.Config{Hidden: 16, Heads: 1, Intermediate: 24, Activation: model.GELU}

// held is a trial with a clock that says that every kernel takes as long as its
// place among all, and the lines that it tells.
func held(t *testing.T) (trial *trial, told *[]wire.Tried) {
	t.Helper()
	_, slot := opened(t)
	told = new([]wire.Tried)
	trial = newTrial(slot, func(line wire.Tried) error {
		*told = append(*told, line)
		return nil
	})
	all := trial.variants
	trial.seconds = func(v kernel.Variant, _ int, in cu.Stream, launches func() error) (float64, error) {
		at := slices.IndexFunc(all, func(other kernel.Variant) bool { return other.Name == v.Name })
		return burst * float64(1+at), errors.Join(launches(), in.Synchronize())
	}
	return trial, told
}

// timed are the lines with a time.
func timed(told []wire.Tried) (lines []wire.Tried) {
	for _, line := range told {
		if line.Seconds > 0 {
			lines = append(lines, line)
		}
	}
	return lines
}

// All kernels have the bits of the plainest for every product of a model, and each
// is timed for it, with no more launches than there are said to be.
func TestTrial(t *testing.T) {
	trial, told := held(t)
	launches, multiply := 0, trial.multiply
	trial.multiply = func(v kernel.Variant, in cu.Stream, y, x, residual cu.DevicePtr, d kernel.Dense, rows int) error {
		launches++
		require.NotZero(t, len(*told))
		require.Equal(t, v.Name, (*told)[len(*told)-1].Kernel, "who is started is told before")
		return multiply(v, in, y, x, residual, d, rows)
	}
	all, rows := len(trial.variants), []int{1, 9}
	require.NoError(t, trial.run(wire.Trial{Config: tinyConfig, Rows: rows}))
	products, err := productsOf(tinyConfig)
	require.NoError(t, err)
	require.Len(t, products, 4)
	lines := timed(*told)
	require.Len(t, lines, all*len(products)*len(rows))
	for i, line := range lines {
		require.Equal(t, products[i/all/len(rows)], line.Product)
		require.Equal(t, rows[i/all%len(rows)], line.Rows)
		require.Equal(t, float64(1+i%all), line.Seconds)
	}
	require.Equal(t, mostTried*len(lines), launches)
}

// Who multiplies wrongly is out from there on, and the others go on.
func TestTrialPutsOutWhoIsWrong(t *testing.T) {
	for what, wrong := range map[string]func(d *kernel.Dense, rows *int){
		"an activation": func(d *kernel.Dense, _ *int) { d.Activation++ },
		"a row":         func(_ *kernel.Dense, rows *int) { *rows-- },
	} {
		t.Run(what, func(t *testing.T) {
			trial, told := held(t)
			bad, multiply := trial.variants[1].Name, trial.multiply
			trial.multiply = func(v kernel.Variant, in cu.Stream, y, x, residual cu.DevicePtr, d kernel.Dense, rows int) error {
				if v.Name == bad && rows > 1 {
					wrong(&d, &rows)
				}
				return multiply(v, in, y, x, residual, d, rows)
			}
			require.NoError(t, trial.run(wire.Trial{Config: tinyConfig, Rows: []int{1, 9}}))
			var out []wire.Tried
			for i, line := range *told {
				if line.Why != "" {
					out = append(out, line)
					for _, later := range (*told)[i+1:] {
						require.NotEqual(t, bad, later.Kernel)
					}
				}
			}
			require.Len(t, out, 1)
			require.Equal(t, bad, out[0].Kernel)
			require.Equal(t, 9, out[0].Rows)
			require.Contains(t, out[0].Why, "it gives other bits than "+trial.variants[0].Name+" for 9 × 16 by 96")
		})
	}
}

// A trial without the plainest compares with the next; without any it fails.
func TestTrialWithout(t *testing.T) {
	trial, told := held(t)
	var names []string
	for _, v := range trial.variants {
		names = append(names, v.Name)
	}
	all := trial.variants
	require.NoError(t, trial.run(wire.Trial{Config: tinyConfig, Rows: []int{2}, Without: names[:1]}))
	require.Len(t, timed(*told), 4*(len(names)-1))
	for _, line := range *told {
		require.NotEqual(t, names[0], line.Kernel)
	}
	trial.variants = all
	require.ErrorIs(t, trial.run(wire.Trial{Config: tinyConfig, Rows: []int{2}, Without: names}), errNoneLeft)
	trial.variants = all
	trial.multiply = func(kernel.Variant, cu.Stream, cu.DevicePtr, cu.DevicePtr, cu.DevicePtr, kernel.Dense, int) error {
		return cu.InvalidValue
	}
	require.ErrorIs(t, trial.run(wire.Trial{Config: tinyConfig, Rows: []int{2}}), cu.InvalidValue)
	require.Equal(t, names[0], (*told)[len(*told)-1].Kernel)
}

// Shapes that no kernel can do are refused before one is started.
func TestTrialRefusals(t *testing.T) {
	for what, change := range map[string]func(c *model.Config){
		"multiples of 8":   func(c *model.Config) { c.Intermediate = 20 },
		"heads of 72":      func(c *model.Config) { c.Hidden = 72 },
		"activation \"x\"": func(c *model.Config) { c.Activation = "x" },
	} {
		c := tinyConfig
		change(&c)
		_, err := productsOf(c)
		require.ErrorIs(t, err, model.ErrUnsupported)
		require.ErrorContains(t, err, what)
	}
}

// Whatever is chosen for a model, its products are multiplied by that, and its
// vectors have the same bits.
func TestChosenKernelsServe(t *testing.T) {
	t.Chdir("..") // where golden.Dir is right
	d, slot := opened(t)
	var names []string
	for _, v := range d.kernels.Variants() {
		names = append(names, v.Name)
	}
	for _, name := range []string{"bert", "gte", "modernbert"} { // the last two have gates
		t.Run(name, func(t *testing.T) {
			cases := golden.Cases(t, golden.Source(name))[:2]
			plain := slot.answerTo(t, d.loaded(t, name, nil), wire.WantPooled|wire.WantTokens, cases...)
			loaded := d.loaded(t, name, nil)
			products, err := productsOf(loaded.config)
			require.NoError(t, err)
			random := rand.New(rand.NewPCG(3, uint64(len(name))))
			var kernels []wire.Tried
			for _, p := range products {
				for _, rows := range []int{2, 30} {
					kernels = append(kernels, wire.Tried{Kernel: names[random.IntN(len(names))], Product: p, Rows: rows})
				}
			}
			loaded = d.loaded(t, name, nil, kernels...)
			used := map[wire.Product]bool{}
			for _, l := range loaded.layers {
				c := loaded.config
				for _, of := range []struct {
					d    kernel.Dense
					a    model.Activation
					adds bool
				}{{l.qkv, model.Identity, false}, {l.out, model.Identity, true}, {l.up, upActivation(c), false}, {l.gate, c.Activation, true}, {l.down, model.Identity, true}} {
					if of.d.Out > 0 {
						require.Len(t, of.d.Kernels, 2)
						used[wire.Product{In: of.d.In, Out: of.d.Out, Activation: of.a, Adds: of.adds}] = true
					}
				}
			}
			require.Len(t, used, len(products), "no product is tried in vain")
			require.Equal(t, plain, slot.answerTo(t, loaded, wire.WantPooled|wire.WantTokens, cases...))
		})
	}
	_, err := d.Load(&model.Model{}, wire.Tried{Kernel: "gemm_9", Rows: 1})
	require.ErrorContains(t, err, `there is no "gemm_9"`)
}
