package server

import (
	"slices"

	"github.com/valyala/fasthttp"

	"sluice/client"
	"sluice/gpu"
)

// embeddings is OpenAI's POST /v1/embeddings. A text that is longer than the
// model takes is cut, and its item says so.
func (s *Server) embeddings(q *request) error {
	var body client.EmbeddingRequest
	if err := q.readJSON(&body); err != nil {
		return err
	}
	if err := checkEmbedding(body, s.backend.Info()); err != nil {
		return err
	}
	embeddings, err := s.embed(q, embedRequest{inputs: body.Input, dimensions: body.Dimensions})
	if err != nil {
		return err
	}
	text, err := appendEmbeddingResponse(embeddings, body)
	if err != nil {
		return err
	}
	return q.replyText(fasthttp.StatusOK, text)
}

func checkEmbedding(body client.EmbeddingRequest, info gpu.Info) error {
	in := body.Input
	switch {
	case body.Model != info.Model:
		return failf(fasthttp.StatusNotFound, "model: this daemon serves %q and no other", info.Model)
	case in.Len() == 0:
		return badRequest("input: 1 to %d texts are expected", maxInputs)
	case slices.Contains(in.Texts, ""):
		return badRequest("input: text %d is empty", slices.Index(in.Texts, ""))
	case slices.ContainsFunc(in.IDs, func(ids []int32) bool { return len(ids) == 0 }):
		return badRequest("input: a list of token ids is empty")
	case body.EncodingFormat != "" && body.EncodingFormat != "float" && body.EncodingFormat != "base64":
		return badRequest("encoding_format: float or base64 is expected")
	default:
		return nil
	}
}
