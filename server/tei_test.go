package server

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/gpu"
)

func words(n int) string { return strings.TrimSpace(strings.Repeat("the ", n)) }

// Every way to say the same text gives the same vector, to the last bit.
func TestEmbedForms(t *testing.T) {
	d := startModels(t)
	const text = "What is a KEP?"
	var want [][]float32
	d.ask("/embed", object{"inputs": text}, &want)
	require.Len(t, want, 1)
	var tokens [][]client.Token
	d.ask("/tokenize", object{"inputs": text}, &tokens)
	var whole, bare []int32
	for _, token := range tokens[0] {
		whole = append(whole, token.ID)
		if !token.Special {
			bare = append(bare, token.ID)
		}
	}
	require.Len(t, whole, len(bare)+2)
	for name, inputs := range map[string]any{
		"list": []string{text}, "ids": whole, "ids without special tokens": bare, "nested ids": [][]int32{bare},
	} {
		var got [][]float32
		d.ask("/embed", object{"inputs": inputs}, &got)
		require.Equal(t, want, got, name)
		var openAI client.EmbeddingResponse
		d.ask("/v1/embeddings", object{"input": inputs, "model": embeddingModel}, &openAI)
		require.Equal(t, want[0], openAI.Data[0].Embedding.Values, name)
		require.Equal(t, client.Usage{PromptTokens: len(whole), TotalTokens: len(whole)}, openAI.Usage, name)
	}
	var root [][]float32
	d.ask("/", object{"inputs": text, "truncate": nil, "normalize": nil, "prompt_name": nil, "truncation_direction": "Right"}, &root)
	require.Equal(t, want, root)
}

func length(v []float32) float64 {
	var squares float64
	for _, x := range v {
		squares += float64(x) * float64(x)
	}
	return math.Sqrt(squares)
}

func TestEmbedNormalizeAndDimensions(t *testing.T) {
	d := startModels(t)
	var unit, raw, short, both [][]float32
	d.ask("/embed", object{"inputs": "the end"}, &unit)
	d.ask("/embed", object{"inputs": "the end", "normalize": false}, &raw)
	d.ask("/embed", object{"inputs": "the end", "dimensions": 8}, &short)
	d.ask("/embed", object{"inputs": "the end", "dimensions": 8, "normalize": false}, &both)
	require.InDelta(t, 1, length(unit[0]), 1e-6)
	n := length(raw[0])
	require.Greater(t, math.Abs(n-1), .1, "this model's vectors are not of unit length by themselves")
	for i := range unit[0] {
		require.InDelta(t, unit[0][i], float64(raw[0][i])/n, 1e-6)
	}
	require.Len(t, short[0], 8)
	require.InDelta(t, 1, length(short[0]), 1e-6)
	require.Equal(t, raw[0][:8], both[0])
	cut := length(unit[0][:8])
	for i := range short[0] {
		require.InDelta(t, float64(unit[0][i])/cut, short[0][i], 1e-6)
	}
	var openAI client.EmbeddingResponse
	d.ask("/v1/embeddings", object{"input": "the end", "model": embeddingModel, "dimensions": 8}, &openAI)
	require.Equal(t, short[0], openAI.Data[0].Embedding.Values)
}

func TestPrompts(t *testing.T) {
	d := startModels(t)
	var plain, prompted [][]float32
	d.ask("/embed", object{"inputs": "query: the end"}, &plain)
	d.ask("/embed", object{"inputs": "the end", "prompt_name": "query"}, &prompted)
	require.Equal(t, plain, prompted)
	a := d.refused("/embed", `{"inputs":"x","prompt_name":"nope"}`)
	requireInferenceError(t, a, 422, "Validation", `"nope"`)
	a = d.refused("/embed", `{"inputs":[[5]],"prompt_name":"query"}`)
	requireInferenceError(t, a, 422, "Validation", "no prompt")
}

// Nothing is cut in silence: the limit counts tokens, prompts and special ones
// included, truncate is obeyed in both directions, and what was cut is said
// (ollama#14186, #14259; TEI#227, #218, #394, #364).
func TestTruncation(t *testing.T) {
	d := startModels(t)
	fits, long := words(limit-2), words(limit-2)+" end"
	for _, path := range []string{"/embed", "/embed_all"} {
		var got []any
		a := d.ask(path, object{"inputs": fits}, &got)
		require.Equal(t, "0", a.header.Get("Sluice-Truncated"))
		require.Equal(t, strconv.Itoa(limit), a.header.Get("X-Compute-Tokens"))
		for _, body := range []object{{"inputs": long}, {"inputs": []string{"a", long}, "truncate": false}, {"inputs": fits, "prompt_name": "long"}} {
			text, _ := json.Marshal(body)
			requireInferenceError(t, d.refused(path, string(text)), 413, "Validation", "64")
		}
	}
	var want, right, left [][]float32
	d.ask("/embed", object{"inputs": fits}, &want)
	a := d.ask("/embed", object{"inputs": []string{long, "a"}, "truncate": true}, &right)
	require.Equal(t, "1", a.header.Get("Sluice-Truncated"))
	require.Equal(t, want[0], right[0])
	d.ask("/embed", object{"inputs": long, "truncate": true, "truncation_direction": "left"}, &left)
	require.NotEqual(t, want[0], left[0])
	d.ask("/embed", object{"inputs": words(limit-3) + " end"}, &want)
	require.Equal(t, want[0], left[0])

	var openAI client.EmbeddingResponse
	d.ask("/v1/embeddings", object{"input": []string{fits, long}, "model": embeddingModel}, &openAI)
	require.False(t, openAI.Data[0].Truncated)
	require.True(t, openAI.Data[1].Truncated)
	require.Equal(t, 2*limit, openAI.Usage.TotalTokens)
}

// A short text in few characters of many bytes is not long, and a cut is never
// inside a character.
func TestLimitsAreNotBytes(t *testing.T) {
	d := startModels(t)
	var vectors [][]float32
	d.ask("/embed", object{"inputs": strings.Repeat("漢", 20)}, &vectors)
	var tokens [][]client.Token
	d.ask("/tokenize", object{"inputs": "aé漢 🙂 b"}, &tokens)
	for _, token := range tokens[0] {
		require.NotContains(t, token.Text, "�")
		if !token.Special {
			require.Equal(t, token.Text, string([]rune("aé漢 🙂 b")[*token.Start:*token.Stop]))
		}
	}
}

func TestEmbedAll(t *testing.T) {
	d := startModels(t)
	var all [][][]float32
	d.ask("/embed_all", object{"inputs": []string{"the end", "a"}}, &all)
	var pooled [][]float32
	d.ask("/embed", object{"inputs": []string{"the end", "a"}, "normalize": false}, &pooled)
	for i, tokens := range all {
		for j, want := range pooled[i] { // the model pools by the mean
			var sum float64
			for _, v := range tokens {
				sum += float64(v[j])
			}
			require.InDelta(t, want, sum/float64(len(tokens)), 1e-4)
		}
	}
}

func TestSimilarity(t *testing.T) {
	d := startModels(t)
	var cosines []float32
	a := d.ask("/similarity", object{"inputs": object{"source_sentence": "the end", "sentences": []string{"the end", "volunteer days"}}, "parameters": object{}}, &cosines)
	require.InDelta(t, 1, cosines[0], 1e-6)
	require.Less(t, cosines[1], float32(.9999))
	requireTimings(t, a)
	requireInferenceError(t, d.refused("/similarity", `{"inputs":{"source_sentence":"a","sentences":[]}}`), 422, "Validation", "sentences")
	requireInferenceError(t, d.refused("/similarity", `{"inputs":{"sentences":["a"]}}`), 422, "Validation", "source_sentence")
	null := d.refused("/similarity", `{"inputs":{"source_sentence":"a","sentences":["b",null]}}`)
	require.Equal(t, 422, null.status)
	require.Contains(t, null.body, "null is no string")
}

func requireTimings(t *testing.T, a answer) {
	t.Helper()
	require.Equal(t, "cpu", a.header.Get("X-Compute-Type"))
	for _, h := range []string{"X-Compute-Time", "X-Total-Time", "X-Compute-Characters", "X-Compute-Tokens",
		"X-Tokenization-Time", "X-Queue-Time", "X-Inference-Time"} {
		n, err := strconv.Atoi(a.header.Get(h))
		require.NoError(t, err, h)
		require.GreaterOrEqual(t, n, 0, h)
	}
	require.NotEqual(t, "0", a.header.Get("X-Compute-Characters"))
	require.NotEqual(t, "0", a.header.Get("X-Compute-Tokens"))
}

// The cross-encoder's logits, and their sigmoids, once (llama.cpp PR#9510,
// #8555), against the reference library; ties in their order (node-llama-cpp#617).
func TestRerank(t *testing.T) {
	d := startModels(t)
	for _, c := range goldenPairs(t) {
		for _, raw := range []bool{false, true} {
			var ranks []client.Rank
			a := d.ask("/rerank", object{"query": c.Text[0], "texts": c.Text[1:], "raw_scores": raw, "return_text": raw}, &ranks)
			requireTimings(t, a)
			want, text := c.Sigmoid[0], (*string)(nil)
			if raw {
				want, text = c.Logits[0], &c.Text[1]
			}
			require.InDelta(t, want, ranks[0].Score, 5e-5)
			require.Equal(t, text, ranks[0].Text)
		}
	}
	var ranks []client.Rank
	c := goldenPairs(t)
	d.ask("/rerank", object{"query": c[0].Text[0], "texts": []string{"x", c[0].Text[1], "x", "x"}}, &ranks)
	var places []int
	for i, r := range ranks {
		require.True(t, i == 0 || ranks[i-1].Score >= r.Score)
		if r.Index != 1 {
			places = append(places, r.Index)
		}
	}
	require.Equal(t, []int{0, 2, 3}, places)
}

// A list scores as its pairs do one by one (fastembed: to 1e-5).
func TestRerankListEqualsPairs(t *testing.T) {
	d := startModels(t)
	cases := goldenPairs(t)
	var texts []string
	for _, c := range cases {
		texts = append(texts, c.Text[1])
	}
	var list []client.Rank
	d.ask("/rerank", object{"query": cases[0].Text[0], "texts": texts, "raw_scores": true}, &list)
	require.Len(t, list, len(texts))
	for _, r := range list {
		var one []client.Rank
		d.ask("/rerank", object{"query": cases[0].Text[0], "texts": texts[r.Index : r.Index+1], "raw_scores": true}, &one)
		require.InDelta(t, one[0].Score, r.Score, 1e-5)
		var predicted []client.Prediction
		d.ask("/predict", object{"inputs": []string{cases[0].Text[0], texts[r.Index]}, "raw_scores": true}, &predicted)
		require.InDelta(t, r.Score, predicted[0].Score, 1e-5)
	}
}

// A pair that is too long is refused unless it may be cut; then its passage is,
// and not the query, unless asked (vLLM#11568).
func TestRerankTruncation(t *testing.T) {
	d := startModels(t)
	query, passage := words(40), words(100)
	body := func(extra object) object {
		b := object{"query": query, "texts": []string{passage}, "raw_scores": true}
		for k, v := range extra {
			b[k] = v
		}
		return b
	}
	text, _ := json.Marshal(body(nil))
	requireInferenceError(t, d.refused("/rerank", string(text)), 413, "Validation", "64")
	score := func(b object) float32 {
		var ranks []client.Rank
		a := d.ask("/rerank", b, &ranks)
		if b["truncate"] == true {
			require.Equal(t, "1", a.header.Get("Sluice-Truncated"))
		}
		return ranks[0].Score
	}
	query = words(40) + " end"
	cut := score(body(object{"truncate": true}))
	longest := score(body(object{"truncate": true, "truncation_strategy": "longest_first"}))
	require.NotEqual(t, cut, longest)
	room := limit - 4 - tokensOfJudge(t, d, query)
	passage = words(room)
	for tokensOfJudge(t, d, passage) > room { // a first word may be a token more
		passage = strings.TrimSuffix(passage, " the")
	}
	require.Equal(t, cut, score(body(nil)), "the query is whole")
}

// tokensOfJudge counts a text's tokens, without the special ones.
func tokensOfJudge(t *testing.T, d *daemon, text string) int {
	t.Helper()
	scores, err := d.fake.reranker.Score(t.Context(), gpu.ScoreRequest{Pairs: []gpu.Pair{{First: text, Alone: true}}})
	require.NoError(t, err)
	return scores[0].Tokens - 2
}

func TestPredict(t *testing.T) {
	d := startModels(t)
	c := goldenPairs(t)[0]
	var one []client.Prediction
	d.ask("/predict", object{"inputs": c.Text}, &one)
	require.Equal(t, "LABEL_0", one[0].Label)
	require.InDelta(t, c.Sigmoid[0], one[0].Score, 5e-5)
	var several [][]client.Prediction
	d.ask("/predict", object{"inputs": [][]string{c.Text[:], {"alone"}}}, &several)
	require.Len(t, several, 2)
	require.Equal(t, one, several[0])
	var alone []client.Prediction
	d.ask("/predict", object{"inputs": "alone"}, &alone)
	require.Equal(t, several[1], alone)
	for _, inputs := range []string{`[]`, `[["a","b","c"]]`, `["a","b","c"]`, `[[]]`, `[["a"],null]`, `7`} {
		requireInferenceError(t, d.refused("/predict", `{"inputs":`+inputs+`}`), 422, "Validation", "")
	}
}

// moods is a classifier of three labels.
type moods struct{}

func (moods) Info() gpu.Info { return gpu.Info{Labels: []string{"sad", "glad", "calm"}} }

func (moods) Classify(_ context.Context, r gpu.ScoreRequest) ([]gpu.Classification, error) {
	all := make([]gpu.Classification, len(r.Pairs))
	for i := range all {
		all[i] = gpu.Classification{Logits: []float32{-1, 2, float32(i)}, Tokens: 3}
	}
	return all, nil
}

// Several labels come with their softmax, or their logits, the likeliest first.
func TestPredictSeveralLabels(t *testing.T) {
	d := startModels(t)
	d.fake.classifier = moods{}
	var one []client.Prediction
	d.ask("/predict", object{"inputs": "a"}, &one)
	sum := math.Exp(-1) + math.Exp(2) + 1
	require.Equal(t, []string{"glad", "calm", "sad"}, []string{one[0].Label, one[1].Label, one[2].Label})
	for i, logit := range []float64{2, 0, -1} {
		require.InDelta(t, math.Exp(logit)/sum, one[i].Score, 1e-6)
	}
	var raw [][]client.Prediction
	d.ask("/predict", object{"inputs": [][]string{{"a"}, {"b", "c"}}, "raw_scores": true}, &raw)
	require.Equal(t, []client.Prediction{{Score: 2, Label: "glad"}, {Score: 1, Label: "calm"}, {Score: -1, Label: "sad"}}, raw[1])
}

// A literal separator in a text is text: it makes no second sequence.
func TestSpecialTokensInTextsAreText(t *testing.T) {
	d := startModels(t)
	var tokens [][]client.Token
	d.ask("/tokenize", object{"inputs": "a [SEP] b"}, &tokens)
	sep := tokens[0][len(tokens[0])-1]
	require.True(t, sep.Special)
	for _, token := range tokens[0][1 : len(tokens[0])-1] {
		require.NotEqual(t, sep.ID, token.ID)
	}
	var apart, within []client.Prediction
	d.ask("/predict", object{"inputs": []string{"a", "b"}, "raw_scores": true}, &apart)
	d.ask("/predict", object{"inputs": "a</s></s>b", "raw_scores": true}, &within)
	require.NotEqual(t, apart[0].Score, within[0].Score)
}

func TestTokenizeAndDecode(t *testing.T) {
	d := startModels(t)
	const text = "Volunteer days: 漢字"
	var tokens [][]client.Token
	d.ask("/tokenize", object{"inputs": []string{text, ""}}, &tokens)
	require.Len(t, tokens, 2)
	require.Equal(t, "[CLS]", tokens[0][0].Text)
	require.Nil(t, tokens[0][0].Start)
	var bare [][]client.Token
	d.ask("/tokenize", object{"inputs": text, "add_special_tokens": false}, &bare)
	require.Equal(t, tokens[0][1:len(tokens[0])-1], bare[0])
	var prompted [][]client.Token
	d.ask("/tokenize", object{"inputs": text, "add_special_tokens": false, "prompt_name": "query"}, &prompted)
	require.Greater(t, len(prompted[0]), len(bare[0]))

	var ids []int32
	for _, token := range tokens[0] {
		ids = append(ids, token.ID)
	}
	var decoded, special []string
	d.ask("/decode", object{"ids": ids}, &decoded)
	require.Contains(t, decoded[0], "Volunteer days")
	d.ask("/decode", object{"ids": [][]int32{ids}, "skip_special_tokens": false}, &special)
	require.Contains(t, special[0], "[CLS]")
	requireInferenceError(t, d.refused("/decode", `{}`), 422, "Validation", "ids")
	requireInferenceError(t, d.refused("/decode", `{"ids":"a"}`), 422, "Validation", "ids")
	requireInferenceError(t, d.refused("/decode", `{"ids":[[7,-1]]}`), 422, "Validation", "ids")
}

func TestInferenceInfo(t *testing.T) {
	d := startModels(t)
	a := d.send("GET", "/info", "", "Authorization", bearer("alice"))
	require.Equal(t, 200, a.status)
	var info client.ModelInfo
	require.NoError(t, json.Unmarshal([]byte(a.body), &info))
	require.Equal(t, embeddingModel, info.ModelID)
	require.Equal(t, "f32", info.ModelDtype)
	require.Equal(t, "mean", info.ModelType.Embedding.Pooling)
	require.Equal(t, limit, info.MaxInputLength)
	require.Equal(t, 2048, info.MaxClientBatchSize)
	require.Positive(t, info.MaxBatchTokens)
	require.Equal(t, rerankingModel, info.Reranker.ModelID)
	require.Equal(t, []string{"LABEL_0"}, info.Reranker.Labels)
	require.NotEqual(t, info.ModelSHA, info.Reranker.ModelSHA)
}

func requireInferenceError(t *testing.T, a answer, status int, kind, detail string) {
	t.Helper()
	require.Equal(t, status, a.status, a.body)
	require.Equal(t, "application/json", a.header.Get("Content-Type"))
	var e client.InferenceError
	decoder := json.NewDecoder(strings.NewReader(a.body))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&e))
	require.Equal(t, kind, e.ErrorType)
	require.Contains(t, e.Error, detail)
	require.NotEmpty(t, e.Error)
}

func TestInferenceErrors(t *testing.T) {
	d := startModels(t)
	many, _ := json.Marshal(strings.Split(strings.Repeat("a,", 2048)+"a", ","))
	for body, want := range map[string]struct {
		path   string
		status int
		detail string
	}{
		`{}`:                                         {"/embed", 422, "inputs"},
		`{"inputs":[]}`:                              {"/embed", 422, "inputs"},
		`{"inputs":["a",1]}`:                         {"/embed", 422, "inputs"},
		`{"inputs":[1.5]}`:                           {"/embed", 422, "inputs"},
		`{"inputs":[-1]}`:                            {"/embed", 422, "unknown token id"},
		`{"inputs":"a`:                               {"/embed", 422, "malformed"},
		`{"inputs":"a","trunacte":true}`:             {"/embed", 422, `"trunacte"`},
		`{"inputs":"a","dimensions":33}`:             {"/embed", 422, "32"},
		`{"inputs":"a","dimensions":-1}`:             {"/embed", 422, "32"},
		`{"inputs":` + string(many) + `}`:            {"/embed", 413, "2048"},
		`{"inputs":"a","truncation_direction":"up"}`: {"/embed", 422, "left or right"},
		`{"query":"q","texts":[]}`:                   {"/rerank", 422, "texts"},
		`{"query":"q","texts":` + string(many) + `}`: {"/rerank", 413, "2048"},
		`{"query":"q","texts":["a"],"truncation_strategy":"only_first"}`: {"/rerank", 422, "only_second"},
	} {
		t.Run(body[:min(len(body), 50)], func(t *testing.T) {
			requireInferenceError(t, d.refused(want.path, body), want.status, "Validation", want.detail)
		})
	}
	requireInferenceError(t, d.send("POST", "/embed", `{"inputs":"a"}`), 401, "Validation", "token")
	d.fake.reranker, d.fake.classifier = nil, nil
	requireInferenceError(t, d.refused("/rerank", `{"query":"q","texts":["a"]}`), 424, "Backend", "no reranker")
	requireInferenceError(t, d.refused("/predict", `{"inputs":"a"}`), 424, "Backend", "no classifier")
}

// A full queue is 429 with Retry-After, and no panic (TEI#470); a device that
// failed is 503.
func TestInferenceOverload(t *testing.T) {
	d := start(t)
	d.fake.onEmbed = func(texts []string) error {
		if texts[0] == "busy" {
			return &gpu.OverloadedError{Drain: 2500e6}
		}
		return gpu.ErrDevice
	}
	a := d.refused("/embed", `{"inputs":"busy"}`)
	requireInferenceError(t, a, http.StatusTooManyRequests, "Overloaded", "later")
	require.Equal(t, "3", a.header.Get("Retry-After"))
	a = d.refused("/embed", `{"inputs":"x"}`)
	requireInferenceError(t, a, http.StatusServiceUnavailable, "Unhealthy", "later")
}

// Bodies of more than 2 MB are fine (TEI#50), up to limits.body_bytes.
func TestLargeBodies(t *testing.T) {
	d := startModels(t)
	var vectors [][]float32
	text := strings.Repeat("a", 3<<20)
	a := d.ask("/embed", object{"inputs": text, "truncate": true}, &vectors)
	require.Equal(t, "3145728", a.header.Get("X-Compute-Characters"))
	a = d.refused("/embed", `{"inputs":"`+strings.Repeat("a", int(d.limits.BodyBytes))+`"}`)
	requireInferenceError(t, a, 413, "Validation", "body_bytes")
}
