package retrieve

import (
	"context"
	"errors"
	"fmt"

	"sluice/gpu"
	"sluice/index"
)

// errEmbedding marks a dense leg that could not run for lack of a query vector.
var errEmbedding = errors.New("the query could not be embedded")

func (q *query) dense(ctx context.Context) ([]index.Hit, error) {
	embedded, err := q.engine.embedder.Embed(ctx, gpu.Request{
		Texts: []string{q.request.Query}, Prompt: q.engine.embedder.Info().Prompts.Query(), TokenVectors: q.plan.Strategy == HybridLate,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errEmbedding, err)
	}
	q.embedded = embedded[0]
	return q.at.reader.Dense(ctx, q.allowed, q.embedded.Vector, q.plan.DenseDepth)
}
