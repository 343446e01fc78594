package retrieve

import (
	"context"
	"errors"
	"fmt"

	"sluice/gpu"
	"sluice/index"
)

// errEmbedding marks a stage that could not run for lack of the query's vectors.
var errEmbedding = errors.New("the query could not be embedded")

func (q *query) dense(ctx context.Context) ([]index.Hit, error) {
	if err := q.embed(ctx); err != nil && q.given.vector == nil {
		return nil, err
	}
	defer q.trace.Add("dense", q.trace.Now())
	return q.at.reader.Dense(ctx, q.allowed, q.given.vector, q.plan.DenseDepth)
}

// embed has the model make the vectors that the plan needs and the request did
// not bring.
func (q *query) embed(ctx context.Context) error {
	tokens := q.plan.Codes != "" && q.given.tokens == nil
	if q.given.vector != nil && !tokens {
		return nil
	}
	embedded, err := q.engine.embedder.Embed(ctx, gpu.Request{
		Texts: []string{q.request.Query}, Prompt: q.engine.embedder.Info().Prompts.Query(), TokenVectors: tokens,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errEmbedding, err)
	}
	if q.given.vector == nil {
		q.given.vector = embedded[0].Vector
	}
	if tokens {
		q.given.tokens, q.special = embedded[0].TokenVectors, embedded[0].Special
	}
	return nil
}
