package server

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/gpu"
)

func TestEmbeddings(t *testing.T) {
	d := start(t)
	want := [][]float32{{1, -0.5, 1e-7}, {24, -0.5, 1e-7}}
	for _, format := range []string{"", "float", "base64"} {
		r, err := d.as("alice").Embed(context.Background(), client.EmbeddingRequest{
			Input: client.Inputs{Texts: []string{"a", "this one is cut at its end"[:24]}}, Model: "tiny", EncodingFormat: format,
		})
		require.NoError(t, err)
		require.Equal(t, "list", r.Object)
		require.Equal(t, client.Usage{PromptTokens: 6, TotalTokens: 6}, r.Usage)
		for i, e := range r.Data {
			require.Equal(t, i, e.Index)
			require.Equal(t, want[i], e.Embedding.Values)
			require.Equal(t, format == "base64", e.Embedding.Base64)
			require.Equal(t, i == 1, e.Truncated)
		}
	}
}

// The body that openai-python sends, and the bytes that it expects.
func TestEmbeddingsBase64Bytes(t *testing.T) {
	d := start(t)
	a := d.send("POST", "/v1/embeddings", `{"input":"a","model":"tiny","encoding_format":"base64"}`, "Authorization", bearer("alice"))
	require.JSONEq(t, `{"object":"list","model":"tiny","usage":{"prompt_tokens":3,"total_tokens":3},
		"data":[{"object":"embedding","index":0,"embedding":"AACAPwAAAL+Vv9Yz"}]}`, a.body)
	require.Equal(t, uint32(0x33d6bf95), math.Float32bits(1e-7))
}

func TestEmbeddingErrors(t *testing.T) {
	d := start(t)
	cases := map[string]struct {
		body   string
		status int
		detail string
	}{
		"another model": {`{"input":"a","model":"text-embedding-3-small"}`, 404, `"tiny"`},
		"no input":      {`{"model":"tiny"}`, 400, "1 to 2048 texts"},
		"empty list":    {`{"input":[],"model":"tiny"}`, 400, "1 to 2048 texts"},
		"too many":      {`{"input":["a"` + strings.Repeat(`,"a"`, 2048) + `],"model":"tiny"}`, 400, "1 to 2048 texts"},
		"empty text":    {`{"input":["a",""],"model":"tiny"}`, 400, "text 1 is empty"},
		"null text":     {`{"input":["a",null],"model":"tiny"}`, 400, "a string, a list of strings"},
		"null":          {`{"input":null,"model":"tiny"}`, 400, ""},
		"mixed":         {`{"input":["a",2],"model":"tiny"}`, 400, "a string, a list of strings"},
		"fractions":     {`{"input":[1.5],"model":"tiny"}`, 400, "a string, a list of strings"},
		"null id":       {`{"input":[[1,null]],"model":"tiny"}`, 400, "a string, a list of strings"},
		"no ids":        {`{"input":[[]],"model":"tiny"}`, 400, "token ids is empty"},
		"object":        {`{"input":{"a":1},"model":"tiny"}`, 400, "a string, a list of strings"},
		"format":        {`{"input":"a","model":"tiny","encoding_format":"int8"}`, 400, "float or base64"},
		"dimensions":    {`{"input":"a","model":"tiny","dimensions":4}`, 400, "the model has 1 to 3"},
		"unknown field": {`{"input":"a","model":"tiny","truncate":true}`, 400, `"truncate"`},
		"truncated":     {`{"input":"a`, 400, "malformed"},
		"overload":      {`{"input":"busy","model":"tiny"}`, 429, "later"},
		"panic":         {`{"input":"boom","model":"tiny"}`, 500, "fault"},
	}
	d.fake.onEmbed = func(texts []string) error {
		switch texts[0] {
		case "busy":
			return gpu.ErrOverloaded
		case "boom":
			panic("boom")
		}
		return nil
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := d.send("POST", "/v1/embeddings", c.body, "Authorization", bearer("alice"))
			require.Equal(t, c.status, a.status, a.body)
			require.Contains(t, requireOpenAIError(t, a), c.detail)
		})
	}
	a := d.send("POST", "/v1/embeddings", `{}`)
	require.Equal(t, 401, a.status)
	requireOpenAIError(t, a)
	require.Contains(t, a.body, "invalid_api_key")
}

func requireOpenAIError(t *testing.T, a answer) string {
	t.Helper()
	require.Equal(t, "application/json", a.header.Get("Content-Type"))
	var e client.EmbeddingError
	decoder := json.NewDecoder(strings.NewReader(a.body))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&e))
	require.NotEmpty(t, e.Error.Message)
	require.NotEmpty(t, e.Error.Type)
	return e.Error.Message
}

func TestLargestEmbeddingRequest(t *testing.T) {
	d := start(t)
	r, err := d.as("alice").Embed(context.Background(), client.EmbeddingRequest{
		Input: client.Inputs{Texts: strings.Split(strings.Repeat("a,", 2047)+"a", ",")}, Model: "tiny",
	})
	require.NoError(t, err)
	require.Len(t, r.Data, 2048)
}
