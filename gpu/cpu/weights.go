package cpu

import (
	"sluice/kernels/simd"
	"sluice/model"
)

// layer is a model.Layer packed for the micro-kernel, with what is known of
// its attention. QKV yields query, key and value side by side.
type layer struct {
	qkv, out, up, gate, down simd.Matrix
	attentionNorm            model.Norm
	outputNorm               model.Norm
	window                   int
	rope                     *rope
}

func (d *Device) packLayers(layers []model.Layer) {
	for i, l := range layers {
		p := packLayer(l)
		p.window, p.rope = d.config.Attention[i].Window, d.ropeOf(d.config.Attention[i])
		d.layers = append(d.layers, p)
	}
}

func packLayer(l model.Layer) *layer {
	p := &layer{attentionNorm: l.AttentionNorm, outputNorm: l.OutputNorm}
	pack(&p.qkv, l.Query, l.Key, l.Value)
	pack(&p.out, l.AttentionOut)
	pack(&p.up, l.Up)
	if l.Gate.Out > 0 {
		pack(&p.gate, l.Gate)
	}
	pack(&p.down, l.Down)
	return p
}

// pack puts maps of the same input side by side.
func pack(m *simd.Matrix, maps ...model.Dense) {
	columns := 0
	for _, d := range maps {
		columns += d.Out
	}
	m.Reset(maps[0].In, columns)
	at := 0
	for _, d := range maps {
		m.SetTransposed(at, d.Out, d.Weight, d.In)
		m.SetBias(at, d.Bias)
		at += d.Out
	}
}
