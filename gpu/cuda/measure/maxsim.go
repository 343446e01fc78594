//go:build nvidia

package measure

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"sluice/gpu/cuda"
	"sluice/kernels/ref"
	"sluice/kernels/simd"
)

const (
	maxSimDims    = 384
	queryTokens   = 16
	passageTokens = 128
	maxSimBound   = 1e-4 // sums have another order than on the CPU
)

// measureMaxSim is of late interaction by a worker, from and to the daemon's
// side of its socket, compared with the CPU.
func (r *run) measureMaxSim(s *cuda.Searcher) error {
	rng := rand.New(rand.NewPCG(8, 0))
	query := make([]float32, queryTokens*maxSimDims)
	randomize(rng, query)
	passages, scores := make([][]byte, r.sizes.Passages), make([]float32, r.sizes.Passages)
	for i := range passages {
		passages[i] = codeRows(rng, passageTokens)
	}
	score := func() error { return s.MaxSim(context.Background(), scores, query, maxSimDims, passages) }
	if err := r.latencies(fmt.Sprintf("worker.maxsim.%dx%d", len(passages), passageTokens), score); err != nil {
		return err
	}
	few := passages[:max(1, len(passages)/16)]
	err := r.latencies("worker.maxsim.few", func() error { return s.MaxSim(context.Background(), scores[:len(few)], query, maxSimDims, few) })
	if err != nil {
		return err
	}
	if err := r.evenMaxSim(query, passages, len(few)); err != nil {
		return err
	}
	for i, codes := range passages {
		if want := ref.MaxSim(query, maxSimDims, codes); !(math.Abs(float64(want-scores[i])) < maxSimBound) {
			return fmt.Errorf("passage %d scores %v on the CPU, and %v on a worker", i, want, scores[i])
		}
	}
	return nil
}

// codeRows are random signs, with factors as of vectors of length 1 at most.
func codeRows(rng *rand.Rand, tokens int) (codes []byte) {
	scale := float32(1 / math.Sqrt(maxSimDims))
	for range tokens {
		for range maxSimDims / 8 {
			codes = append(codes, byte(rng.Uint32()))
		}
		codes = binary.LittleEndian.AppendUint32(codes, math.Float32bits(rng.Float32()*scale))
	}
	return codes
}

// evenMaxSim is of how many passages a worker scores as fast as one core of the
// CPU; there is no such number where the CPU is faster at many.
func (r *run) evenMaxSim(query []float32, passages [][]byte, few int) error {
	kernels, q := simd.Best(), simd.SimQuery{}
	q.Reset(query, maxSimDims)
	took, err := r.median(func() (float64, error) {
		began := time.Now()
		for _, codes := range passages {
			kernels.MaxSim(&q, codes)
		}
		return time.Since(began).Seconds(), nil
	})
	each := took / float64(len(passages))
	r.figure("cpu.maxsim.passages_per_s", 1/each)
	atFew := r.figures["worker.maxsim.few.p50_ms"] / 1000
	atAll := r.figures[fmt.Sprintf("worker.maxsim.%dx%d.p50_ms", len(passages), passageTokens)] / 1000
	if further := (atAll - atFew) / float64(len(passages)-few); further < each {
		r.figure("even.maxsim.passages", max(0, atFew-further*float64(few))/(each-further))
	}
	return err
}
