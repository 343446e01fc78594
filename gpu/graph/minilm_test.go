package graph

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sluice/gpu"
	"sluice/gpu/cpu"
	"sluice/gpu/golden"
	"sluice/model"
	"sluice/model/tokenizer"
	"sluice/needs"
)

const miniLMDir = "../cpu/testdata/minilm"

// miniLM is all-MiniLM-L6-v2; without it a test is skipped, or fails where
// nothing may be lacking.
func miniLM(t testing.TB) *model.Model {
	t.Helper()
	m, err := model.Load(needs.Model(t))
	require.NoError(t, err)
	return m
}

// Real weights: vectors as the reference library has them, of the texts that
// are not too long for here.
func TestMiniLMMeetsItsGoldens(t *testing.T) {
	m := miniLM(t)
	tok, err := tokenizer.Load(m.Tokenizer)
	require.NoError(t, err)
	d, fast := New(m), cpu.New(m, 0)
	defer fast.Close()
	texts, err := os.Open(filepath.Join(miniLMDir, "texts.jsonl"))
	require.NoError(t, err)
	defer texts.Close()
	vectors, err := os.Open(filepath.Join(miniLMDir, "embeddings_256.f32le"))
	require.NoError(t, err)
	defer vectors.Close()
	compared, lines := 0, json.NewDecoder(texts)
	for compared < 8 {
		var line struct{ Text string }
		require.NoError(t, lines.Decode(&line))
		want := make([]float32, 384)
		require.NoError(t, binary.Read(vectors, binary.LittleEndian, want))
		var e tokenizer.Encoding
		require.NoError(t, tok.Encode(&e, line.Text, tokenizer.Options{MaxLength: 256, ParseSpecialTokens: true}))
		if e.Len() > 40 {
			continue
		}
		compared++
		c := golden.Case{IDs: e.IDs, Types: e.TypeIDs}
		got := runAll(t, d, 384, c)
		golden.RequireNear(t, want, got.Pooled, 2e-6, line.Text)
		requireCosines(t, runAll(t, fast, 384, c).Tokens, got.Tokens, 384)
	}
}

// BenchmarkEmbed is one sequence at a time, here and on the device for use, by
// turns. Beside other work, tokens per CPU second say more.
func BenchmarkEmbed(b *testing.B) {
	m := miniLM(b)
	fast := cpu.New(m, 1)
	defer fast.Close()
	graph := New(m)
	for _, n := range []int{16, 128, 256} {
		b.Run(fmt.Sprintf("gorgonia/%d", n), func(b *testing.B) { benchmark(b, graph, n) })
		b.Run(fmt.Sprintf("cpu/%d", n), func(b *testing.B) { benchmark(b, fast, n) })
	}
}

func benchmark(b *testing.B, d gpu.Device, n int) {
	c := golden.Case{IDs: make([]int32, n), Types: make([]int32, n)}
	for i := range c.IDs {
		c.IDs[i] = int32(1000 + 37*i)
	}
	batch, out := golden.Batch(c), gpu.Output{Pooled: make([]float32, d.Dimensions())}
	before := cpuTime(b)
	for b.Loop() {
		require.NoError(b, d.Run(b.Context(), batch, out))
	}
	tokens := float64(n * b.N)
	b.ReportMetric(tokens/b.Elapsed().Seconds(), "tokens/s")
	b.ReportMetric(tokens/(cpuTime(b)-before).Seconds(), "tokens/CPU-s")
}

// cpuTime is what this process has used on all cores.
func cpuTime(b *testing.B) time.Duration {
	var usage unix.Rusage
	require.NoError(b, unix.Getrusage(unix.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
