package client

import (
	"context"
	"net/http"
)

// EmbedInputs embeds texts, or the token ids of texts, on
// text-embeddings-inference's wire: a vector per input.
func (c *Client) EmbedInputs(ctx context.Context, r EmbedRequest) ([][]float32, error) {
	var answer [][]float32
	err := c.call(ctx, http.MethodPost, path("embed"), r, &answer)
	return answer, err
}

// EmbedAll returns a vector per token of each input.
func (c *Client) EmbedAll(ctx context.Context, r EmbedAllRequest) ([][][]float32, error) {
	var answer [][][]float32
	err := c.call(ctx, http.MethodPost, path("embed_all"), r, &answer)
	return answer, err
}

// Similarity returns the cosine of each sentence to the source.
func (c *Client) Similarity(ctx context.Context, r SimilarityRequest) ([]float32, error) {
	var answer []float32
	err := c.call(ctx, http.MethodPost, path("similarity"), r, &answer)
	return answer, err
}

// Rank ranks texts by the cross-encoder, best first.
func (c *Client) Rank(ctx context.Context, r RankRequest) ([]Rank, error) {
	var answer []Rank
	err := c.call(ctx, http.MethodPost, path("rerank"), r, &answer)
	return answer, err
}

// Predict returns the labels of each sequence with their scores, the likeliest first.
func (c *Client) Predict(ctx context.Context, r PredictRequest) ([][]Prediction, error) {
	answer, one := [][]Prediction{}, []Prediction{}
	if r.Inputs.Batch || len(r.Inputs.Sequences) != 1 {
		err := c.call(ctx, http.MethodPost, path("predict"), r, &answer)
		return answer, err
	}
	err := c.call(ctx, http.MethodPost, path("predict"), r, &one)
	return [][]Prediction{one}, err
}

// Tokenize returns the tokens of each text.
func (c *Client) Tokenize(ctx context.Context, r TokenizeRequest) ([][]Token, error) {
	var answer [][]Token
	err := c.call(ctx, http.MethodPost, path("tokenize"), r, &answer)
	return answer, err
}

// Decode returns the text of each list of token ids.
func (c *Client) Decode(ctx context.Context, r DecodeRequest) ([]string, error) {
	var answer []string
	err := c.call(ctx, http.MethodPost, path("decode"), r, &answer)
	return answer, err
}

// ModelInfo says which models are served.
func (c *Client) ModelInfo(ctx context.Context) (ModelInfo, error) {
	var answer ModelInfo
	err := c.call(ctx, http.MethodGet, path("info"), nil, &answer)
	return answer, err
}

// JinaRerank ranks documents by the cross-encoder, on Jina's wire.
func (c *Client) JinaRerank(ctx context.Context, r JinaRerankRequest) (JinaRerankResponse, error) {
	var answer JinaRerankResponse
	err := c.call(ctx, http.MethodPost, path("v1", "rerank"), r, &answer)
	return answer, err
}

// CohereRerank ranks documents by the cross-encoder, on Cohere's wire.
func (c *Client) CohereRerank(ctx context.Context, r CohereRerankRequest) (CohereRerankResponse, error) {
	var answer CohereRerankResponse
	err := c.call(ctx, http.MethodPost, path("v2", "rerank"), r, &answer)
	return answer, err
}
