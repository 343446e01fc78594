package server

import (
	"slices"

	"github.com/valyala/fasthttp"

	"sluice/client"
	"sluice/gpu"
)

const maxInputs = 2048 // as OpenAI's

func (s *Server) embeddings(q *request) error {
	var body client.EmbeddingRequest
	if err := q.readJSON(&body); err != nil {
		return err
	}
	if err := checkEmbedding(body, s.backend.Info()); err != nil {
		return err
	}
	embeddings, err := s.backend.Embed(q.ctx, gpu.Request{Texts: body.Input, Priority: priorityOf(body.Input)})
	if err != nil {
		return err
	}
	q.timings(nil)
	return q.reply(fasthttp.StatusOK, embeddingResponseOf(embeddings, body))
}

// priorityOf takes one text for a query and several for documents.
func priorityOf(texts []string) gpu.Priority {
	if len(texts) == 1 {
		return gpu.Interactive
	}
	return gpu.Bulk
}

func checkEmbedding(body client.EmbeddingRequest, info gpu.Info) error {
	switch {
	case body.Model != info.Model:
		return failf(fasthttp.StatusNotFound, "model: this daemon serves %q and no other", info.Model)
	case len(body.Input) == 0 || len(body.Input) > maxInputs:
		return badRequest("input: 1 to %d texts are expected", maxInputs)
	case slices.Contains(body.Input, ""):
		return badRequest("input: text %d is empty", slices.Index(body.Input, ""))
	case body.Dimensions != 0 && body.Dimensions != info.Dimensions:
		return badRequest("dimensions: the model has %d and no other", info.Dimensions)
	case body.EncodingFormat != "" && body.EncodingFormat != "float" && body.EncodingFormat != "base64":
		return badRequest("encoding_format: float or base64 is expected")
	default:
		return nil
	}
}

func embeddingResponseOf(embeddings []gpu.Embedding, body client.EmbeddingRequest) client.EmbeddingResponse {
	response := client.EmbeddingResponse{Object: "list", Model: body.Model, Data: make([]client.Embedding, len(embeddings))}
	for i, e := range embeddings {
		response.Data[i] = client.Embedding{
			Object:    "embedding",
			Index:     i,
			Embedding: client.Vector{Values: e.Vector, Base64: body.EncodingFormat == "base64"},
			Truncated: e.Truncated,
		}
		response.Usage.PromptTokens += e.Tokens
	}
	response.Usage.TotalTokens = response.Usage.PromptTokens
	return response
}

// openAIError is a failure in the shape that OpenAI's clients read.
func openAIError(f *failure) client.EmbeddingError {
	kind, code := "invalid_request_error", (*string)(nil)
	switch {
	case f.status == fasthttp.StatusUnauthorized:
		code = new("invalid_api_key")
	case f.status == fasthttp.StatusNotFound:
		code = new("model_not_found")
	case f.status == fasthttp.StatusTooManyRequests:
		kind, code = "requests", new("rate_limit_exceeded")
	case f.status >= 500:
		kind = "server_error"
	}
	return client.EmbeddingError{Error: client.EmbeddingErrorDetail{Message: f.detail, Type: kind, Code: code}}
}
