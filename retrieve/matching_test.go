package retrieve

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/index/late"
	"sluice/kernels/ref"
	"sluice/store"
)

// A large pool's scores are the same with a matcher and without, whatever goes
// wrong with that: passages of which some have no codes, in several portions.
func TestMatchers(t *testing.T) {
	const dims, pool = 32, 700
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	normals := func(n int) []float32 {
		x := make([]float32, n*dims)
		for i := range x {
			x[i] = float32(random.NormFloat64())
		}
		return x
	}
	coder := late.NewCoder(late.Kind{Dimensions: dims, Bits: 1})
	codes := make([][]byte, pool)
	for i := range codes {
		if codes[i] = coder.Encode(normals(i%3), make([]bool, i%3)); i%50 == 7 {
			codes[i] = []byte("no codes")
		}
	}
	codes[9] = coder.Encode(normals(matchedBytes/8+1), make([]bool, matchedBytes/8+1)) // of 8 bytes a token: more than a portion
	tokens := normals(5)
	asked := 0
	score := func(ctx context.Context, scores, query []float32, dims int, passages [][]byte) error {
		asked++
		for i, rows := range passages {
			scores[i] = ref.MaxSim(query, dims, rows)
		}
		return nil
	}
	run := func(matcher Matcher, pool int) *matching {
		q := &query{engine: &Engine{matcher: matcher}, coder: coder, given: given{tokens: tokens}, special: []bool{false, false, true, false, false}}
		m := q.matching(pool)
		for i := range pool {
			m.add(t.Context(), i, codes[i])
		}
		m.flush(t.Context())
		return m
	}
	want := run(nil, pool)
	for what, matcher := range map[string]Matcher{
		"sound": score,
		"fails": func(context.Context, []float32, []float32, int, [][]byte) error { return errors.New("it hangs") },
		"not a number": func(_ context.Context, scores, _ []float32, _ int, _ [][]byte) error {
			for i := range scores {
				scores[i] = float32(math.NaN())
			}
			return nil
		},
	} {
		got := run(matcher, pool)
		require.Equal(t, want.known, got.known, what)
		require.InDeltaSlice(t, want.scores, got.scores, 1e-4, "%s, seed %d", what, seed)
	}
	require.Equal(t, 2, asked)
	run(score, leastMatched-1)
	require.Equal(t, 2, asked, "a small pool is scored at once")
}

// For a caller who has left nothing is scored any more, and what was is no ranking.
func TestMatchingForNobody(t *testing.T) {
	const dims = 32
	coder := late.NewCoder(late.Kind{Dimensions: dims, Bits: 1})
	ones := make([]float32, dims)
	for i := range ones {
		ones[i] = 1
	}
	ctx, leave := context.WithCancel(t.Context())
	asked := false
	q := &query{coder: coder, given: given{tokens: ones}, at: &snapshot{}, engine: &Engine{
		store:   lastCodes{codes: coder.Encode(ones, []bool{false}), leave: leave},
		matcher: func(context.Context, []float32, []float32, int, [][]byte) error { asked = true; return nil },
	}}
	pool := make([]candidate, leastMatched)
	for i := range pool {
		pool[i].coded = true
	}
	_, err := q.matched(ctx, pool)
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, asked)
}

// lastCodes gives the same codes for every row, and then its reader leaves.
type lastCodes struct {
	store.Store
	codes []byte
	leave func()
}

func (l lastCodes) Codes(_ context.Context, _ uint32, rows []uint32, visit func(int, []byte)) error {
	defer l.leave()
	for i := range rows {
		visit(i, l.codes)
	}
	return nil
}
