package server

import (
	"github.com/valyala/fasthttp"

	"sluice/client"
	"sluice/gpu"
)

// jinaRerank is Jina's POST /v1/rerank. A document that is too long is cut, and
// its result says so.
func (s *Server) jinaRerank(q *request) error {
	var body client.JinaRerankRequest
	if err := q.readJSON(&body); err != nil {
		return err
	}
	if err := checkRerank(body.Query, "documents", len(body.Documents)); err != nil {
		return err
	}
	if body.Model != "" {
		if err := s.checkReranker(body.Model); err != nil {
			return err
		}
	}
	passages := make([]string, len(body.Documents))
	for i, d := range body.Documents {
		passages[i] = d.Text
	}
	scores, err := s.score(q, gpu.ScoreRequest{Pairs: gpu.Pairs(body.Query, passages)})
	if err != nil {
		return err
	}
	order, err := best(scores, body.TopN)
	if err != nil {
		return err
	}
	return q.reply(fasthttp.StatusOK, s.jinaResponse(body, scores, order))
}

func (s *Server) jinaResponse(body client.JinaRerankRequest, scores []gpu.Score, order []int) client.JinaRerankResponse {
	response := client.JinaRerankResponse{
		Model: s.backend.Reranker().Info().Model, Object: "list", Results: make([]client.JinaResult, len(order)),
	}
	for _, score := range scores {
		response.Usage.PromptTokens += score.Tokens
	}
	response.Usage.TotalTokens = response.Usage.PromptTokens
	for rank, i := range order {
		result := client.JinaResult{Index: i, RelevanceScore: scores[i].Probability(), Truncated: scores[i].Truncated}
		if body.ReturnDocuments == nil || *body.ReturnDocuments {
			result.Document = &body.Documents[i]
		}
		response.Results[rank] = result
	}
	return response
}
