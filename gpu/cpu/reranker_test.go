package cpu

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/gpu"
	"sluice/gpu/golden"
)

// crossEncoders are the tiny ones with texts, and their tokenizers.
var crossEncoders = map[string]string{
	"roberta_seqcls_e2e_bpe_roberta": "bpe_roberta",
	"xlmr_seqcls_e2e_unigram":        "unigram_precompiled",
	"modernbert_seqcls_e2e_bpe":      "bpe_modernbert",
}

// withTokenizer is a folder of the model's files and its tokenizer.
func withTokenizer(t *testing.T, name, tokenizer string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join(golden.Dir, name))))
	data, err := os.ReadFile(filepath.Join("../../model/tokenizer/testdata", tokenizer, "tokenizer.json"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tokenizer.json"), data, 0o644))
	return dir
}

type textCase struct {
	Text    []string
	Logits  []float32
	Sigmoid []float32
}

func textCases(t *testing.T, name string) []textCase {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(golden.Dir, name, "cases.json"))
	require.NoError(t, err)
	var file struct{ Cases []textCase }
	require.NoError(t, json.Unmarshal(data, &file))
	require.NotEmpty(t, file.Cases)
	return file.Cases
}

// openReranker serves a cross-encoder alone.
func openReranker(t *testing.T, name string) gpu.Reranker {
	t.Helper()
	s, err := Open(F32, gpu.Options{}, withTokenizer(t, name, crossEncoders[name]))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	r, ok := s.Reranker(name)
	require.True(t, ok)
	return r
}

// From pairs of texts to logits and scores, against the reference library.
func TestCrossEncoders(t *testing.T) {
	for name := range crossEncoders {
		t.Run(name, func(t *testing.T) {
			r := openReranker(t, name)
			for i, c := range textCases(t, name) {
				got, err := r.Score(t.Context(), gpu.ScoreRequest{Pairs: []gpu.Pair{{First: c.Text[0], Second: c.Text[1]}}})
				require.NoError(t, err)
				require.InDelta(t, c.Logits[0], got[0].Logit, 1e-4, "case %d", i)
				require.InDelta(t, c.Sigmoid[0], got[0].Value, 1e-5, "case %d", i)
			}
		})
	}
}

// A list scores as its pairs do one by one, to 1e-5 (fastembed); here it is to
// the bit.
func TestListEqualsPairs(t *testing.T) {
	const name = "roberta_seqcls_e2e_bpe_roberta"
	r := openReranker(t, name)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	cases := textCases(t, name)
	var pairs []gpu.Pair
	for range 40 {
		a, b := cases[random.IntN(len(cases))], cases[random.IntN(len(cases))]
		pairs = append(pairs, gpu.Pair{First: a.Text[random.IntN(2)], Second: b.Text[random.IntN(2)]})
	}
	list, err := r.Score(t.Context(), gpu.ScoreRequest{Pairs: pairs})
	require.NoError(t, err)
	for i, p := range pairs {
		one, err := r.Score(t.Context(), gpu.ScoreRequest{Pairs: []gpu.Pair{p}})
		require.NoError(t, err)
		require.InDelta(t, one[0].Logit, list[i].Logit, 1e-5)
		require.Equal(t, one[0].Logit, list[i].Logit, "pair %d", i)
	}
}
