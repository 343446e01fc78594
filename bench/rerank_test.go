package bench

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/model"
)

const fakeScorer = `import json, sys
assert "logits" in sys.argv
print(json.dumps({"peers": ["other_f32"]}), flush=True)
for line in sys.stdin:
    r = json.loads(line)
    n = r["runs"]
    print(json.dumps({"seconds": 3.0 * n, "cpu_seconds": 1.5 * n, "times": [3.0] * n, "vectors": [[9.0] for _ in r["ids"]]}), flush=True)
`

func TestRerank(t *testing.T) {
	script := filepath.Join(t.TempDir(), "peer.py")
	require.NoError(t, os.WriteFile(script, []byte(fakeScorer), 0o644))
	file, err := Rerank(t.Context(), RerankOptions{
		Model: tinyModel, Threads: 2, Rounds: 3, Turn: time.Millisecond, Peers: &Peers{Python: "python3", Script: script},
	})
	require.NoError(t, err)
	f := file.Figures
	require.NoError(t, file.Write(filepath.Join(t.TempDir(), "figures.json")))
	for _, c := range []string{"f32", "bf16", "int8", "late"} {
		for _, name := range []string{".pairs_per_s", ".pairs_per_cpu_s", ".p50_ms", ".p95_ms"} {
			require.Positive(t, f[c+name], c+name)
		}
	}
	require.Zero(t, f["f32.logit_error_max"])
	require.Less(t, f["int8.logit_error_max"], .2)
	require.Greater(t, f["other.f32.logit_error_max"], 5.0, "it answers nonsense")
	require.NotContains(t, f, "late.logit_error_max")
	require.InEpsilon(t, 10, f["other.f32.pairs_per_s"], 1e-6)
	require.InEpsilon(t, 20, f["other.f32.pairs_per_cpu_s"], 1e-6)
	require.InEpsilon(t, 3000, f["other.f32.p95_ms"], .002)
	require.InEpsilon(t, f["int8.pairs_per_s"]/10, f["ratio.int8_to_other_f32"], 1e-6)
	require.LessOrEqual(t, f["ratio.late_to_other_f32.min"], f["ratio.late_to_other_f32.max"])
	require.Positive(t, f["ratio.late_to_int8"])
}

// A head is added to an encoder, and nothing else changes.
func TestWithHead(t *testing.T) {
	encoder, err := model.Load(tinyModel)
	require.NoError(t, err)
	dir := t.TempDir()
	m, folder, err := crossEncoder(tinyModel, dir)
	require.NoError(t, err)
	require.Equal(t, dir, folder)
	require.Len(t, m.Classifier.Labels, 1)
	require.Equal(t, encoder.Encoder, m.Encoder)
	_, again, err := crossEncoder(dir, t.TempDir())
	require.NoError(t, err)
	require.Equal(t, dir, again, "a classifier stays as it is")

	data, err := os.ReadFile(filepath.Join(tinyModel, "model.safetensors"))
	require.NoError(t, err)
	cut := filepath.Join(t.TempDir(), "model.safetensors")
	require.NoError(t, os.WriteFile(cut, data[:12], 0o644))
	require.ErrorContains(t, addHead(cut, cut, 32), "cut short")
	_, _, err = crossEncoder(t.TempDir(), t.TempDir())
	require.ErrorIs(t, err, os.ErrNotExist)
}
