package server

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/gpu"
	"sluice/gpu/cpu"
	"sluice/server/config"
)

// The tiny models that the APIs serve: an embedder with prompts, and a
// cross-encoder.
const (
	embeddingModel = "tiny-bert"
	rerankingModel = "tiny-judge"
	modelsDir      = "../model/testdata"
	limit          = 64 // tokens
)

// startModels is start with real models behind the backend.
func startModels(t *testing.T, change ...func(*setup)) *daemon {
	t.Helper()
	dir := t.TempDir()
	embedder, judge := filepath.Join(dir, embeddingModel), filepath.Join(dir, rerankingModel)
	require.NoError(t, os.CopyFS(embedder, os.DirFS(modelsDir+"/bert_e2e_wordpiece_cased")))
	put(t, embedder, "config_sentence_transformers.json", `{"prompts": {"query": "query: ", "long": "a b c d e f g h "}}`)
	require.NoError(t, os.CopyFS(judge, os.DirFS(modelsDir+"/roberta_seqcls_e2e_bpe_roberta")))
	tokenizer, err := os.ReadFile("../model/tokenizer/testdata/bpe_roberta/tokenizer.json")
	require.NoError(t, err)
	put(t, judge, "tokenizer.json", string(tokenizer))

	serve := func(s *setup) {
		s.budget = NewBudget(s.limits.TotalBytes)
		models, err := cpu.Open(cpu.F32, gpu.Options{Room: s.budget}, embedder, judge)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, models.Close(context.Background())) })
		reranker, ok := models.Reranker(rerankingModel)
		require.True(t, ok)
		classifier, ok := models.Classifier(rerankingModel)
		require.True(t, ok)
		s.backend = func(f *fake) { f.models, f.reranker, f.classifier = models, reranker, classifier }
	}
	return start(t, slices.Concat([]func(*setup){roomy}, change, []func(*setup){serve})...)
}

func roomy(s *setup) { s.limits.BodyBytes = config.Default().Limits.BodyBytes }

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
}

// ask posts a body as alice and reads the answer into out, which has to be 200.
func (d *daemon) ask(path string, body, out any) answer {
	d.t.Helper()
	text, err := json.Marshal(body)
	require.NoError(d.t, err)
	a := d.send("POST", path, string(text), "Authorization", bearer("alice"))
	require.Equal(d.t, 200, a.status, a.body)
	require.NoError(d.t, json.Unmarshal([]byte(a.body), out))
	return a
}

// refused posts a body as alice, and returns the answer.
func (d *daemon) refused(path, body string) answer {
	d.t.Helper()
	return d.send("POST", path, body, "Authorization", bearer("alice"))
}

// goldenPair is a pair of texts of the cross-encoder, and its logit by the
// reference library.
type goldenPair struct {
	Text    [2]string
	Logits  [1]float32
	Sigmoid [1]float32
}

func goldenPairs(t *testing.T) []goldenPair {
	t.Helper()
	data, err := os.ReadFile(modelsDir + "/roberta_seqcls_e2e_bpe_roberta/cases.json")
	require.NoError(t, err)
	var file struct{ Cases []goldenPair }
	require.NoError(t, json.Unmarshal(data, &file))
	require.NotEmpty(t, file.Cases)
	return file.Cases
}

type object = map[string]any
