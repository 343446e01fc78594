package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/gpu"
)

// oddVectors has numbers of every size, and the edges.
func oddVectors(r *rand.Rand, n int) []gpu.Embedding {
	embeddings := make([]gpu.Embedding, n)
	for i := range embeddings {
		v := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 1e-6, 9.9e-7, 1e21, 9.9e20, math.MaxFloat32, math.SmallestNonzeroFloat32}
		for range 100 {
			if x := math.Float32frombits(r.Uint32()); x-x == 0 {
				v = append(v, x, float32(r.NormFloat64()))
			}
		}
		embeddings[i] = gpu.Embedding{Vector: v, Tokens: r.IntN(512), Truncated: r.IntN(2) == 0}
	}
	return embeddings
}

// What is written by hand is what package client would have written.
func TestVectorsOnTheWire(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for n := range 4 {
		embeddings := oddVectors(r, n)
		vectors := make([][]float32, n)
		for i, e := range embeddings {
			vectors[i] = e.Vector
		}
		requireSame(t, vectors, appendVectors(embeddings))
		for _, format := range []string{"", "float", "base64"} {
			body := client.EmbeddingRequest{Model: "a \"model\" <&> \x01é", EncodingFormat: format}
			got, err := appendEmbeddingResponse(embeddings, body)
			require.NoError(t, err)
			requireSame(t, embeddingResponseOf(embeddings, body), got)
		}
	}
}

// embeddingResponseOf is the oracle.
func embeddingResponseOf(embeddings []gpu.Embedding, body client.EmbeddingRequest) client.EmbeddingResponse {
	response := client.EmbeddingResponse{Object: "list", Model: body.Model, Data: make([]client.Embedding, len(embeddings))}
	for i, e := range embeddings {
		response.Data[i] = client.Embedding{
			Object: "embedding", Index: i, Truncated: e.Truncated,
			Embedding: client.Vector{Values: e.Vector, Base64: body.EncodingFormat == "base64"},
		}
		response.Usage.PromptTokens += e.Tokens
	}
	response.Usage.TotalTokens = response.Usage.PromptTokens
	return response
}

// requireSame compares members and their order, and the float32 that numbers
// are; the spelling of an exponent is free.
func requireSame(t *testing.T, want any, got []byte) {
	t.Helper()
	text, err := json.Marshal(want)
	require.NoError(t, err)
	require.Equal(t, tokens(t, text), tokens(t, got))
}

func tokens(t *testing.T, text []byte) (all []string) {
	t.Helper()
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		token, err := d.Token()
		if token == nil && err != nil {
			require.ErrorContains(t, err, "EOF")
			return all
		}
		if x, ok := token.(float64); ok {
			token = math.Float32bits(float32(x))
		}
		all = append(all, fmt.Sprintf("%T %v", token, token))
	}
}
