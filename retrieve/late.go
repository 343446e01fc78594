package retrieve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"sluice/gpu"
)

// errEncoding marks token codes that could not be made.
var errEncoding = errors.New("passages could not be encoded")

// late ranks the pool by late interaction, the mean over the query's tokens of
// the best match among the passage's, and in a hybrid plan a share of the lexical
// leg: meaning alone does not tell a rare word of the query from one that all
// passages have. Both are standardised. Where the query or a passage cannot be
// encoded the order stays, and the answer says so.
func (q *query) late(ctx context.Context, lexical leg, pool []candidate) ([]candidate, error) {
	if q.given.tokens == nil {
		return q.withoutLate(pool), nil
	}
	scored, err := q.matched(ctx, pool)
	if errors.Is(err, errEncoding) && ctx.Err() == nil {
		return q.withoutLate(pool), nil
	}
	if err != nil {
		return nil, err
	}
	for i, c := range ranked(scored) {
		if c.legs != nil {
			c.legs["late"] = LegRank{Rank: i + 1, Score: c.score}
		}
	}
	if q.plan.LateLexicalWeight == 0 {
		return scored, nil
	}
	lexical.weight = q.plan.LateLexicalWeight
	return standardScore([]leg{{name: "late", weight: 1}, lexical}, scored), nil
}

func (q *query) withoutLate(pool []candidate) []candidate {
	q.degraded("late_unavailable")
	return pool
}

// codesAtOnce is how many passages' token codes are held at a time.
const codesAtOnce = 64

// matched scores the pool, in its order, without those that are gone meanwhile.
func (q *query) matched(ctx context.Context, pool []candidate) ([]candidate, error) {
	tokens, special := q.given.tokens, q.special
	if special == nil {
		special = make([]bool, len(tokens)/q.coder.Dimensions)
	}
	scorer, scored := q.coder.Query(tokens, special), make([]candidate, 0, len(pool))
	for part := range slices.Chunk(pool, codesAtOnce) {
		codes, err := q.codes(ctx, part)
		if err != nil {
			return nil, err
		}
		for _, c := range part {
			if score, ok := scorer.Score(codes[c.row]); ok {
				c.score = float64(score)
				scored = append(scored, c)
			}
		}
	}
	return scored, nil
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
	maps.DeleteFunc(codes, func(_ uint32, c []byte) bool { return !q.coder.Reads(c) })
	if q.at.Settings.Brings() {
		return codes, nil // there is nothing to make others of
	}
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
		if codes[c.row] = q.engine.codes.get(q.plan, text); codes[c.row] == nil {
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
		codes[rows[i]] = q.coder.Encode(e.TokenVectors, e.Special)
		q.engine.codes.put(q.plan, texts[i], codes[rows[i]])
	}
	return nil
}
