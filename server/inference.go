package server

import (
	"strings"

	"github.com/valyala/fasthttp"

	"sluice/client"
	"sluice/gpu"
	"sluice/model"
)

// What the embedding and reranking APIs of all families share.

const (
	maxInputs      = 2048 // of one request, as OpenAI's
	maxRerankQuery = 64 << 10
)

var errTooManyInputs = failf(fasthttp.StatusRequestEntityTooLarge, "1 to %d texts, or lists of token ids, are expected", maxInputs)

func checkCount(name string, n int) error {
	if n < 1 {
		return badRequest("%s: cannot be empty; 1 to %d are expected", name, maxInputs)
	}
	if n > maxInputs {
		return failf(fasthttp.StatusRequestEntityTooLarge, "%s: %d are more than the %d that are allowed", name, n, maxInputs)
	}
	return nil
}

// embedRequest is inputs to embed, and how.
type embedRequest struct {
	inputs       client.Inputs
	prompt       string // its name
	truncation   gpu.Truncation
	tokenVectors bool
	reserve      func(tokens int) error
	dimensions   int  // the first so many; 0: all
	raw          bool // not of unit length, but as pooled
}

func (s *Server) embed(q *request, r embedRequest) ([]gpu.Embedding, error) {
	info := s.backend.Info()
	if r.dimensions < 0 || r.dimensions > info.Dimensions {
		return nil, badRequest("dimensions: the model has 1 to %d", info.Dimensions)
	}
	prompt, err := s.prompt(r.inputs, r.prompt)
	if err != nil {
		return nil, err
	}
	embeddings, err := s.backend.Embed(q.ctx, gpu.Request{
		Texts: r.inputs.Texts, Prompt: prompt, IDs: r.inputs.IDs, Truncation: r.truncation,
		Priority: priorityOf(r.inputs.Len()), TokenVectors: r.tokenVectors, Reserve: r.reserve,
	})
	for _, e := range embeddings {
		if r.raw {
			scale(e.Vector, e.Norm)
		}
	}
	return cutTo(embeddings, r), err
}

// prompt finds the one of that name. Token ids are taken as they are.
func (s *Server) prompt(in client.Inputs, name string) (string, error) {
	if in.IDs == nil {
		return s.backend.Info().Prompts.Prompt(name)
	}
	if name != "" {
		return "", badRequest("prompt_name: token ids take no prompt")
	}
	return "", nil
}

func scale(vector []float32, by float32) {
	for i := range vector {
		vector[i] *= by
	}
}

// cutTo keeps the dimensions that are asked for.
func cutTo(embeddings []gpu.Embedding, r embedRequest) []gpu.Embedding {
	for i, e := range embeddings {
		switch {
		case r.dimensions == 0 || r.dimensions == len(e.Vector):
		case r.raw:
			embeddings[i].Vector = e.Vector[:r.dimensions]
		default:
			embeddings[i].Vector = model.Shorten(e.Vector, r.dimensions)
		}
	}
	return embeddings
}

// priorityOf takes one text for a query and several for documents.
func priorityOf(texts int) gpu.Priority {
	if texts == 1 {
		return gpu.Interactive
	}
	return gpu.Bulk
}

// score asks the reranker, if there is one.
func (s *Server) score(q *request, r gpu.ScoreRequest) ([]gpu.Score, error) {
	reranker := s.backend.Reranker()
	if reranker == nil {
		return nil, failf(fasthttp.StatusFailedDependency, "this daemon has no reranker; name one in its configuration (reranker)")
	}
	return reranker.Score(q.ctx, r)
}

// checkRerank checks what the hosted services check.
func checkRerank(query, list string, passages int) error {
	if strings.TrimSpace(query) == "" {
		return badRequest("query: must not be empty")
	}
	if err := checkQueryLength(query); err != nil {
		return err
	}
	return checkCount(list, passages)
}

// checkQueryLength bounds what goes into the pair of each passage.
func checkQueryLength(query string) error {
	if len(query) > maxRerankQuery {
		return failf(fasthttp.StatusRequestEntityTooLarge, "query: it is longer than %d bytes", maxRerankQuery)
	}
	return nil
}

// checkReranker checks the model that a request names.
func (s *Server) checkReranker(name string) error {
	if r := s.backend.Reranker(); r != nil && name != r.Info().Model {
		return failf(fasthttp.StatusNotFound, "model: this daemon reranks with %q and no other", r.Info().Model)
	}
	return nil
}

// best is the places of the top scores, best first; nil means all.
func best(scores []gpu.Score, top *int) ([]int, error) {
	order := gpu.Order(scores)
	if top == nil {
		return order, nil
	}
	if *top < 1 {
		return nil, badRequest("top_n: must be at least 1")
	}
	return order[:min(*top, len(order))], nil
}
