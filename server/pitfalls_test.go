package server

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
)

// What users of other servers reported, through the API. The rest of it is
// tested where it can break:
//
//	truncation, ties, sigmoids, list against pairs, large bodies, a full queue: tei_test.go
//	base64: openai_test.go, clients_test.go (openai-python#1490)
//	a bad text, a dead or hanging device, exceptions, health: gpu/health_test.go (TEI#145, #424, #694, infinity#242)
//	cancelled and expired work is not done: gpu/scheduler_test.go (triton#7512, #6920)
//	memory over a million calls: gpu/overhead_test.go (infinity#517, onnxruntime#29351)
//	several devices, several models: gpu/turns_test.go, gpu/scheduler_test.go (TEI#206, #256)
//	token types, pair truncation, NaN: gpu/reranker_test.go
//	Unicode in tokenizers: model/tokenizer (TEI#94); positions, padding ids: gpu/cpu/golden_test.go
//	softmax, zero vectors: kernels/ref/ref_test.go

// A vector is the same, to the last bit, whatever it is asked with, in which
// order, and by how many at once (ollama#6262, #8713, #7595;
// sentence-transformers#2312; FlagEmbedding#1113; vLLM#15393).
func TestVectorsDoNotDependOnTheirCompany(t *testing.T) {
	d := startModels(t)
	var texts []string
	for i := range 40 {
		texts = append(texts, words(1+i%30)+strings.Repeat(" days", i%7))
	}
	want := make([][]float32, len(texts))
	for i, text := range texts {
		var one [][]float32
		d.ask("/embed", object{"inputs": text}, &one)
		want[i] = one[0]
	}
	var group sync.WaitGroup
	for seed := range uint64(4) {
		group.Go(func() {
			order := rand.New(rand.NewPCG(seed, 0)).Perm(len(texts))
			var shuffled []string
			for _, i := range order {
				shuffled = append(shuffled, texts[i])
			}
			body, _ := json.Marshal(object{"inputs": shuffled})
			var got [][]float32
			a := d.refused("/embed", string(body))
			if json.Unmarshal([]byte(a.body), &got) != nil || len(got) != len(order) {
				t.Errorf("seed %d: %s", seed, a.body)
				return
			}
			for place, i := range order {
				for j := range want[i] {
					if got[place][j] != want[i][j] {
						t.Errorf("seed %d: text %d differs", seed, i)
						return
					}
				}
			}
		})
	}
	group.Wait()
}

// A bad request costs its neighbours nothing (TEI#145), and one bad item of a
// batch is named; a batch does not get round a limit that holds for one (TEI#662).
func TestBadInputsHarmNoNeighbours(t *testing.T) {
	d := startModels(t)
	bad := []string{
		`{"inputs":[[5],[99999999]]}`, `{"inputs":["a","` + words(100) + `"]}`, `{"inputs":["a",null]}`, `{"inputs":["\ud800"]}`, `{"inputs":["a"`,
	}
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			a := d.refused("/embed", bad[i%len(bad)])
			if a.status != 413 && a.status != 422 {
				t.Errorf("%s: %d %s", bad[i%len(bad)], a.status, a.body)
			}
		})
		group.Go(func() {
			if a := d.refused("/embed", `{"inputs":["a","b"]}`); a.status != 200 {
				t.Errorf("a good neighbour: %d %s", a.status, a.body)
			}
		})
	}
	group.Wait()
	requireInferenceError(t, d.refused("/embed", bad[1]), 413, "Validation", "text 1")
	requireInferenceError(t, d.refused("/embed", bad[0]), 422, "Validation", "text 1")
}

// Texts without any token have vectors, too, and no NaN among them.
func TestEmptyTexts(t *testing.T) {
	d := startModels(t)
	var vectors [][]float32
	d.ask("/embed", object{"inputs": []string{"", "  ", "\u200b"}}, &vectors)
	for _, v := range vectors {
		require.InDelta(t, 1, length(v), 1e-6)
	}
	var ranks []client.Rank
	d.ask("/rerank", object{"query": "", "texts": []string{"", "a"}}, &ranks)
	require.Len(t, ranks, 2)
}
