//go:build nvidia

package worker

import "sluice/gpu/cuda/wire"

// plan is where a batch's parts lie, in bytes from the beginning of a slot's
// memory. What comes first is mirrored in memory of the host at the same
// places: inputs, which are copied in at once, and outputs, which are copied
// out at once; then token vectors, which are only on the host.
type plan struct {
	want                     wire.Want
	sequences, tokens, tiles int
	ids, positions, types    int
	offsets, work            int
	inputs                   int // the end of the above
	pooled, norms, logits    int
	outputs                  int // and of these
	tokenVectors             int
	host                     int // the end of what the host has
	x, y, in, qkv, context   int
	middle, vectorA, vectorB int
	device                   int // the end of all
}

// alignment suits every access, and the tensor cores' copies.
const alignment = 256

type carver struct{ at int }

func (c *carver) take(bytes int) (at int) {
	at = c.at
	c.at += (bytes + alignment - 1) / alignment * alignment
	return at
}

// plan lays out a batch of so many tokens and 64-token tiles.
func (m *Model) plan(want wire.Want, sequences, tokens, tiles int) (p plan) {
	p.want, p.sequences, p.tokens, p.tiles = want, sequences, tokens, tiles
	var c carver
	p.ids, p.positions, p.types = c.take(4*tokens), c.take(4*tokens), c.take(4*tokens)
	p.offsets, p.work = c.take(4*(sequences+1)), c.take(12*tiles)
	p.inputs = c.at
	p.pooled, p.norms, p.logits = c.take(4*sequences*m.dimensions()), c.take(4*sequences), c.take(4*sequences*m.labels())
	p.outputs = c.at
	stream, attended := 2*tokens*m.config.Hidden, 2*tokens*m.config.Heads*m.headSize
	if want&wire.WantTokens != 0 {
		p.tokenVectors = c.take(stream)
	}
	p.host = c.at
	p.x, p.y, p.in = c.take(stream), c.take(stream), c.take(stream)
	p.qkv, p.context, p.middle = c.take(3*attended), c.take(attended), c.take(2*tokens*m.config.Intermediate)
	p.vectorA, p.vectorB = c.take(4*sequences*m.widestVector()), c.take(4*sequences*m.widestVector())
	p.device = c.at
	return p
}

// widestVector is that of a pooled vector on its way through the projections.
func (m *Model) widestVector() int {
	width := m.config.Hidden
	for _, p := range m.projections {
		width = max(width, p.Out)
	}
	return width
}
