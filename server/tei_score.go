package server

import (
	"github.com/valyala/fasthttp"

	"sluice/client"
	"sluice/gpu"
)

// The calls of text-embeddings-inference that score. A score is the logit's
// sigmoid, as its clients expect, or (raw_scores) the logit, whatever the
// model's own config prefers.

func (s *Server) teiRerank(q *request) error {
	var body client.RankRequest
	if err := q.readJSON(&body); err != nil {
		return err
	}
	if err := checkCount("texts", len(body.Texts)); err != nil {
		return err
	}
	truncation, err := truncationOf(body.Truncate, body.TruncationDirection, body.TruncationStrategy)
	if err != nil {
		return err
	}
	scores, err := s.teiScores(q, gpu.ScoreRequest{Pairs: gpu.Pairs(body.Query, body.Texts), Truncation: truncation})
	if err != nil {
		return err
	}
	ranks := make([]client.Rank, len(scores))
	for rank, i := range gpu.Order(scores) {
		ranks[rank] = client.Rank{Index: i, Score: teiScore(scores[i], body.RawScores)}
		if body.ReturnText {
			ranks[rank].Text = &body.Texts[i]
		}
	}
	return q.reply(fasthttp.StatusOK, ranks)
}

func (s *Server) teiPredict(q *request) error {
	var body client.PredictRequest
	if err := q.readJSON(&body); err != nil {
		return err
	}
	if err := checkCount("inputs", len(body.Inputs.Sequences)); err != nil {
		return err
	}
	truncation, err := truncationOf(body.Truncate, body.TruncationDirection, body.TruncationStrategy)
	if err != nil {
		return err
	}
	scores, err := s.teiScores(q, gpu.ScoreRequest{Pairs: pairsOf(body.Inputs.Sequences), Truncation: truncation})
	if err != nil {
		return err
	}
	label := s.backend.Reranker().Info().Labels[0]
	all := make([][]client.Prediction, len(scores))
	for i, score := range scores {
		all[i] = []client.Prediction{{Score: teiScore(score, body.RawScores), Label: label}}
	}
	if !body.Inputs.Batch {
		return q.reply(fasthttp.StatusOK, all[0])
	}
	return q.reply(fasthttp.StatusOK, all)
}

func pairsOf(sequences [][]string) []gpu.Pair {
	pairs := make([]gpu.Pair, len(sequences))
	for i, texts := range sequences {
		pairs[i] = gpu.Pair{First: texts[0], Alone: len(texts) == 1}
		if len(texts) > 1 {
			pairs[i].Second = texts[1]
		}
	}
	return pairs
}

func teiScore(s gpu.Score, raw bool) float32 {
	if raw {
		return s.Logit
	}
	return s.Probability()
}

// teiScores scores and sets the headers.
func (s *Server) teiScores(q *request, r gpu.ScoreRequest) ([]gpu.Score, error) {
	scores, err := s.score(q, r)
	if err != nil {
		return nil, err
	}
	var u usage
	for i, score := range scores {
		u.characters += characters([]string{r.Pairs[i].First, r.Pairs[i].Second})
		u.add(score.Tokens, score.Truncated, score.Timing)
	}
	q.usage(u)
	return scores, nil
}
