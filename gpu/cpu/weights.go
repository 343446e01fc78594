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

// packLayers also prepares the tables that layers share.
func (d *Device) packLayers(layers []model.Layer) {
	ropes := map[model.Attention]*rope{}
	for i, l := range layers {
		p := packLayer(l)
		a := d.config.Attention[i]
		p.window, a.Window = a.Window, 0
		if a.Theta > 0 && ropes[a] == nil {
			ropes[a] = newRope(d.config, a)
		}
		p.rope = ropes[a]
		d.layers = append(d.layers, p)
	}
	if d.encoder.Relative != nil {
		d.relative = newRelative(d.config, d.encoder.Relative)
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
