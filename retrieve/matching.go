package retrieve

import (
	"context"

	"sluice/index/late"
)

// Matcher sets scores to those of passages, code rows of 1 bit each, by late
// interaction with a query, rows of dims numbers, as a GPU does it. An error, or
// a score that is no number: the Engine scores them itself.
type Matcher func(ctx context.Context, scores, query []float32, dims int, passages [][]byte) error

// MatchWith has large pools of passages scored by a Matcher. It is to be called
// before the first search.
func (e *Engine) MatchWith(m Matcher) { e.matcher = m }

const (
	leastMatched = 512     // passages of a pool; to be measured on a GPU
	matchedBytes = 4 << 20 // of codes at once
)

// matching scores a pool by late interaction.
type matching struct {
	scorer *late.Query
	coder  *late.Coder
	scores []float32
	known  []bool

	matcher Matcher   // nil: what comes is scored at once
	query   []float32 // for it
	waiting []int     // places in the pool
	codes   [][]byte
	bytes   int
}

func (q *query) matching(pool int) *matching {
	tokens, special := q.given.tokens, q.special
	if special == nil {
		special = make([]bool, len(tokens)/q.coder.Dimensions)
	}
	m := &matching{scorer: q.coder.Query(tokens, special), coder: q.coder, scores: make([]float32, pool), known: make([]bool, pool)}
	if q.engine.matcher != nil && pool >= leastMatched && q.coder.Bits == 1 && q.coder.Dimensions%32 == 0 {
		m.matcher, m.query = q.engine.matcher, q.coder.Rotated(tokens, special)
	}
	return m
}

// add scores the codes of a passage, now or with others.
func (m *matching) add(ctx context.Context, i int, codes []byte) {
	if m.matcher == nil {
		m.scores[i], m.known[i] = m.scorer.Score(codes)
		return
	}
	if m.known[i] = m.coder.Reads(codes); !m.known[i] {
		return
	}
	m.waiting, m.codes, m.bytes = append(m.waiting, i), append(m.codes, append([]byte(nil), codes...)), m.bytes+len(codes)
	if m.bytes >= matchedBytes {
		m.flush(ctx)
	}
}

// flush scores what waits, unless nobody waits for it any more.
func (m *matching) flush(ctx context.Context) {
	if len(m.waiting) == 0 || ctx.Err() != nil {
		return
	}
	scores, passages := make([]float32, len(m.codes)), make([][]byte, len(m.codes))
	for at, codes := range m.codes {
		passages[at], _ = m.coder.Rows(codes)
	}
	err := m.matcher(ctx, scores, m.query, m.coder.Dimensions, passages)
	for at, i := range m.waiting {
		if m.scores[i] = scores[at]; err != nil || scores[at] != scores[at] {
			m.scores[i], _ = m.scorer.Score(m.codes[at])
		}
	}
	m.waiting, m.codes, m.bytes = m.waiting[:0], m.codes[:0], 0
}
