package cpu

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/gpu"
	"sluice/gpu/golden"
	"sluice/kernels/ref"
	"sluice/kernels/simd"
	"sluice/model"
	"sluice/model/tokenizer"
	"sluice/needs"
)

var narrowPrecisions = []Precision{BF16, Int8}

func openNarrow(t testing.TB, m *model.Model, workers int, p Precision, kernels *simd.Set) *Device {
	d := newPrecision(m, workers, p, kernels)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// Tiny models of random weights are no measure of quality, but whatever is
// broken shows in them: heads of 8 and 12, widths of 32 and 48, outliers.
func TestNarrowTinyModels(t *testing.T) {
	for _, name := range golden.Models(t) {
		m, err := model.Load(filepath.Join(golden.Dir, name))
		require.NoError(t, err)
		for _, p := range narrowPrecisions {
			for _, kernels := range simd.Supported() {
				if bound := tinyBound(m, p); bound > 0 {
					t.Run(fmt.Sprintf("%s/%s/%s", name, p, kernels.Level), func(t *testing.T) { checkNarrow(t, m, p, kernels, bound) })
				}
			}
		}
	}
}

// tinyBound is the least cosine that is asked for; 0: none. So narrow a model's
// rotation reaches 8 or 16 elements, not 32, which gates suffer from most: their
// products' outliers meet those of the weights.
func tinyBound(m *model.Model, p Precision) float64 {
	switch {
	case p == BF16:
		return 0.9999
	case m.Name == "bert_f16_overflow":
		return 0 // its one weight of 1e5 leaves its row nothing in 8 bits
	case m.Config.Gated && !m.Config.PreNorm:
		return 0.97
	}
	return 0.995
}

// checkNarrow compares vectors, and the logits of all cases, with those of
// float32.
func checkNarrow(t *testing.T, m *model.Model, p Precision, kernels *simd.Set, bound float64) {
	d := openNarrow(t, m, 2, p, kernels)
	require.Equal(t, string(p), d.Precision())
	plain := openNarrow(t, m, 2, F32, kernels)
	var wanted, got []float32
	for i, c := range golden.Cases(t, golden.Source(m.Name)) {
		a, b := runAll(t, plain, c), runAll(t, d, c)
		require.Greater(t, float64(ref.Dot(a.Pooled, b.Pooled)), bound, "case %d", i)
		wanted, got = append(wanted, a.Logits...), append(got, b.Logits...)
	}
	if d.Labels() > 0 {
		ref.Normalize(wanted)
		ref.Normalize(got)
		require.Greater(t, float64(ref.Dot(wanted, got)), map[Precision]float64{BF16: 0.9995, Int8: 0.93}[p], "logits")
	}
}

// Contract: a batch never changes a vector, not in a single bit, on any set of
// kernels, with any number of workers, shared or in chunks.
func TestNarrowBatchesChangeNothing(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	m, err := model.Load(filepath.Join(golden.Dir, "bert_gelu_tanh_h48"))
	require.NoError(t, err)
	for _, p := range narrowPrecisions {
		for _, kernels := range simd.Supported() {
			t.Run(string(p)+"/"+kernels.Level, func(t *testing.T) {
				checkBatches(t, openNarrow(t, m, 1, p, kernels), openNarrow(t, m, 3, p, kernels), 40, 64, seed)
			})
		}
	}
}

func TestNarrowMiniLMBatchesChangeNothing(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	m := miniLM(t)
	for _, p := range narrowPrecisions {
		for _, kernels := range simd.Supported() {
			if !kernels.Narrow() {
				continue // plain Go takes too long
			}
			t.Run(string(p)+"/"+kernels.Level, func(t *testing.T) {
				checkBatches(t, openNarrow(t, m, 1, p, kernels), openNarrow(t, m, 2, p, kernels), 12, 90, seed)
			})
		}
	}
}

// checkBatches compares all that two devices of one model say of sequences
// alone, on the one, and in random batches, on the other.
func checkBatches(t *testing.T, one, many *Device, n, longest int, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	config := one.config
	config.Positions = longest
	cases := randomCases(r, n, config)
	alone := make([]gpu.Output, len(cases))
	for i := range cases {
		alone[i] = runAll(t, one, cases[i])
	}
	for range 5 {
		order := r.Perm(len(cases))[:1+r.IntN(len(cases))]
		var batch []golden.Case
		for _, i := range order {
			batch = append(batch, cases[i])
		}
		got, tokens := runAll(t, many, batch...), 0
		for at, i := range order {
			length := len(cases[i].IDs)
			require.Equal(t, alone[i], gpu.Output{
				Pooled: got.Pooled[at*config.Hidden:][:config.Hidden],
				Tokens: got.Tokens[tokens*config.Hidden:][:length*config.Hidden],
				Logits: got.Logits[at*one.Labels() : (at+1)*one.Labels()],
			}, "sequence %d of %v, seed %d", i, order, seed)
			tokens += length
		}
	}
}

func runAll(t *testing.T, d *Device, cases ...golden.Case) gpu.Output {
	t.Helper()
	b := golden.Batch(cases...)
	out := gpu.Output{
		Pooled: make([]float32, b.Len()*d.Dimensions()),
		Tokens: make([]float32, b.Tokens()*d.Dimensions()),
		Logits: make([]float32, b.Len()*d.Labels()),
	}
	if d.Labels() == 0 {
		out.Logits = nil
	}
	require.NoError(t, d.Run(t.Context(), b, out))
	return out
}

// A bulk batch gives way in every layer, and is computed as any other.
func TestBulkGivesWay(t *testing.T) {
	m, err := model.Load(filepath.Join(golden.Dir, "bert"))
	require.NoError(t, err)
	cases := golden.Cases(t, "bert")
	for p, each := range map[Precision]int{F32: 1, BF16: 2, Int8: 2} {
		d := openNarrow(t, m, 1, p, simd.Best())
		want, yields := runAll(t, d, cases...), 0
		b := golden.Batch(cases...)
		b.GiveWay = func() { yields++ }
		got := make([]float32, len(want.Pooled))
		require.NoError(t, d.Run(t.Context(), b, gpu.Output{Pooled: got}))
		require.Equal(t, want.Pooled, got)
		require.Equal(t, each*m.Config.Layers, yields, p)
	}
}

// The cosines that the goldens ask for.
func TestNarrowMiniLMIsNearItsGoldens(t *testing.T) {
	texts, m := readMiniLMTexts(t), miniLM(t)
	want := readFloats(t, "testdata/minilm/embeddings_256.f32le")
	tok := loadTokenizer(t, m)
	var cases []golden.Case
	for _, x := range texts {
		var e tokenizer.Encoding
		require.NoError(t, tok.Encode(&e, x.Text, tokenizer.Options{MaxLength: 256, ParseSpecialTokens: true}))
		cases = append(cases, golden.Case{IDs: e.IDs, Types: e.TypeIDs})
	}
	bounds := map[Precision][2]float64{BF16: {0.9998, 0.9999}, Int8: {0.995, 0.9995}}
	for p, bound := range bounds {
		d := openNarrow(t, m, 0, p, simd.Best())
		var cosines []float64
		for i, v := range slices.Collect(slices.Chunk(embed(t, d, cases...), 384)) {
			cosines = append(cosines, float64(ref.Dot(v, want[i*384:][:384])))
		}
		slices.Sort(cosines)
		t.Logf("%s on %s: least cosine %.5f, median %.5f", p, d.Kernels(), cosines[0], cosines[len(cosines)/2])
		require.Greater(t, cosines[0], bound[0])
		require.Greater(t, cosines[len(cosines)/2], bound[1])
	}
}

// Auto takes 8 bits where the CPU has instructions for them and the model bears
// them.
func TestFastestPrecision(t *testing.T) {
	for name, broken := range map[string]bool{"bears 8 bits": false, "does not": true} {
		m, err := model.Load(filepath.Join(golden.Dir, "bert_e2e_wordpiece_cased"))
		require.NoError(t, err)
		if broken { // as bert_f16_overflow
			for i := range m.Encoder.Layers {
				m.Encoder.Layers[i].Down.Weight[0] = 1e5
			}
		}
		for _, kernels := range simd.Supported() {
			t.Run(name+"/"+kernels.Level, func(t *testing.T) {
				d, err := fastest(m, loadTokenizer(t, m), 1, kernels)
				require.NoError(t, err)
				defer d.Close()
				want := Int8
				switch {
				case !kernels.Narrow(), broken && !kernels.FastBF16():
					want = F32
				case broken:
					want = BF16
				}
				require.Equal(t, string(want), d.Precision())
			})
		}
	}
	s, err := Open(Auto, gpu.Options{}, filepath.Join(golden.Dir, "bert_e2e_wordpiece_cased"))
	require.NoError(t, err)
	defer s.Close(t.Context())
	require.Equal(t, simd.Best().Narrow(), s.Info().Precision == "int8")
	_, err = ParsePrecision("f16")
	require.ErrorIs(t, err, ErrPrecision)
	_, err = NewPrecision(nil, 1, "")
	require.ErrorIs(t, err, ErrPrecision)
}

// Open holds a model's weights once, in its precision's numbers: with all tables
// and the tokenizer, 1.2 times their size.
func TestOpenMemory(t *testing.T) {
	parameters := parameters(miniLM(t))
	dir := needs.Model(t)
	memory := func(p Precision) float64 {
		before := heap()
		s, err := Open(p, gpu.Options{}, dir)
		require.NoError(t, err)
		held := heap() - before
		require.NoError(t, s.Close(t.Context()))
		return float64(held)
	}
	memory(Int8) // tables that the process has once
	for p, size := range map[Precision]int{F32: 4, BF16: 2, Int8: 1} {
		require.LessOrEqual(t, memory(p), 1.2*float64(parameters*size), p)
	}
}
