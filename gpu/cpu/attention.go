package cpu

import (
	"math"

	"sluice/kernels/ref"
	"sluice/kernels/simd"
	"sluice/model"
)

// attend computes what ref.Attention does, one sequence and head per task.
func (d *Device) attend(l *layer, offsets []int) {
	d.team.run((len(offsets)-1)*d.config.Heads, func(worker, task int) {
		s, head := task/d.config.Heads, task%d.config.Heads
		d.attendHead(&d.ws.workers[worker], l, offsets[s], offsets[s+1], head)
	})
}

// attendHead handles one head of the sequence of tokens [from, to).
func (d *Device) attendHead(w *scratch, l *layer, from, to, head int) {
	hidden, size, n := d.config.Hidden, d.config.HeadSize(), to-from
	qkv := d.ws.qkv[from*3*hidden+head*size:]
	if l.rope != nil {
		l.rope.rotate(qkv, 3*hidden, n)
		l.rope.rotate(qkv[hidden:], 3*hidden, n)
	}
	var packed span
	for first := 0; first < n; first += queryRows {
		rows := span{first, min(first+queryRows, n)}
		keys := l.seen(rows, n)
		if keys != packed {
			w.pack(qkv[keys.from*3*hidden:], hidden, size, keys)
			packed = keys
		}
		d.score(w, l, qkv, head, rows, keys)
		out := d.ws.context[(from+first)*hidden+head*size:]
		d.kernels.MatMul(out, hidden, w.scores, w.width(), rows.to-rows.from, &w.values, 0, w.values.Panels(), &w.edge)
	}
}

// score sets w.scores to the softmax of the scores of some rows' queries and
// the packed keys.
func (d *Device) score(w *scratch, l *layer, qkv []float32, head int, rows, keys span) {
	hidden, width := d.config.Hidden, w.width()
	w.scores = grow(w.scores, queryRows*width)
	d.kernels.MatMul(w.scores, width, qkv[rows.from*3*hidden:], 3*hidden, rows.to-rows.from, &w.keys, 0, w.keys.Panels(), &w.edge)
	scale := float32(1 / math.Sqrt(float64(d.config.HeadSize())))
	for i := rows.from; i < rows.to; i++ {
		scores := w.scores[(i-rows.from)*width:][:keys.to-keys.from]
		if d.relative != nil {
			ref.Add(scores, d.relative.row(head, i, keys))
		}
		own := l.seen(span{i, i + 1}, keys.to)
		clear(scores[:own.from-keys.from])
		d.kernels.Softmax(scores[own.from-keys.from:own.to-keys.from], scale)
		clear(scores[own.to-keys.from:])
	}
}

// seen is the keys that some rows of a sequence of n tokens see.
func (l *layer) seen(rows span, n int) span {
	if l.window == 0 {
		return span{0, n}
	}
	return span{max(0, rows.from-l.window), min(n, rows.to+l.window)}
}

// pack sets the keys and values, which follow their queries in rows of three
// times hidden.
func (w *scratch) pack(qkv []float32, hidden, size int, keys span) {
	n := keys.to - keys.from
	w.keys.Reset(size, n)
	w.keys.SetTransposed(0, n, qkv[hidden:], 3*hidden)
	w.values.Reset(n, size)
	w.values.SetRows(qkv[2*hidden:], 3*hidden)
}

// width is the distance of rows of scores.
func (w *scratch) width() int { return w.keys.Panels() * simd.TileColumns }

// rope is the angles of a layer's rotary embeddings.
type rope struct {
	cos, sin []float32 // positions × size/2
	size     int
}

// ropeOf is the angles that a describes, nil for none; layers share them.
func (d *Device) ropeOf(a model.Attention) *rope {
	if a.Theta == 0 {
		return nil
	}
	a.Window = 0
	if d.ropes[a] == nil {
		d.ropes[a] = newRope(d.config, a)
	}
	return d.ropes[a]
}

func newRope(c model.Config, a model.Attention) *rope {
	stretch := a.Stretch
	if stretch == 0 {
		stretch = 1
	}
	r := &rope{size: c.HeadSize()}
	r.cos, r.sin = ref.RopeTable(c.Positions, r.size, a.Theta, stretch)
	return r
}

// rotate turns the heads at the beginning of n rows, stride apart.
func (r *rope) rotate(x []float32, stride, n int) {
	for t := range n {
		cos, sin := r.at(t)
		ref.Rope(x[t*stride:][:r.size], cos, sin)
	}
}

// at is the angles of a position.
func (r *rope) at(position int) (cos, sin []float32) {
	half := r.size / 2
	return r.cos[position*half:][:half], r.sin[position*half:][:half]
}

// relative is what is added to scores by the distance of key and query.
type relative struct {
	zero   int         // where the distance 0 stands
	byHead [][]float32 // from the distance −zero to +zero, and a panel more
}

// newRelative multiplies the model's table by √size, since scores are scaled
// after it is added here.
func newRelative(c model.Config, table []float32) *relative {
	r := &relative{zero: c.Positions - 1, byHead: make([][]float32, c.Heads)}
	factor := float32(math.Sqrt(float64(c.HeadSize())))
	for head := range r.byHead {
		r.byHead[head] = make([]float32, 2*c.Positions-1+simd.TileColumns)
		for i := range 2*c.Positions - 1 {
			bucket := ref.RelativeBucket(i-r.zero, c.Buckets)
			r.byHead[head][i] = table[bucket*c.Heads+head] * factor
		}
	}
	return r
}

// row is the numbers for query i and some keys.
func (r *relative) row(head, i int, keys span) []float32 {
	return r.byHead[head][r.zero+keys.from-i:][:keys.to-keys.from]
}
