package retrieve

import (
	"context"
	"errors"
	"fmt"

	"sluice/gpu"
)

var errNoReranker = errors.New("there is no reranker")

// crossEncode ranks the pool by what the cross-encoder makes of the query and
// each passage with its heading path. Equal scores stay in the order they were
// in. Where it fails, or is not done in time, the order stays too, and the
// answer says so.
func (q *query) crossEncode(ctx context.Context, pool []candidate) ([]candidate, error) {
	shown, passages, err := q.passages(ctx, pool)
	if err != nil || len(shown) == 0 {
		return shown, err
	}
	scores, err := q.scores(ctx, passages)
	if err != nil && ctx.Err() != nil {
		return nil, err // the search's own deadline
	}
	if err != nil {
		q.response.Degraded = append(q.response.Degraded, "rerank_unavailable")
		return shown, nil
	}
	ranked := make([]candidate, len(shown))
	for rank, i := range gpu.Order(scores) {
		ranked[rank] = shown[i]
		ranked[rank].score = float64(scores[i].Value)
		ranked[rank].legs["rerank"] = LegRank{Rank: rank + 1, Score: ranked[rank].score}
	}
	return ranked, nil
}

// passages returns the candidates that may still be shown, and their texts.
func (q *query) passages(ctx context.Context, pool []candidate) (shown []candidate, texts []string, err error) {
	for _, c := range pool {
		content, err := q.shown(ctx, c)
		if err != nil {
			return nil, nil, err
		}
		if content != nil {
			shown, texts = append(shown, c), append(texts, passage(content, c.row))
		}
	}
	return shown, texts, nil
}

func (q *query) scores(ctx context.Context, passages []string) ([]gpu.Score, error) {
	if q.engine.reranker == nil {
		return nil, errNoReranker
	}
	ctx, cancel := context.WithTimeout(ctx, q.engine.rerankTimeout)
	defer cancel()
	scores, err := q.engine.reranker.Score(ctx, gpu.ScoreRequest{Pairs: gpu.Pairs(q.request.Query, passages)})
	if err != nil {
		return nil, fmt.Errorf("reranking: %w", err)
	}
	return scores, nil
}
