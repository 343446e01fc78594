//go:build nvidia

package kernel

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"

	"sluice/kernels/ref"
	"sluice/model"
	"sluice/model/tokenizer"
	"sluice/needs"
)

const goldens = "../../cpu/testdata/minilm/"

// encoder is a BERT on the device, as a worker will have it.
type encoder struct {
	*bench
	config model.Config
	tables Tables
	layers []layer
}

type layer struct {
	qkv, out, up, down      Dense
	attentionNorm, feedNorm Norm
}

func (b *bench) miniLM() (*encoder, *tokenizer.Tokenizer) {
	m, err := model.Load(needs.Model(b))
	require.NoError(b, err)
	tok, err := tokenizer.Load(m.Tokenizer)
	require.NoError(b, err)
	return b.encoder(m), tok
}

func (b *bench) encoder(m *model.Model) *encoder {
	e := &encoder{bench: b, config: m.Config}
	norm := func(n model.Norm) Norm {
		return Norm{upload(b, n.Gain), upload(b, n.Bias), float32(m.Config.Epsilon)}
	}
	table := func(x []float32) cu.DevicePtr { return upload(b, rounded(slices.Clone(x))) }
	dense := func(a model.Activation, parts ...model.Dense) Dense {
		d := Dense{In: parts[0].In}
		var weight, bias []float32
		for _, p := range parts {
			d.Out += p.Out
			weight, bias = append(weight, p.Weight...), append(bias, p.Bias...)
		}
		var err error
		d.Activation, err = ActivationOf(a)
		require.NoError(b, err)
		d.Weight, d.Bias = upload(b, rounded(weight)), upload(b, bias)
		return d
	}
	e.tables = Tables{table(m.Encoder.Word), table(m.Encoder.Position), table(m.Encoder.Type), norm(m.Encoder.Norm), m.Config.Hidden}
	for _, l := range m.Encoder.Layers {
		e.layers = append(e.layers, layer{
			dense(model.Identity, l.Query, l.Key, l.Value), dense(model.Identity, l.AttentionOut),
			dense(m.Config.Activation, l.Up), dense(model.Identity, l.Down), norm(l.AttentionNorm), norm(l.OutputNorm),
		})
	}
	return e
}

// run embeds sequences laid end to end, and returns a vector of each.
func (e *encoder) run(ids, types []int32, offsets []int) []float32 {
	b, c, tokens := e.bench, e.config, len(ids)
	var positions, bounds []int32
	for i := range len(offsets) - 1 {
		for at := range offsets[i+1] - offsets[i] {
			positions = append(positions, int32(at))
		}
	}
	for _, at := range offsets {
		bounds = append(bounds, int32(at))
	}
	x, y, context := room(b, 2*tokens*c.Hidden), room(b, 2*tokens*c.Hidden), room(b, 2*tokens*c.Hidden)
	qkv, middle := room(b, 6*tokens*c.Hidden), room(b, 2*tokens*c.Intermediate)
	work := AppendTiles(nil, offsets)
	tiles, s := upload(b, work), cu.NoStream
	require.NoError(b, b.Embed(s, x, e.tables, upload(b, ids), upload(b, positions), upload(b, types), tokens))
	for _, l := range e.layers {
		require.NoError(b, b.Multiply(s, qkv, x, 0, l.qkv, tokens))
		require.NoError(b, b.Attention(s, context, qkv, tiles, len(work), Heads{Count: c.Heads, Size: c.HeadSize(), Used: c.HeadSize()}))
		require.NoError(b, b.Multiply(s, y, context, x, l.out, tokens))
		require.NoError(b, b.LayerNorm(s, x, y, 0, l.attentionNorm, tokens, c.Hidden))
		require.NoError(b, b.Multiply(s, middle, x, 0, l.up, tokens))
		require.NoError(b, b.Multiply(s, y, middle, x, l.down, tokens))
		require.NoError(b, b.LayerNorm(s, x, y, 0, l.feedNorm, tokens, c.Hidden))
	}
	n := len(offsets) - 1
	out := room(b, 4*n*c.Hidden)
	require.NoError(b, b.Pool(s, out, 0, x, upload(b, bounds), MeanPooling, true, n, c.Hidden))
	return download[float32](b, out, n*c.Hidden)
}

// The kernels together are a model: in bfloat16, a short batch of
// all-MiniLM-L6-v2 is where float32 has it.
func TestMiniLM(t *testing.T) {
	b := open(t)
	e, tok := b.miniLM()
	texts, err := os.Open(goldens + "texts.jsonl")
	require.NoError(t, err)
	defer texts.Close()
	vectors, err := os.Open(goldens + "embeddings_256.f32le")
	require.NoError(t, err)
	defer vectors.Close()
	var ids, types []int32
	offsets, want := []int{0}, []float32{}
	for lines := bufio.NewScanner(texts); len(offsets) < 7 && lines.Scan(); {
		var line struct{ Text string }
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
		var encoding tokenizer.Encoding
		require.NoError(t, tok.Encode(&encoding, line.Text, tokenizer.Options{ParseSpecialTokens: true}))
		vector := make([]float32, e.config.Hidden)
		require.NoError(t, binary.Read(vectors, binary.LittleEndian, vector))
		if encoding.Len() > 40 {
			continue
		}
		ids, types, want = append(ids, encoding.IDs...), append(types, encoding.TypeIDs...), append(want, vector...)
		offsets = append(offsets, len(ids))
	}
	began := time.Now()
	got := e.run(ids, types, offsets)
	t.Logf("%d tokens in %v", len(ids), time.Since(began))
	for i := range len(offsets) - 1 {
		cosine := ref.Dot(want[i*e.config.Hidden:][:e.config.Hidden], got[i*e.config.Hidden:][:e.config.Hidden])
		t.Logf("%d tokens: 1 − cosine %.2g", offsets[i+1]-offsets[i], 1-cosine)
		require.InDelta(t, 1, cosine, 5e-4)
	}
}
