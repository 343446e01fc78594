package cpu

import (
	"sluice/gpu"
	"sluice/kernels/ref"
	"sluice/model"
)

// lookup sets the residual stream to the normalised sum of each token's rows
// in the tables.
func (d *Device) lookup(batch *gpu.Batch) {
	d.ws.resize(batch.Tokens(), d.config)
	d.team.run(batch.Len(), func(_, s int) {
		from, to := batch.Offsets[s], batch.Offsets[s+1]
		position := newPositions(d.config, batch.IDs[from:to])
		for t := from; t < to; t++ {
			x := d.ws.x[t*d.config.Hidden:][:d.config.Hidden]
			copy(x, row(d.encoder.Word, int(batch.IDs[t]), d.config.Hidden))
			d.addType(x, batch.Types[t])
			if p := position.next(); d.encoder.Position != nil {
				ref.Add(x, row(d.encoder.Position, p, d.config.Hidden))
			}
			d.norm(x, d.encoder.Norm)
		}
	})
}

// addType adds the row of a token's type, if the model has any.
func (d *Device) addType(x []float32, kind int32) {
	if d.config.Types < 2 {
		kind = 0
	}
	if d.encoder.Type != nil {
		ref.Add(x, row(d.encoder.Type, int(kind), len(x)))
	}
}

func row(table []float32, i, width int) []float32 { return table[i*width:][:width] }

// positions counts the tokens of one sequence as model.Config.Offset says.
type positions struct {
	ids           []int32
	offset, count int
}

func newPositions(c model.Config, ids []int32) positions {
	return positions{ids: ids, offset: c.Offset}
}

// next is the position of the next token.
func (p *positions) next() int {
	id := int(p.ids[0])
	p.ids = p.ids[1:]
	if p.offset > 0 && id == p.offset-1 {
		return id
	}
	p.count++
	return p.offset + p.count - 1
}
