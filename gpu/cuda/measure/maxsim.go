//go:build nvidia

package measure

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"sluice/gpu/cuda"
	"sluice/kernels/ref"
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
