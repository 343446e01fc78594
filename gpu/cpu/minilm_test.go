package cpu

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/gpu/golden"
	"sluice/kernels/ref"
	"sluice/kernels/simd"
	"sluice/model"
	"sluice/model/tokenizer"
	"sluice/needs"
)

func miniLM(t testing.TB) *model.Model {
	t.Helper()
	m, err := model.Load(needs.Model(t))
	require.NoError(t, err)
	return m
}

func loadTokenizer(t testing.TB, m *model.Model) *tokenizer.Tokenizer {
	t.Helper()
	tok, err := tokenizer.Load(m.Tokenizer)
	require.NoError(t, err)
	return tok
}

func TestMiniLMAsPublished(t *testing.T) {
	m := miniLM(t)
	require.Equal(t, 256, m.MaxTokens)
	require.Equal(t, model.MeanPooling, m.Pooling)
	require.Equal(t, model.Config{Architecture: "BertModel", Hidden: 384, Layers: 6, Heads: 12, Intermediate: 1536,
		Vocabulary: 30522, Positions: 512, Types: 2, Activation: model.GELU, Epsilon: 1e-12, Attention: make([]model.Attention, 6)}, m.Config)
}

type miniLMText struct {
	Text string
	N    int `json:"n_tokens"`
	N256 int `json:"n_tokens_256"`
	N512 int `json:"n_tokens_512"`
}

func readMiniLMTexts(t *testing.T) (texts []miniLMText) {
	t.Helper()
	data, err := os.ReadFile("testdata/minilm/texts.jsonl")
	require.NoError(t, err)
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		var text miniLMText
		err := d.Decode(&text)
		if err == io.EOF {
			return texts
		}
		require.NoError(t, err)
		texts = append(texts, text)
	}
}

func readFloats(t *testing.T, path string) []float32 {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	values := make([]float32, len(data)/4)
	require.NoError(t, binary.Read(bytes.NewReader(data), binary.LittleEndian, values))
	return values
}

// The goldens were made with special tokens parsed in the texts.
func TestMiniLMMeetsItsGoldens(t *testing.T) {
	texts := readMiniLMTexts(t)
	require.Len(t, texts, 200)
	m := miniLM(t)
	d := New(m, 0)
	defer d.Close()
	check := func(file string, limit int, use func(miniLMText) bool, tokens func(miniLMText) int) {
		want := readFloats(t, filepath.Join("testdata/minilm", file))
		tok, batch, worst := loadTokenizer(t, m), 16, 0.0
		var cases []golden.Case
		var rows []int
		flush := func() {
			for at, v := range slices.Collect(slices.Chunk(embed(t, d, cases...), 384)) {
				w := want[rows[at]*384:][:384]
				golden.RequireNear(t, w, v, 2e-6, texts[rows[at]].Text)
				worst = max(worst, largestDifference(w, v))
			}
			cases, rows = cases[:0], rows[:0]
		}
		for i, x := range texts {
			if !use(x) {
				continue
			}
			var e tokenizer.Encoding
			require.NoError(t, tok.Encode(&e, x.Text, tokenizer.Options{MaxLength: limit, ParseSpecialTokens: true}))
			require.Equal(t, tokens(x), e.Len(), "text %d", i)
			require.Equal(t, x.N > limit, e.Truncated(), "text %d", i)
			cases, rows = append(cases, golden.Case{IDs: e.IDs, Types: e.TypeIDs}), append(rows, i)
			if len(cases) == batch {
				flush()
			}
		}
		flush()
		t.Logf("%s: largest difference %.2g", file, worst)
	}
	check("embeddings_256.f32le", 256, func(miniLMText) bool { return true }, func(x miniLMText) int { return x.N256 })
	// The shorter ones are the same rows in both files.
	check("embeddings_512.f32le", 512, func(x miniLMText) bool { return x.N > 256 }, func(x miniLMText) int { return x.N512 })
}

func largestDifference(a, b []float32) (worst float64) {
	for i := range a {
		worst = max(worst, math.Abs(float64(a[i])-float64(b[i])))
	}
	return worst
}

func TestMiniLMHiddenStates(t *testing.T) {
	m := miniLM(t)
	var e tokenizer.Encoding
	require.NoError(t, loadTokenizer(t, m).Encode(&e, "How many paid volunteer days do EU employees receive?", tokenizer.Options{}))
	c := golden.Case{IDs: e.IDs, Types: e.TypeIDs}
	for _, kernels := range simd.Supported() {
		t.Run(kernels.Level, func(t *testing.T) {
			d := newDevice(m, 2, kernels)
			defer d.Close()
			want := golden.Read(t, "testdata/minilm/debug_hidden_states.safetensors")
			checkLayers(t, d, c, want, "")
			golden.RequireNear(t, want.Tensor("normalized", 384), embed(t, d, c), 2e-6, "normalized")
		})
	}
}

// Vectors that others published, of texts that are not cut: where theirs cuts,
// it drops the last special token too.
func TestMiniLMAgainstPublishedVectors(t *testing.T) {
	dir := needs.Data(t, "fiori-minilm-vectors")
	records, err := os.Open(filepath.Join(dir, "records.jsonl"))
	require.NoError(t, err)
	defer records.Close()
	want := readFloats(t, filepath.Join(dir, "embeddings.bin"))
	m := miniLM(t)
	d, tok := New(m, 0), loadTokenizer(t, m)
	defer d.Close()
	compared := 0
	for i, lines := 0, json.NewDecoder(records); compared < 15; i++ {
		var r struct{ Content string }
		require.NoError(t, lines.Decode(&r))
		var e tokenizer.Encoding
		require.NoError(t, tok.Encode(&e, r.Content, tokenizer.Options{MaxLength: m.Config.Positions}))
		if e.Truncated() {
			continue
		}
		compared++
		v := embed(t, d, golden.Case{IDs: e.IDs, Types: e.TypeIDs})
		require.InDelta(t, 1, ref.Dot(v, want[i*384:(i+1)*384]), 1e-6, "record %d", i)
	}
}

// Contract: a batch never changes a vector, not in a single bit.
func TestMiniLMBatchesChangeNothing(t *testing.T) {
	d := New(miniLM(t), 2)
	defer d.Close()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	cases := make([]golden.Case, 12)
	alone := make([][]float32, len(cases))
	for i := range cases {
		n := 1 + r.IntN(70)
		cases[i].Types = make([]int32, n)
		for range n {
			cases[i].IDs = append(cases[i].IDs, int32(r.IntN(d.config.Vocabulary)))
		}
		alone[i] = embed(t, d, cases[i])
	}
	for range 6 {
		order := r.Perm(len(cases))[:1+r.IntN(len(cases))]
		var batch []golden.Case
		for _, i := range order {
			batch = append(batch, cases[i])
		}
		got := embed(t, d, batch...)
		for at, i := range order {
			require.Equal(t, alone[i], got[at*384:(at+1)*384], "sequence %d of %v, seed %d", i, order, seed)
		}
	}
}
