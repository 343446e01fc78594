package cpu

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/kernels/ref"
	"sluice/kernels/simd"
	"sluice/model"
	"sluice/model/tokenizer"
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
	for name, source := range goldens {
		if name == "bert_f16_overflow" {
			continue // its one weight of 1e5 leaves its row nothing in 8 bits
		}
		m, err := model.Load(filepath.Join(modelsDir, name))
		require.NoError(t, err)
		want := readExpectation(t, filepath.Join(modelsDir, source, "expected.safetensors"))
		for _, pooling := range []model.Pooling{model.MeanPooling, model.CLSPooling} {
			m.Pooling = pooling
			for _, p := range narrowPrecisions {
				for _, kernels := range simd.Supported() {
					t.Run(fmt.Sprintf("%s/%s/%s/%s", name, pooling, p, kernels.Level), func(t *testing.T) {
						d := openNarrow(t, m, 2, p, kernels)
						require.Equal(t, string(p), d.Precision())
						for i, c := range readCases(t, source) {
							golden := want.tensor(fmt.Sprintf("case%d.%s_normalized", i, pooling), d.Dimensions())
							require.Greater(t, float64(ref.Dot(golden, embed(t, d, c))), 0.98, "case %d", i)
						}
					})
				}
			}
		}
	}
}

// Contract: a batch never changes a vector, not in a single bit, on any set of
// kernels, with any number of workers, shared or in chunks.
func TestNarrowBatchesChangeNothing(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	m, err := model.Load(filepath.Join(modelsDir, "bert_gelu_tanh_h48"))
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

func checkBatches(t *testing.T, one, many *Device, n, longest int, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	config := one.config
	config.Positions = longest
	cases := randomCases(r, n, config)
	alone := make([][]float32, len(cases))
	for i := range cases {
		alone[i] = embed(t, one, cases[i])
	}
	for range 5 {
		order := r.Perm(len(cases))[:1+r.IntN(len(cases))]
		var batch []goldenCase
		for _, i := range order {
			batch = append(batch, cases[i])
		}
		got := embed(t, many, batch...)
		for at, i := range order {
			require.Equal(t, alone[i], got[at*config.Hidden:][:config.Hidden], "sequence %d of %v, seed %d", i, order, seed)
		}
	}
}

// The cosines that the goldens ask for.
func TestNarrowMiniLMIsNearItsGoldens(t *testing.T) {
	texts, m := readMiniLMTexts(t), miniLM(t)
	want := readFloats(t, "testdata/minilm/embeddings_256.f32le")
	tok := loadTokenizer(t, m)
	var cases []goldenCase
	for _, x := range texts {
		var e tokenizer.Encoding
		require.NoError(t, tok.Encode(&e, x.Text, tokenizer.Options{MaxLength: 256, ParseSpecialTokens: true}))
		cases = append(cases, goldenCase{e.IDs, e.TypeIDs})
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

func TestFastestPrecision(t *testing.T) {
	want := F32
	if simd.Best().Narrow() {
		want = Int8
	}
	require.Equal(t, want, Fastest())
	_, err := ParsePrecision("f16")
	require.ErrorIs(t, err, ErrPrecision)
	_, err = NewPrecision(nil, 1, "")
	require.ErrorIs(t, err, ErrPrecision)
}

// Weights are held once, in the precision's numbers.
func TestNarrowMemory(t *testing.T) {
	m := miniLM(t)
	for p, size := range map[Precision]int{Int8: 1, BF16: 2} {
		d := openNarrow(t, m, 1, p, simd.Best())
		held := d.narrow.words.Bytes() + 4*(len(d.encoder.Position)+len(d.encoder.Type))
		numbers := len(m.Encoder.Word) + len(m.Encoder.Position) + len(m.Encoder.Type)
		for _, l := range d.narrow.layers {
			for _, w := range []*simd.Weights{l.qkv, l.out, l.up, l.down} {
				held += w.Bytes()
				numbers += w.Depth * w.Columns
			}
		}
		require.Nil(t, d.encoder.Word)
		require.LessOrEqual(t, float64(held), 1.2*float64(numbers*size), p)
	}
}
