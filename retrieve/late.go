package retrieve

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"sluice/gpu"
)

// errEncoding marks token codes that could not be made.
var errEncoding = errors.New("passages could not be encoded")

// late ranks the pool by late interaction, the mean over the query's tokens of
// the best match among the passage's, and a share of the lexical leg: meaning
// alone does not tell a rare word of the query from one that all passages have.
// Both are standardised. Where the query or a passage cannot be encoded the order
// stays, and the answer says so.
func (q *query) late(ctx context.Context, lexical leg, pool []candidate) ([]candidate, error) {
	if q.embedded.TokenVectors == nil {
		return q.withoutLate(pool), nil
	}
	codes, err := q.codes(ctx, pool)
	if errors.Is(err, errEncoding) && ctx.Err() == nil {
		return q.withoutLate(pool), nil
	}
	if err != nil {
		return nil, err
	}
	scorer := q.engine.coder.Query(q.embedded.TokenVectors, q.embedded.Special)
	scored := pool[:0]
	for _, c := range pool {
		if score, ok := scorer.Score(codes[c.row]); ok {
			c.score = float64(score)
			scored = append(scored, c)
		}
	}
	for i, c := range ranked(scored) {
		c.legs["late"] = LegRank{Rank: i + 1, Score: c.score}
	}
	lexical.weight = q.plan.LateLexicalWeight
	return standardScore([]leg{{name: "late", weight: 1}, lexical}, scored), nil
}

func (q *query) withoutLate(pool []candidate) []candidate {
	q.response.Degraded = append(q.response.Degraded, "late_unavailable")
	return pool
}

// codes returns the token codes of the pool: what the store has of them, and the
// others made now. Candidates that are gone meanwhile have none.
func (q *query) codes(ctx context.Context, pool []candidate) (map[uint32][]byte, error) {
	var stored []uint32
	for _, c := range pool {
		if c.coded {
			stored = append(stored, c.row)
		}
	}
	codes, err := q.engine.store.Codes(ctx, q.at.ID, stored)
	if err != nil {
		return nil, fmt.Errorf("reading token codes: %w", err)
	}
	maps.DeleteFunc(codes, func(_ uint32, c []byte) bool { return !q.engine.coder.Reads(c) })
	return codes, q.encode(ctx, pool, codes)
}

// encode adds the codes that are not there, from the cache or from the model.
func (q *query) encode(ctx context.Context, pool []candidate, codes map[uint32][]byte) error {
	var rows []uint32
	var texts []string
	for _, c := range pool {
		if codes[c.row] != nil {
			continue
		}
		content, err := q.shown(ctx, c)
		if err != nil {
			return err
		}
		if content == nil {
			continue
		}
		text := passage(content, c.row)
		if codes[c.row] = q.engine.codes.get(q.plan.Model, text); codes[c.row] == nil {
			rows, texts = append(rows, c.row), append(texts, text)
		}
	}
	if len(texts) == 0 {
		return nil
	}
	embedded, err := q.engine.embedder.Embed(ctx, gpu.Request{
		Texts: texts, Prompt: q.engine.embedder.Info().Prompts.Document(), TokenVectors: true,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errEncoding, err)
	}
	for i, e := range embedded {
		codes[rows[i]] = q.engine.coder.Encode(e.TokenVectors, e.Special)
		q.engine.codes.put(q.plan.Model, texts[i], codes[rows[i]])
	}
	return nil
}
