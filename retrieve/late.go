package retrieve

import (
	"context"
	"errors"
	"fmt"

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

// matched scores the pool, in its order, without those that are gone meanwhile.
func (q *query) matched(ctx context.Context, pool []candidate) ([]candidate, error) {
	m := q.matching(len(pool))
	err := q.eachCodes(ctx, pool, m.known, func(i int, codes []byte) { m.add(ctx, i, codes) })
	m.flush(ctx)
	if err == nil {
		err = ctx.Err() // what waited was not scored
	}
	scored := make([]candidate, 0, len(pool))
	for i, c := range pool {
		if m.known[i] {
			c.score = float64(m.scores[i])
			scored = append(scored, c)
		}
	}
	return scored, err
}

// eachCodes visits the token codes of the pool: what the store has of them, then
// of those that are not known by that, made now. Candidates that are gone
// meanwhile have none.
func (q *query) eachCodes(ctx context.Context, pool []candidate, known []bool, visit func(i int, codes []byte)) error {
	var stored []int
	var rows []uint32
	for i, c := range pool {
		if c.coded {
			stored, rows = append(stored, i), append(rows, c.row)
		}
	}
	err := q.engine.store.Codes(ctx, q.at.ID, rows, func(at int, codes []byte) { visit(stored[at], codes) })
	if err != nil {
		return fmt.Errorf("reading token codes: %w", err)
	}
	if q.at.Settings.Brings() {
		return nil // there is nothing to make others of
	}
	return q.encode(ctx, pool, known, visit)
}

// encode visits the codes of what is not known, from the cache or from the model.
func (q *query) encode(ctx context.Context, pool []candidate, known []bool, visit func(i int, codes []byte)) error {
	var missing []int
	var texts []string
	for i, c := range pool {
		if known[i] {
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
		if codes := q.engine.codes.get(q.plan, text); codes != nil {
			visit(i, codes)
			continue
		}
		missing, texts = append(missing, i), append(texts, text)
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
	for at, e := range embedded {
		codes := q.coder.Encode(e.TokenVectors, e.Special)
		q.engine.codes.put(q.plan, texts[at], codes)
		visit(missing[at], codes)
	}
	return nil
}
