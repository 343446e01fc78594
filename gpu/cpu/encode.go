package cpu

import (
	"math"

	"sluice/gpu"
	"sluice/kernels/ref"
	"sluice/kernels/simd"
)

const (
	blockRows = 10 * simd.TileRows // rows of a product per task
	normRows  = 32                 // rows of a normalisation per task
	queryRows = 4 * simd.TileRows  // rows of scores that one task keeps in cache
)

// lookup sets the residual stream to the normalised sum of each token's word,
// position and type rows.
func (d *Device) lookup(batch *gpu.Batch) {
	hidden := d.config.Hidden
	d.ws.resize(batch.Tokens(), hidden, d.config.Intermediate)
	d.team.run(batch.Len(), func(_, s int) {
		for t := batch.Offsets[s]; t < batch.Offsets[s+1]; t++ {
			x := d.ws.x[t*hidden:][:hidden]
			copy(x, row(d.encoder.Word, int(batch.IDs[t]), hidden))
			ref.Add(x, row(d.encoder.Type, int(batch.Types[t]), hidden))
			ref.Add(x, row(d.encoder.Position, t-batch.Offsets[s], hidden))
			ref.LayerNorm(x, d.encoder.Norm.Gain, d.encoder.Norm.Bias, d.config.Epsilon)
		}
	})
}

func row(table []float32, i, width int) []float32 { return table[i*width:][:width] }

// forward takes the residual stream through one layer.
func (d *Device) forward(l *layer, offsets []int) {
	w := &d.ws
	d.multiply(w.qkv, w.x, &l.qkv, nil)
	d.attend(offsets)
	d.multiply(w.y, w.context, &l.out, nil)
	d.addNorm(l.attentionNorm.Gain, l.attentionNorm.Bias)
	d.multiply(w.middle, w.x, &l.up, d.gelu)
	d.multiply(w.y, w.middle, &l.down, nil)
	d.addNorm(l.outputNorm.Gain, l.outputNorm.Bias)
}

// multiply computes c = a·m + bias and then, if asked, then of every element.
// Tasks are blocks of rows, and of columns too where there are few rows.
func (d *Device) multiply(c, a []float32, m *simd.Matrix, then func([]float32)) {
	rows := len(a) / m.Depth
	blocks := ceil(rows, blockRows)
	groups := min(m.Panels(), ceil(2*d.team.size, blocks))
	perGroup := ceil(m.Panels(), groups)
	d.team.run(blocks*groups, func(worker, task int) {
		first := task / groups * blockRows
		from := task % groups * perGroup
		to := min(from+perGroup, m.Panels())
		if from >= to {
			return
		}
		n := min(blockRows, rows-first)
		out := c[first*m.Columns:][:n*m.Columns]
		d.kernels.MatMul(out, m.Columns, a[first*m.Depth:], m.Depth, n, m, from, to, &d.ws.workers[worker].edge)
		if then != nil {
			columns(out, m.Columns, from*simd.TileColumns, min(to*simd.TileColumns, m.Columns), then)
		}
	})
}

// columns applies f to columns [from, to) of every row.
func columns(c []float32, width, from, to int, f func([]float32)) {
	for ; len(c) >= width; c = c[width:] {
		f(c[from:to])
	}
}

// attend computes what ref.Attention does, one sequence and head per task.
func (d *Device) attend(offsets []int) {
	d.team.run((len(offsets)-1)*d.config.Heads, func(worker, task int) {
		s, head := task/d.config.Heads, task%d.config.Heads
		d.attendHead(&d.ws.workers[worker], offsets[s], offsets[s+1], head*d.config.HeadSize())
	})
}

// attendHead handles tokens [from, to) and the head that begins at column.
func (d *Device) attendHead(w *scratch, from, to, column int) {
	hidden, size, n := d.config.Hidden, d.config.HeadSize(), to-from
	qkv := d.ws.qkv[from*3*hidden+column:]
	w.keys.Reset(size, n)
	w.keys.SetTransposed(0, n, qkv[hidden:], 3*hidden)
	w.values.Reset(n, size)
	w.values.SetRows(qkv[2*hidden:], 3*hidden)
	width := w.keys.Panels() * simd.TileColumns
	w.scores = grow(w.scores, queryRows*width)
	scale := float32(1 / math.Sqrt(float64(size)))
	for first := 0; first < n; first += queryRows {
		rows := min(queryRows, n-first)
		d.kernels.MatMul(w.scores, width, qkv[first*3*hidden:], 3*hidden, rows, &w.keys, 0, w.keys.Panels(), &w.edge)
		for r := range rows {
			d.kernels.Softmax(w.scores[r*width:][:n], scale)
		}
		out := d.ws.context[(from+first)*hidden+column:]
		d.kernels.MatMul(out, hidden, w.scores, width, rows, &w.values, 0, w.values.Panels(), &w.edge)
	}
}

// addNorm adds a block's output to the residual stream and normalises it.
func (d *Device) addNorm(gain, bias []float32) {
	step := normRows * d.config.Hidden
	d.team.run(ceil(len(d.ws.x), step), func(_, task int) {
		from, to := task*step, min((task+1)*step, len(d.ws.x))
		x := d.ws.x[from:to]
		ref.Add(x, d.ws.y[from:to])
		ref.LayerNorm(x, gain, bias, d.config.Epsilon)
	})
}

// reduce pools each sequence and normalises the result.
func (d *Device) reduce(offsets []int, dst []float32) {
	hidden := d.config.Hidden
	d.team.run(len(offsets)-1, func(_, s int) {
		v := dst[s*hidden:][:hidden]
		d.pool(v, d.ws.x[offsets[s]*hidden:offsets[s+1]*hidden])
		ref.Normalize(v)
	})
}

func ceil(a, b int) int { return (a + b - 1) / b }
