package server

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"sluice/client"
	"sluice/gpu"
	"sluice/kernels/ref"
)

// The calls of text-embeddings-inference that embed.

func (s *Server) teiEmbed(q *request) error {
	var body client.EmbedRequest
	if err := q.readJSON(&body); err != nil {
		return err
	}
	truncation, err := truncationOf(body.Truncate, body.TruncationDirection, "")
	if err != nil {
		return err
	}
	embeddings, err := s.teiEmbeddings(q, embedRequest{
		inputs: body.Inputs, prompt: body.PromptName, truncation: truncation,
		dimensions: body.Dimensions, raw: body.Normalize != nil && !*body.Normalize,
	})
	if err != nil {
		return err
	}
	return q.replyText(fasthttp.StatusOK, appendVectors(embeddings))
}

func (s *Server) teiEmbedAll(q *request) error {
	var body client.EmbedAllRequest
	if err := q.readJSON(&body); err != nil {
		return err
	}
	truncation, err := truncationOf(body.Truncate, body.TruncationDirection, "")
	if err != nil {
		return err
	}
	out, width := &pages{q: q}, s.backend.Info().TokenDimensions
	embeddings, err := s.teiEmbeddings(q, embedRequest{
		inputs: body.Inputs, prompt: body.PromptName, truncation: truncation,
		tokenVectors: true, reserve: func(tokens int) error { return out.reserve(tokens * width) },
	})
	if err != nil {
		return err
	}
	for i, e := range embeddings {
		if err := out.writeTokenVectors(e, width, i); err != nil {
			return err
		}
	}
	if err := out.write("]\n"); err != nil {
		return err
	}
	return out.reply()
}

func (s *Server) teiSimilarity(q *request) error {
	var body client.SimilarityRequest
	if err := q.readJSON(&body); err != nil {
		return err
	}
	if body.Inputs.SourceSentence == "" {
		return badRequest("source_sentence: cannot be empty")
	}
	if len(body.Inputs.Sentences) == 0 {
		return badRequest("sentences: cannot be empty")
	}
	p := body.Parameters
	truncation, err := truncationOf(p.Truncate, p.TruncationDirection, "")
	if err != nil {
		return err
	}
	texts := append([]string{body.Inputs.SourceSentence}, body.Inputs.Sentences...)
	embeddings, err := s.teiEmbeddings(q, embedRequest{inputs: client.Inputs{Texts: texts}, prompt: p.PromptName, truncation: truncation})
	if err != nil {
		return err
	}
	source, others := embeddings[0].Vector, embeddings[1:]
	cosines := make([]float32, len(others))
	for i, e := range others {
		cosines[i] = ref.Dot(source, e.Vector)
	}
	return q.reply(fasthttp.StatusOK, cosines)
}

// teiEmbeddings embeds and sets the headers.
func (s *Server) teiEmbeddings(q *request, r embedRequest) ([]gpu.Embedding, error) {
	if err := checkCount("inputs", r.inputs.Len()); err != nil {
		return nil, err
	}
	embeddings, err := s.embed(q, r)
	if err != nil {
		return nil, err
	}
	u := usage{characters: characters(r.inputs.Texts)}
	for _, e := range embeddings {
		u.add(e.Tokens, e.Truncated, e.Timing)
	}
	q.usage(u)
	return embeddings, nil
}

// truncationOf reads the members that say what may be cut, and where.
func truncationOf(truncate bool, direction, strategy string) (gpu.Truncation, error) {
	t := gpu.Truncation{Refuse: !truncate}
	switch strings.ToLower(direction) {
	case "", "right":
	case "left":
		t.Left = true
	default:
		return t, badRequest("truncation_direction: left or right is expected")
	}
	switch strategy {
	case "", "only_second":
	case "longest_first":
		t.LongestFirst = true
	default:
		return t, badRequest("truncation_strategy: only_second or longest_first is expected")
	}
	return t, nil
}

// usage is what a request cost.
type usage struct {
	characters, tokens, truncated int
	texts                         int
	timing                        gpu.Timing // of all texts together
}

func (u *usage) add(tokens int, truncated bool, t gpu.Timing) {
	u.texts++
	u.tokens += tokens
	if truncated {
		u.truncated++
	}
	u.timing.Tokenize += t.Tokenize
	u.timing.Queue += t.Queue
	u.timing.Run += t.Run
}

func characters(texts []string) (n int) {
	for _, text := range texts {
		n += utf8.RuneCountInString(text)
	}
	return n
}

// usage sets the headers of text-embeddings-inference. Times are milliseconds;
// those of stages are means over the texts.
func (q *request) usage(u usage) {
	header := &q.http.Response.Header
	mean := func(d time.Duration) string { return milliseconds(d / time.Duration(max(1, u.texts))) }
	total := milliseconds(time.Since(q.started))
	for _, h := range [][2]string{
		{"X-Compute-Type", "cpu"}, {"X-Compute-Time", total}, {"X-Total-Time", total},
		{"X-Compute-Characters", strconv.Itoa(u.characters)}, {"X-Compute-Tokens", strconv.Itoa(u.tokens)},
		{"X-Tokenization-Time", mean(u.timing.Tokenize)}, {"X-Queue-Time", mean(u.timing.Queue)},
		{"X-Inference-Time", mean(u.timing.Run)}, {"Sluice-Truncated", strconv.Itoa(u.truncated)},
	} {
		header.Set(h[0], h[1])
	}
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

func (s *Server) teiInfo(q *request) error {
	info := s.backend.Info()
	answer := client.ModelInfo{
		ModelID: info.Model, ModelSHA: info.Digest, ModelDtype: info.Precision,
		ModelType:             client.ModelType{Embedding: client.EmbeddingModel{Pooling: string(info.Pooling)}},
		MaxConcurrentRequests: s.limits.ConcurrentRequests, MaxInputLength: info.MaxTokens,
		MaxBatchTokens: info.BatchTokens, MaxClientBatchSize: maxInputs,
		TokenizationWorkers: s.cores, Version: s.version,
	}
	if r := s.backend.Reranker(); r != nil {
		info := r.Info()
		answer.Reranker = &client.RerankerInfo{
			ModelID: info.Model, ModelSHA: info.Digest, ModelDtype: info.Precision,
			MaxInputLength: info.MaxTokens, Labels: info.Labels,
		}
	}
	return q.reply(fasthttp.StatusOK, answer)
}
