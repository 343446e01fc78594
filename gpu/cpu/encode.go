package cpu

import (
	"sluice/gpu"
	"sluice/kernels/ref"
	"sluice/kernels/simd"
	"sluice/model"
)

const (
	blockRows = 10 * simd.TileRows // rows of a product per task
	normRows  = 32                 // rows of a normalisation per task
	queryRows = 4 * simd.TileRows  // rows of scores that one task keeps in cache
)

// forward takes the residual stream through one layer.
func (d *Device) forward(l *layer, offsets []int) {
	w := &d.ws
	d.multiply(w.qkv, d.input(l.attentionNorm), &l.qkv, nil)
	d.attend(l, offsets)
	d.multiply(w.y, w.context, &l.out, nil)
	d.join(l.attentionNorm)
	d.feed(l, d.input(l.outputNorm))
	d.join(l.outputNorm)
}

// feed computes the feed-forward block of x.
func (d *Device) feed(l *layer, x []float32) {
	w := &d.ws
	if d.config.Gated {
		d.multiply(w.gate, x, &l.gate, d.activateRow)
		d.multiply(w.middle, x, &l.up, func(at int, c []float32) { ref.Multiply(c, w.gate[at:]) })
	} else {
		d.multiply(w.middle, x, &l.up, d.activateRow)
	}
	d.multiply(w.y, w.middle, &l.down, nil)
}

// multiply computes c = a·m + bias, and then, if asked, then of each row of
// what a task has done: its elements, and where in c they begin. Tasks are
// blocks of rows, and of columns too where there are few rows.
func (d *Device) multiply(c, a []float32, m *simd.Matrix, then func(at int, x []float32)) {
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
			columns := span{from * simd.TileColumns, min(to*simd.TileColumns, m.Columns)}
			eachRow(c, m.Columns, span{first, first + n}, columns, then)
		}
	})
}

// eachRow visits some columns of rows of c, which is width wide, and says where
// in c they begin.
func eachRow(c []float32, width int, rows, columns span, visit func(at int, x []float32)) {
	for r := rows.from; r < rows.to; r++ {
		visit(r*width+columns.from, c[r*width+columns.from:r*width+columns.to])
	}
}

// input is what a block reads: the residual stream, normalised before it if
// that is where the norms stand.
func (d *Device) input(n model.Norm) []float32 {
	if !d.config.PreNorm {
		return d.ws.x
	}
	d.team.run(d.normTasks(), func(_, task int) {
		part := d.normTask(task)
		copy(d.ws.in[part.from:part.to], d.ws.x[part.from:part.to])
		d.norm(d.ws.in[part.from:part.to], n)
	})
	return d.ws.in
}

// join adds a block's output to the residual stream, and normalises that
// unless the norms stand before the blocks.
func (d *Device) join(n model.Norm) {
	d.team.run(d.normTasks(), func(_, task int) {
		part := d.normTask(task)
		x := d.ws.x[part.from:part.to]
		ref.Add(x, d.ws.y[part.from:part.to])
		if !d.config.PreNorm {
			d.norm(x, n)
		}
	})
}

// norm normalises rows of x.
func (d *Device) norm(x []float32, n model.Norm) {
	if n.Gain != nil {
		ref.LayerNorm(x, n.Gain, n.Bias, d.config.Epsilon)
	}
}

// normTasks is how many tasks the residual stream makes, and normTask the
// elements of one.
func (d *Device) normTasks() int { return ceil(len(d.ws.x), normRows*d.config.Hidden) }

func (d *Device) normTask(task int) span {
	step := normRows * d.config.Hidden
	return span{task * step, min((task+1)*step, len(d.ws.x))}
}

// finish writes what is asked of every sequence.
func (d *Device) finish(offsets []int, out gpu.Output) {
	hidden := d.config.Hidden
	d.team.run(len(offsets)-1, func(worker, s int) {
		x := d.ws.x[offsets[s]*hidden : offsets[s+1]*hidden]
		d.norm(x, d.encoder.Final)
		d.head.write(out, s, offsets[s], x, &d.ws.workers[worker].head)
	})
}

func ceil(a, b int) int { return (a + b - 1) / b }
