package cpu

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/gpu"
	"sluice/gpu/golden"
	"sluice/kernels/simd"
	"sluice/model"
	"sluice/model/tokenizer"
)

// From a pair of texts to a score, with each kind of tokenizer.
func TestCrossEncodersEndToEnd(t *testing.T) {
	for name, length := range map[string]int{
		"roberta_seqcls_e2e_bpe_roberta": 64, "xlmr_seqcls_e2e_unigram": 64, "modernbert_seqcls_e2e_bpe": 96,
	} {
		t.Run(name, func(t *testing.T) { checkCrossEncoder(t, name, length) })
	}
}

func checkCrossEncoder(t *testing.T, name string, length int) {
	var file struct {
		Tokenizer string
		Cases     []struct {
			IDs             []int32
			Text            [2]string
			Logits, Sigmoid []float32
		}
	}
	data, err := os.ReadFile(filepath.Join(golden.Dir, name, "cases.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &file))
	m, err := model.Load(filepath.Join(golden.Dir, name))
	require.NoError(t, err)
	tok, err := tokenizer.Load(filepath.Join("../../model/tokenizer/testdata", file.Tokenizer, "tokenizer.json"))
	require.NoError(t, err)
	d := newDevice(m, 2, simd.Best())
	defer d.Close()
	var batch gpu.Batch
	batch.Reset()
	for _, c := range file.Cases {
		var e tokenizer.Encoding
		require.NoError(t, tok.EncodePair(&e, c.Text[0], c.Text[1], tokenizer.Options{MaxLength: length}))
		require.Equal(t, c.IDs, e.IDs, c.Text)
		batch.Append(e.IDs, e.TypeIDs)
	}
	logits := make([]float32, batch.Len())
	require.NoError(t, d.Run(t.Context(), &batch, gpu.Output{Logits: logits}))
	for i, c := range file.Cases {
		require.InDelta(t, c.Logits[0], logits[i], 1e-4, c.Text)
		require.InDelta(t, c.Sigmoid[0], m.Classifier.Score(logits[i]), 1e-4, c.Text)
	}
}
