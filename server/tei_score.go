package server

import (
	"cmp"
	"slices"

	"github.com/valyala/fasthttp"

	"sluice/client"
	"sluice/gpu"
)

// The calls of text-embeddings-inference that score. A score is the logit's
// sigmoid (among several labels, the softmax), as its clients expect, or
// (raw_scores) the logit, whatever the model's own config prefers.

func (s *Server) teiRerank(q *request) error {
	var body client.RankRequest
	if err := q.readJSON(&body); err != nil {
		return err
	}
	if err := checkCount("texts", len(body.Texts)); err != nil {
		return err
	}
	if err := checkQueryLength(body.Query); err != nil {
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
	all, err := s.teiPredictions(q, gpu.ScoreRequest{Pairs: pairsOf(body.Inputs.Sequences), Truncation: truncation}, body.RawScores)
	if err != nil {
		return err
	}
	if !body.Inputs.Batch {
		return q.reply(fasthttp.StatusOK, all[0])
	}
	return q.reply(fasthttp.StatusOK, all)
}

// teiPredictions classifies and sets the headers.
func (s *Server) teiPredictions(q *request, r gpu.ScoreRequest, raw bool) ([][]client.Prediction, error) {
	classifier := s.backend.Classifier()
	if classifier == nil {
		return nil, failf(fasthttp.StatusFailedDependency, "this daemon has no classifier; name one in its configuration (classifier, or reranker)")
	}
	classified, err := classifier.Classify(q.ctx, r)
	if err != nil {
		return nil, err
	}
	var u usage
	all := make([][]client.Prediction, len(classified))
	for i, c := range classified {
		all[i] = predictions(c, classifier.Info().Labels, raw)
		u.characters += characters([]string{r.Pairs[i].First, r.Pairs[i].Second})
		u.add(c.Tokens, c.Truncated, c.Timing)
	}
	q.usage(u)
	return all, nil
}

// predictions are the labels, the likeliest first.
func predictions(c gpu.Classification, labels []string, raw bool) []client.Prediction {
	scores := c.Logits
	if !raw {
		scores = c.Probabilities()
	}
	all := make([]client.Prediction, len(labels))
	for i, label := range labels {
		all[i] = client.Prediction{Score: scores[i], Label: label}
	}
	slices.SortStableFunc(all, func(a, b client.Prediction) int { return cmp.Compare(b.Score, a.Score) })
	return all
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
