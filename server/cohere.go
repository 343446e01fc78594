package server

import (
	"fmt"

	"github.com/valyala/fasthttp"

	"sluice/client"
	"sluice/gpu"
)

const cohereDocumentTokens = 4096 // what Cohere cuts documents to

// cohereRerank is Cohere's POST /v2/rerank. Documents that are too long are
// cut, and a warning names them.
func (s *Server) cohereRerank(q *request) error {
	var body client.CohereRerankRequest
	if err := q.readJSON(&body); err != nil {
		return err
	}
	r, err := s.cohereRequest(body)
	if err != nil {
		return err
	}
	scores, err := s.score(q, r)
	if err != nil {
		return err
	}
	order, err := best(scores, body.TopN)
	if err != nil {
		return err
	}
	response := client.CohereRerankResponse{ID: q.id, Results: make([]client.CohereResult, len(order))}
	response.Meta = client.CohereMeta{APIVersion: client.CohereVersion{Version: "2"}, Warnings: cutWarnings(scores)}
	for rank, i := range order {
		response.Results[rank] = client.CohereResult{Index: i, RelevanceScore: scores[i].Probability()}
	}
	return q.reply(fasthttp.StatusOK, response)
}

func (s *Server) cohereRequest(body client.CohereRerankRequest) (gpu.ScoreRequest, error) {
	r := gpu.ScoreRequest{Pairs: gpu.Pairs(body.Query, body.Documents), SecondTokens: cohereDocumentTokens}
	if n := body.MaxTokensPerDoc; n != nil {
		r.SecondTokens = *n
	}
	if body.Priority > 0 {
		r.Priority = gpu.Bulk
	}
	if r.SecondTokens < 1 {
		return r, badRequest("max_tokens_per_doc: must be at least 1")
	}
	if err := checkRerank(body.Query, "documents", len(body.Documents)); err != nil {
		return r, err
	}
	return r, s.checkReranker(body.Model)
}

// cutWarnings names the first documents that were cut.
func cutWarnings(scores []gpu.Score) (warnings []string) {
	const most = 10
	cut := 0
	for i, score := range scores {
		if !score.Truncated {
			continue
		}
		if cut++; cut <= most {
			warnings = append(warnings, fmt.Sprintf("document %d is longer than what was read of it", i))
		}
	}
	if cut > most {
		warnings = append(warnings, fmt.Sprintf("and %d others", cut-most))
	}
	return warnings
}
