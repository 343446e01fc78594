package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const tinyModel = "../model/testdata/bert_e2e_wordpiece_cased"

func tinyOptions() EmbedOptions {
	return EmbedOptions{Model: tinyModel, Threads: 2, Rounds: 3, Turn: time.Millisecond, Shapes: []Shape{Even(32, 32), Even(1, 16)}}
}

func TestEmbed(t *testing.T) {
	o := tinyOptions()
	var log strings.Builder
	o.Log = &log
	file, err := Embed(t.Context(), o)
	require.NoError(t, err)
	for _, p := range precisions {
		for _, name := range []string{".tokens_per_s", ".32x32.tokens_per_s", ".32x32.tokens_per_cpu_s", ".1x16.ms"} {
			require.Positive(t, file.Figures[string(p)+name], string(p)+name)
		}
		require.InDelta(t, 1, file.Figures[string(p)+".1x16.cosine_min"], 0.02)
	}
	require.NoError(t, file.Write(filepath.Join(t.TempDir(), "figures.json")))
	require.Contains(t, log.String(), "32x32    int8")
}

// A process that plays a peer: twice as slow as it says nothing of, exact.
const fakePeer = `import json, sys
print(json.dumps({"peers": ["other_f32"]}), flush=True)
for line in sys.stdin:
    r = json.loads(line)
    vector = [1.0] + [0.0] * 31
    print(json.dumps({"seconds": 0.5 * r["runs"], "cpu_seconds": 0.25 * r["runs"], "vectors": [vector for _ in r["ids"]]}), flush=True)
`

func TestEmbedWithPeers(t *testing.T) {
	script := filepath.Join(t.TempDir(), "peer.py")
	require.NoError(t, os.WriteFile(script, []byte(fakePeer), 0o644))
	o := tinyOptions()
	o.Peers = &Peers{Python: "python3", Script: script}
	file, err := Embed(t.Context(), o)
	require.NoError(t, err)
	require.InEpsilon(t, 32*32/0.5, file.Figures["other.f32.tokens_per_s"], 1e-6)
	require.InEpsilon(t, 16/0.25, file.Figures["other.f32.1x16.tokens_per_cpu_s"], 1e-6)
	require.InEpsilon(t, 500, file.Figures["other.f32.ms"], 1e-6)
	ratio := file.Figures["ratio.int8_to_other_f32"]
	require.Positive(t, ratio)
	require.LessOrEqual(t, file.Figures["ratio.int8_to_other_f32.min"], ratio)
	require.GreaterOrEqual(t, file.Figures["ratio.int8_to_other_f32.max"], ratio)
	require.Positive(t, file.Figures["ratio.cpu.bf16_to_other_f32.1x16"])
	require.Less(t, file.Figures["other.f32.1x16.cosine_min"], 0.99, "it answers nonsense")
}

func TestEmbedErrors(t *testing.T) {
	o := tinyOptions()
	o.Peers = &Peers{Python: "python3", Script: "absent.py"}
	_, err := Embed(t.Context(), o)
	require.ErrorContains(t, err, "peers")
	o = tinyOptions()
	o.Goldens = t.TempDir()
	_, err = Embed(t.Context(), o)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Embed(t.Context(), EmbedOptions{Model: t.TempDir()})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestMixedLengths(t *testing.T) {
	s := Mixed(128)
	require.Len(t, s.Lengths, 128)
	total := 0
	for i, sequence := range s.ids(100) {
		require.Len(t, sequence, s.Lengths[i])
		total += len(sequence)
	}
	require.Equal(t, total, s.Tokens())
	require.Equal(t, Mixed(128), s, "the same at every call")
}
