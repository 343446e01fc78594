//go:build nvidia

package measure

import (
	"math/rand/v2"
	"slices"

	"gorgonia.org/cu"

	"sluice/gpu/cuda/kernel"
	"sluice/gpu/cuda/worker"
)

// measureGaps is of one query's pass on the device: alone, when kernels begin as
// the host launches them, and with all launches in the stream behind other work,
// when they begin one after the other. The second lacks what a CUDA graph, or any
// other way to launch faster, could save at most.
func (r *run) measureGaps(s Shape, m *worker.Model) error {
	slot, err := r.device.NewSlot()
	if err != nil {
		return err
	}
	query := s.texts(rand.New(rand.NewPCG(3, 0)), 16)
	alone, err := r.median(func() (float64, error) { return slot.Seconds(m, query, nil) })
	if err != nil {
		return err
	}
	var scratch memory
	defer scratch.free()
	before, err := r.filler(&scratch, 3*alone)
	if err != nil {
		return err
	}
	queued, err := r.median(func() (float64, error) { return slot.Seconds(m, query, before) })
	if err != nil {
		return err
	}
	r.figure(s.Name+".query.device_ms", 1000*alone)
	r.figure(s.Name+".query.queued_ms", 1000*queued)
	r.figure(s.Name+".query.launch_gap_share", 1-queued/alone)
	return slot.Close()
}

// shortest is less than any launch takes.
const shortest = 1e-6

// filler keeps the device busy for so many seconds at least. It is products that
// need little memory, so that the weights stay in the device's cache.
func (r *run) filler(m *memory, seconds float64) (func(in cu.Stream) error, error) {
	n := min(1024, r.sizes.Tokens)
	p, err := m.several(4*n*n, 4*n*n, 4*n*n, 4*n)
	if err != nil {
		return nil, err
	}
	d := kernel.Dense{Weight: p[0], Bias: p[3], In: n, Out: n}
	multiply := func(in cu.Stream) error { return r.kernels.MultiplyF32(in, p[2], p[1], 0, d, n) }
	took, err := r.median(func() (float64, error) {
		return kernel.Seconds(cu.NoStream, func() error { return multiply(cu.NoStream) })
	})
	return func(in cu.Stream) (err error) {
		for done := 0.0; done <= seconds && err == nil; done += max(took, shortest) {
			err = multiply(in)
		}
		return err
	}, err
}

// median is of the seconds that do says, again and again.
func (r *run) median(do func() (float64, error)) (float64, error) {
	var took []float64
	for i := range warmUps + r.sizes.Repeats {
		seconds, err := do()
		if err != nil {
			return 0, err
		}
		if i >= warmUps {
			took = append(took, seconds)
		}
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}
