//go:build nvidia

package worker

import (
	"errors"
	"fmt"

	"gorgonia.org/cu"

	"sluice/gpu/cuda/kernel"
	"sluice/gpu/cuda/wire"
	"sluice/kernels/ref"
	"sluice/model"
)

// Model is a model's weights on the device: matrices and tables in bfloat16,
// the rest, projections and heads in float32.
type Model struct {
	config      model.Config
	tables      kernel.Tables
	layers      []layer
	final       kernel.Norm
	headSize    int // of a head in rows of queries, keys and values
	pooling     kernel.Pooling
	projections []kernel.Dense
	classifier  *classifier // nil: none
	kernels     map[wire.Product]kernel.Choice
	uploads
}

// layer is a model.Layer: qkv yields query, key and value side by side.
type layer struct {
	qkv, out, up, gate, down  kernel.Dense
	attentionNorm, outputNorm kernel.Norm
	heads                     kernel.Heads
	turn                      kernel.Turn // no Cos: none
}

type classifier struct {
	pooling kernel.Pooling
	head    kernel.Head
}

// widest is what the kernels of embeddings, normalisation, pooling and heads take.
const widest = 1024

// Load copies m's weights to the device. Its products are multiplied by the
// kernels that are named for them, in ascending order of rows.
func (d *Device) Load(m *model.Model, kernels ...wire.Tried) (*Model, error) {
	chosen, err := d.choose(kernels)
	if err != nil {
		return nil, err
	}
	loaded := &Model{config: m.Config, kernels: chosen}
	if err := loaded.load(m); err != nil {
		return nil, errors.Join(err, loaded.Close())
	}
	return loaded, nil
}

func (d *Device) choose(kernels []wire.Tried) (map[wire.Product]kernel.Choice, error) {
	picks, chosen := map[wire.Product][]kernel.Pick{}, map[wire.Product]kernel.Choice{}
	for _, k := range kernels {
		picks[k.Product] = append(picks[k.Product], kernel.Pick{Rows: k.Rows, Kernel: k.Kernel})
	}
	for product, of := range picks {
		var err error
		if chosen[product], err = d.kernels.Choose(of); err != nil {
			return nil, err
		}
	}
	return chosen, nil
}

func (m *Model) load(from *model.Model) (err error) {
	if err := suits(from); err != nil {
		return err
	}
	if m.headSize, err = kernel.HeadSize(from.Config.HeadSize()); err != nil {
		return err
	}
	e := from.Encoder
	m.tables = kernel.Tables{
		Word: m.halves(e.Word), Position: m.halves(e.Position), Type: m.halves(e.Type), Norm: m.norm(e.Norm), Width: m.config.Hidden,
	}
	m.final = m.norm(e.Final)
	m.loadLayers(e)
	m.loadHeads(from)
	return m.err
}

// suits refuses what the kernels cannot do.
func suits(m *model.Model) error {
	c := m.Config
	if err := multiplies(c); err != nil {
		return err
	}
	for _, a := range c.Attention {
		if a.Theta > 0 && (c.HeadSize()%4 != 0 || c.Offset > 0) {
			return fmt.Errorf("%w: on CUDA, rotary embeddings of heads of %d", model.ErrUnsupported, c.HeadSize())
		}
	}
	if m.Classifier != nil && m.Classifier.Dense.Out != c.Hidden {
		return fmt.Errorf("%w: on CUDA, a classification head of %d by %d", model.ErrUnsupported, m.Classifier.Dense.Out, c.Hidden)
	}
	return nil
}

// multiplies refuses shapes that the kernels for products cannot do.
func multiplies(c model.Config) error {
	if c.Hidden%8 != 0 || c.Intermediate%8 != 0 || c.Hidden > widest {
		return fmt.Errorf("%w: on CUDA, hidden size %d and intermediate size %d must be multiples of 8, the first at most %d",
			model.ErrUnsupported, c.Hidden, c.Intermediate, widest)
	}
	return nil
}

func (m *Model) loadLayers(e model.Encoder) {
	relative, zero := m.relative(e.Relative)
	turns := map[model.Attention]kernel.Turn{}
	for i, l := range e.Layers {
		a := m.config.Attention[i]
		window := a.Window
		a.Window = 0
		if _, known := turns[a]; !known {
			turns[a] = m.turn(a)
		}
		m.layers = append(m.layers, layer{
			qkv: m.dense(model.Identity, false, m.padRows(l.Query), m.padRows(l.Key), m.padRows(l.Value)), out: m.dense(model.Identity, true, m.padColumns(l.AttentionOut)),
			up: m.dense(upActivation(m.config), false, l.Up), gate: m.dense(m.config.Activation, true, l.Gate), down: m.dense(model.Identity, true, l.Down),
			attentionNorm: m.norm(l.AttentionNorm), outputNorm: m.norm(l.OutputNorm), turn: turns[a],
			heads: kernel.Heads{Count: m.config.Heads, Size: m.headSize, Used: m.config.HeadSize(), Window: window, Relative: relative, Zero: zero},
		})
	}
}

// upActivation stands after Up where there is no Gate.
func upActivation(c model.Config) model.Activation {
	if c.Gated {
		return model.Identity
	}
	return c.Activation
}

// padRows sets a map's heads headSize apart; rows between them are zero.
func (m *Model) padRows(d model.Dense) model.Dense {
	used, in := m.config.HeadSize(), d.In
	p := model.Dense{Weight: make([]float32, m.config.Heads*m.headSize*in), Bias: make([]float32, m.config.Heads*m.headSize), In: in, Out: m.config.Heads * m.headSize}
	for head := range m.config.Heads {
		copy(p.Weight[head*m.headSize*in:], d.Weight[head*used*in:][:used*in])
		copy(p.Bias[head*m.headSize:], d.Bias[head*used:][:used])
	}
	return p
}

// padColumns is the same of the map after attention, whose columns they are.
func (m *Model) padColumns(d model.Dense) model.Dense {
	used, in := m.config.HeadSize(), m.config.Heads*m.headSize
	p := model.Dense{Weight: make([]float32, d.Out*in), Bias: d.Bias, In: in, Out: d.Out}
	for row := range d.Out {
		for head := range m.config.Heads {
			copy(p.Weight[row*in+head*m.headSize:], d.Weight[row*d.In+head*used:][:used])
		}
	}
	return p
}

// relative is the table of distances, by head and distance.
func (m *Model) relative(table []float32) (at cu.DevicePtr, zero int) {
	if table == nil {
		return 0, 0
	}
	const log2e = 1.44269504
	zero = m.config.Positions - 1
	byHead := make([]float32, 0, m.config.Heads*(2*zero+1))
	for head := range m.config.Heads {
		for distance := -zero; distance <= zero; distance++ {
			byHead = append(byHead, log2e*table[ref.RelativeBucket(distance, m.config.Buckets)*m.config.Heads+head])
		}
	}
	return m.floats(byHead), zero
}

func (m *Model) turn(a model.Attention) kernel.Turn {
	if a.Theta == 0 {
		return kernel.Turn{}
	}
	stretch := a.Stretch
	if stretch == 0 {
		stretch = 1
	}
	cos, sin := ref.RopeTable(m.config.Positions, m.config.HeadSize(), a.Theta, stretch)
	return kernel.Turn{Cos: m.floats(cos), Sin: m.floats(sin), Half: m.config.HeadSize() / 2}
}

// loadHeads loads what comes after the encoder.
func (m *Model) loadHeads(from *model.Model) {
	m.pooling = poolings[from.Pooling]
	for _, p := range from.Projections {
		m.projections = append(m.projections, m.denseF32(p.Activation, p.Dense))
	}
	if c := from.Classifier; c != nil {
		m.classifier = &classifier{poolings[c.Pooling], kernel.Head{
			Dense: m.denseF32(c.Activation, c.Dense), Norm: m.norm(c.Norm), Out: m.denseF32(model.Identity, c.Out),
		}}
	}
}

var poolings = map[model.Pooling]kernel.Pooling{
	model.MeanPooling: kernel.MeanPooling, model.CLSPooling: kernel.FirstPooling, model.LastPooling: kernel.LastPooling,
}

// dimensions is the length of a pooled vector, labels the number of logits.
func (m *Model) dimensions() int {
	if n := len(m.projections); n > 0 {
		return m.projections[n-1].Out
	}
	return m.config.Hidden
}

func (m *Model) labels() int {
	if m.classifier == nil {
		return 0
	}
	return m.classifier.head.Out.Out
}

// dense puts maps of one input side by side; it is empty where there is none.
// adds is as of wire.Product.
func (m *Model) dense(a model.Activation, adds bool, parts ...model.Dense) kernel.Dense {
	if parts[0].Out == 0 {
		return kernel.Dense{}
	}
	d := kernel.Dense{In: parts[0].In, Activation: m.activation(a)}
	var weight, bias []float32
	for _, p := range parts {
		d.Out += p.Out
		weight, bias = append(weight, p.Weight...), append(bias, p.Bias...)
	}
	d.Weight, d.Bias = m.halves(weight), m.floats(bias)
	d.Kernels = m.kernels[wire.Product{In: d.In, Out: d.Out, Activation: a, Adds: adds}]
	return d
}

func (m *Model) denseF32(a model.Activation, d model.Dense) kernel.Dense {
	return kernel.Dense{Weight: m.floats(d.Weight), Bias: m.floats(d.Bias), In: d.In, Out: d.Out, Activation: m.activation(a)}
}

func (m *Model) activation(a model.Activation) kernel.Activation {
	known, err := kernel.ActivationOf(a)
	m.fail(err)
	return known
}

func (m *Model) norm(n model.Norm) kernel.Norm {
	return kernel.Norm{Gain: m.floats(n.Gain), Bias: m.floats(n.Bias), Epsilon: float32(m.config.Epsilon)}
}
