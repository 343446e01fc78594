package server

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/ingest"
	"sluice/store"
)

func TestCollectionsWithOwnVectors(t *testing.T) {
	d := start(t)
	for body, want := range map[string]store.Settings{
		`{"own_vectors":{"dimensions":4}}`:                                        {Own: store.Own{Dense: 4}},
		`{"own_vectors":{"multi_dimensions":2}}`:                                  {CodeBits: 8, Own: store.Own{Multi: 2}},
		`{"own_vectors":{"dimensions":4,"multi_dimensions":2},"code_bits":1}`:     {CodeBits: 1, Own: store.Own{Dense: 4, Multi: 2}},
		`{"own_vectors":{"multi_dimensions":2},"token_codes":true,"code_bits":8}`: {CodeBits: 8, Own: store.Own{Multi: 2}},
		`{"code_bits":8}`:                                      {CodeBits: 8},
		`{"token_codes":true,"own_vectors":null}`:              {CodeBits: 1},
		`{"token_codes":false,"own_vectors":{"dimensions":4}}`: {Own: store.Own{Dense: 4}},
	} {
		name := fmt.Sprint("c", len(d.fake.collections))
		require.Equal(t, 201, d.send("PUT", "/v1/collections/"+name, body, "Authorization", bearer("root")).status, body)
		want.Analyzer = "english"
		require.Equal(t, want, d.fake.collections["acme/"+name].Settings, body)
	}
	for body, says := range map[string]string{
		`{"own_vectors":{}}`:                                         "needs dimensions",
		`{"own_vectors":{"dimensions":-1}}`:                          "vectors of -1 dimensions",
		`{"own_vectors":{"dimensions":8193}}`:                        "use 1 to 8192",
		`{"own_vectors":{"multi_dimensions":2049}}`:                  "use 1 to 2048",
		`{"own_vectors":{"dimensions":4},"code_bits":8}`:             "code_bits",
		`{"own_vectors":{"multi_dimensions":4},"token_codes":false}`: "token_codes",
		`{"own_vectors":{"dimensions":4},"token_codes":true}`:        "token_codes",
		`{"code_bits":2}`:                                            "use 1 or 8",
		` null `:                                                     "the body is null",
		`{"token_codes":false,"code_bits":8}`:                        "code_bits",
		`{"own_vectors":{"size":4}}`:                                 `unknown field "size" at /own_vectors`,
	} {
		require.Contains(t, requireProblem(t, 400, d.send("PUT", "/v1/collections/x", body, "Authorization", bearer("root"))), says, body)
	}
	own := client.CollectionSettings{OwnVectors: &client.OwnVectors{MultiDimensions: 16}}
	made, err := d.as("root").CreateCollection(ctx, "pages", own)
	require.NoError(t, err)
	require.Empty(t, made.Model)
	require.Equal(t, own.OwnVectors, made.OwnVectors)
	require.Equal(t, []int{16, 8}, []int{made.Dimensions, made.CodeBits})
}

// Passages reach the backend as they are, in both forms of a vector.
func TestPassagesOnTheWire(t *testing.T) {
	d := start(t)
	d.collection()
	given := client.Document{Key: "atlas", Passages: []client.Passage{
		{Text: "north", Headings: []string{"Page 1"}, Vector: client.Vector{Values: []float32{1, -2.5}}, Vectors: client.Matrix{Values: []float32{1, 2, 3, 4}, Columns: 2}},
		{Vectors: client.Matrix{Values: []float32{0.1, math.MaxFloat32}, Columns: 2, Base64: true}},
	}}
	_, err := d.as("writer").Write(ctx, "c", given)
	require.NoError(t, err)
	want := []ingest.Passage{
		{Text: "north", Headings: []string{"Page 1"}, Vector: []float32{1, -2.5}, Vectors: []float32{1, 2, 3, 4}, Columns: 2},
		{Vectors: []float32{0.1, math.MaxFloat32}, Columns: 2},
	}
	require.Equal(t, want, d.fake.written[0].Passages)

	bodies := []string{`{"key":"a","passages":[{"vector":"AACAPw==","vectors":["AACAPw==",[2]]}]}`, `{"key":"b","passages":[{"vectors":[]},{"vector":null,"vectors":null}]}`}
	_, results := d.bulk(strings.Join(bodies, "\n"))
	require.Equal(t, []string{"1 a created", "2 b created"}, short(results))
	require.ElementsMatch(t, [][]ingest.Passage{
		{{Vector: []float32{1}, Vectors: []float32{1, 2}, Columns: 1}}, {{Vectors: []float32{}}, {}},
	}, [][]ingest.Passage{d.fake.written[1].Passages, d.fake.written[2].Passages})
}

func TestPassagesThatAreMalformed(t *testing.T) {
	d := start(t)
	d.collection()
	for passages, says := range map[string]string{
		`{}`:                        "at /passages",
		`[{"vectors":[[1,2],[3]]}]`: "vector 2 has 1 numbers; the first has 2",
		`[{"vectors":[[1],[]]}]`:    "vector 2 has 0 numbers",
		`[{"vectors":[[]]}]`:        "vector 1 has 0 numbers",
		`[{"vectors":[1,2]}]`:       "at /passages/0/vectors",
		`[{"vectors":{"a":1}}]`:     "a list of vectors is expected",
		`[{"vector":[1,null]}]`:     "null is no number",
		`[{"vectors":[[null]]}]`:    "null is no number",
		`[{"vector":[1e39]}]`:       "at /passages/0/vector",
		`[{"vector":[NaN]}]`:        "malformed JSON",
		`[{"vector":["1"]}]`:        "at /passages/0/vector",
		`[{"vector":"AACAPwA="}]`:   "not a whole number of float32",
		`[{"vector":"%"}]`:          "at /passages/0/vector",
		`[{},{"embedding":[1]}]`:    `unknown field "embedding" at /passages/1`,
		`[{"text":"a","text":"b"}]`: `field "text" is there twice`,
		`[` + strings.Repeat("{},", ingest.MaxPassages) + `{}]`: "more than 10000 passages",
	} {
		body := `{"key":"k","passages":` + passages + `}`
		require.Contains(t, requireProblem(t, 400, d.send("POST", "/v1/collections/c/documents", body, "Authorization", bearer("writer"))), says, passages)
		_, results := d.bulk(body + "\n" + line("n", "x"))
		require.Len(t, results, 2)
		require.Equal(t, 400, results[0].Error.Status, passages)
		require.Nil(t, results[1].Error, "a neighbour")
	}
}

func TestSearchesWithVectors(t *testing.T) {
	d := start(t)
	d.collection()
	_, err := d.as("alice").Search(ctx, "c", client.SearchRequest{
		Vector: client.Vector{Values: []float32{1, 2, 3}}, Vectors: client.Matrix{Values: []float32{4, 5}, Columns: 1, Base64: true}, Strategy: "late",
	})
	require.NoError(t, err)
	r := d.fake.searched[0]
	require.Equal(t, []float32{1, 2, 3}, r.Vector)
	require.Equal(t, []float32{4, 5}, r.Vectors)
	require.Equal(t, 1, r.Columns)
	require.Empty(t, r.Query)
	for _, body := range []string{`{}`, `{"query":""}`, `{"vector":null,"vectors":null}`, `{"vectors":[[1],[2,3]]}`} {
		requireProblem(t, 400, d.send("POST", "/v1/collections/c/search", body, "Authorization", bearer("alice")))
	}
}
