package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
)

func TestJinaRerank(t *testing.T) {
	d := startModels(t)
	c := goldenPairs(t)[0]
	var got client.JinaRerankResponse
	d.ask("/v1/rerank", object{"model": rerankingModel, "query": c.Text[0], "documents": []any{"x", object{"text": c.Text[1]}, words(200)}}, &got)
	require.Equal(t, rerankingModel, got.Model)
	require.Len(t, got.Results, 3)
	require.Positive(t, got.Usage.TotalTokens)
	for i, r := range got.Results {
		require.True(t, i == 0 || got.Results[i-1].RelevanceScore >= r.RelevanceScore)
		require.Equal(t, r.Index == 2, r.Truncated)
		if r.Index == 1 {
			require.InDelta(t, c.Sigmoid[0], r.RelevanceScore, 5e-5)
			require.Equal(t, c.Text[1], r.Document.Text)
		}
	}
	best := got.Results[0]
	got = client.JinaRerankResponse{}
	a := d.ask("/v1/rerank", object{"query": c.Text[0], "documents": []string{"x", c.Text[1], words(200)}, "top_n": 1, "return_documents": false}, &got)
	best.Document = nil
	require.Equal(t, []client.JinaResult{best}, got.Results)
	require.NotContains(t, a.body, "document")

	for body, status := range map[string]int{
		`{"query":"q","documents":[]}`:                                        400,
		`{"query":"q","documents":[{"image":"x"}]}`:                           400,
		`{"query":"q","documents":[null]}`:                                    400,
		`{"query":"","documents":["a"]}`:                                      400,
		`{"query":"q","documents":["a"],"top_n":0}`:                           400,
		`{"model":"jina-reranker-v2","query":"q","documents":["a"]}`:          404,
		`{"query":"q","documents":["a"` + strings.Repeat(`,"a"`, 2048) + `]}`: 413,
	} {
		a := d.refused("/v1/rerank", body)
		require.Equal(t, status, a.status, a.body)
		var e client.JinaError
		require.NoError(t, json.Unmarshal([]byte(a.body), &e))
		require.NotEmpty(t, e.Detail)
	}
}

func TestCohereRerank(t *testing.T) {
	d := startModels(t)
	c := goldenPairs(t)[0]
	var got client.CohereRerankResponse
	d.ask("/v2/rerank", object{"model": rerankingModel, "query": c.Text[0], "documents": []string{"x", c.Text[1], words(200)}}, &got)
	require.Len(t, got.Results, 3)
	require.NotEmpty(t, got.ID)
	require.Equal(t, "2", got.Meta.APIVersion.Version)
	require.Len(t, got.Meta.Warnings, 1)
	require.Contains(t, got.Meta.Warnings[0], "document 2")
	for _, r := range got.Results {
		if r.Index == 1 {
			require.InDelta(t, c.Sigmoid[0], r.RelevanceScore, 5e-5)
		}
	}
	// Documents cut to so many tokens score as what is left of them.
	var short, whole client.CohereRerankResponse
	d.ask("/v2/rerank", object{"model": rerankingModel, "query": "q", "documents": []string{"the the the the the the"}, "max_tokens_per_doc": 3, "priority": 5}, &short)
	require.NotEmpty(t, short.Meta.Warnings)
	d.ask("/v2/rerank", object{"model": rerankingModel, "query": "q", "documents": []string{"the the the"}}, &whole)
	var longer client.CohereRerankResponse
	d.ask("/v2/rerank", object{"model": rerankingModel, "query": "q", "documents": []string{"the the the the the the"}}, &longer)
	require.NotEqual(t, longer.Results, short.Results)

	for body, status := range map[string]int{
		`{"model":"tiny-judge","query":"q","documents":[]}`:                             400,
		`{"model":"tiny-judge","query":"q","documents":["a"],"max_tokens_per_doc":0}`:   400,
		`{"model":"tiny-judge","query":"q","documents":["a"],"relevant_spans":{"a":1}}`: 400,
		`{"model":"rerank-v3.5","query":"q","documents":["a"]}`:                         404,
	} {
		a := d.refused("/v2/rerank", body)
		require.Equal(t, status, a.status, a.body)
		var e client.CohereError
		require.NoError(t, json.Unmarshal([]byte(a.body), &e))
		require.NotEmpty(t, e.Message)
	}
	d.fake.reranker = nil
	a := d.refused("/v2/rerank", `{"model":"x","query":"q","documents":["a"]}`)
	require.Equal(t, 424, a.status)
	require.Contains(t, a.body, "no reranker")
}
