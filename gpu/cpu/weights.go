package cpu

import (
	"sluice/kernels/simd"
	"sluice/model"
)

// layer is a model.Layer packed for the micro-kernel. QKV yields query, key
// and value side by side.
type layer struct {
	qkv, out, up, down simd.Matrix
	attentionNorm      model.Norm
	outputNorm         model.Norm
}

func packLayer(l model.Layer) *layer {
	p := &layer{attentionNorm: l.AttentionNorm, outputNorm: l.OutputNorm}
	pack(&p.qkv, l.Query, l.Key, l.Value)
	pack(&p.out, l.AttentionOut)
	pack(&p.up, l.Up)
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
