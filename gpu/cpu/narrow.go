package cpu

import (
	"context"

	"sluice/gpu"
	"sluice/kernels/simd"
	"sluice/model"
)

// chunkTokens is how many tokens go through all layers together: enough to
// use each weight often while it is in cache, few enough to stay there. The
// last chunks of a batch are smaller, so that workers end at about the same time.
const (
	chunkTokens     = 256
	lastChunkTokens = 128
)

// narrow is an encoder on 8- or 16-bit numbers. Workers take chunks of
// sequences, and need not wait for each other; where there are too few
// sequences for that, all share the rows. Either way a row's arithmetic is the same.
type narrow struct {
	device *Device
	number simd.Number
	layers []*narrowLayer
	words  *simd.Table
	lanes  []lane
	chunks []span
	meet   *barrier

	job             job
	together, apart func(worker, task int) // runShare and runChunk, made once
}

// job is the batch in progress.
type job struct {
	ctx          context.Context
	batch        *gpu.Batch
	out          gpu.Output
	parts, share int // of rows, where workers share them
}

// narrowLayer is a model.Layer in a precision's numbers.
type narrowLayer struct {
	qkv, out, gate, up, down  *simd.Weights // gate is nil where there is none
	attentionNorm, outputNorm model.Norm
	window                    int
	rope                      *rope // nil: there is none
}

// span is sequences, or rows, [from, to).
type span struct{ from, to int }

func newNarrow(d *Device, layers []model.Layer) *narrow {
	n := &narrow{device: d, number: simd.BF16, meet: newBarrier()}
	if d.precision == Int8 {
		n.number = simd.Int8
	}
	n.words = simd.PackTable(n.number, d.encoder.Word, d.config.Hidden)
	d.encoder.Word = nil
	for i, l := range layers {
		n.layers = append(n.layers, n.packLayer(l, d.config.Attention[i]))
	}
	n.start()
	return n
}

// start makes what belongs to the device's own workers.
func (n *narrow) start() {
	n.lanes = make([]lane, n.device.team.size)
	for i := range n.lanes {
		n.lanes[i].narrow = n
	}
	n.together, n.apart = n.runShare, n.runChunk
}

func (n *narrow) packLayer(l model.Layer, a model.Attention) *narrowLayer {
	p := &narrowLayer{
		qkv: n.pack(true, l.Query, l.Key, l.Value), out: n.pack(false, l.AttentionOut),
		up: n.pack(true, l.Up), down: n.pack(true, l.Down),
		attentionNorm: l.AttentionNorm, outputNorm: l.OutputNorm,
		window: a.Window, rope: n.device.ropeOf(a),
	}
	if n.device.config.Gated {
		p.gate = n.pack(true, l.Gate)
	}
	return p
}

// pack puts maps of the same input side by side.
func (n *narrow) pack(rotated bool, maps ...model.Dense) *simd.Weights {
	var weights, bias []float32
	for _, d := range maps {
		weights, bias = append(weights, d.Weight...), append(bias, d.Bias...)
	}
	if n.number == simd.Int8 {
		return simd.PackInt8(weights, bias, maps[0].In, rotated)
	}
	return simd.PackBF16(weights, bias, maps[0].In)
}

// run implements Device.Run. ctx is looked at between chunks.
func (n *narrow) run(ctx context.Context, batch *gpu.Batch, out gpu.Output) error {
	n.job = job{ctx: ctx, batch: batch, out: out}
	defer func() { n.job = job{} }()
	if !n.cut(batch.Offsets) {
		if err := ctx.Err(); err != nil {
			return err
		}
		n.runTogether(batch.Tokens())
		return nil
	}
	n.device.team.run(len(n.chunks), n.apart)
	return ctx.Err()
}

// cut divides the sequences into chunks, and reports whether workers can take
// those and end at about the same time: there are many, or as many as workers
// and none is much larger than its share.
func (n *narrow) cut(offsets []int) bool {
	size, tokens := n.device.team.size, offsets[len(offsets)-1]
	if tokens >= 2*size*lastChunkTokens {
		n.divide(offsets, func(left int) int { return min(max(left/(2*size), lastChunkTokens), chunkTokens) })
		if len(n.chunks) >= 2*size {
			return true
		}
	}
	most := tokens / n.parts(tokens) * 5 / 4 // waiting for each other costs more than that
	largest := n.divide(offsets, func(int) int { return most })
	return len(n.chunks) > 1 && len(n.chunks) <= size && largest <= most
}

// divide makes chunks of at most so many tokens, which most tells from how many
// are left, or of one sequence. It returns the tokens of the largest.
func (n *narrow) divide(offsets []int, most func(left int) int) (largest int) {
	n.chunks = n.chunks[:0]
	end := len(offsets) - 1
	for from, to := 0, 0; from < end; from = to {
		limit := most(offsets[end] - offsets[from])
		for to = from + 1; to < end && offsets[to+1]-offsets[from] <= limit; to++ {
		}
		n.chunks = append(n.chunks, span{from, to})
		largest = max(largest, offsets[to]-offsets[from])
	}
	return largest
}

// leastRows is the fewest rows that are worth another worker.
const leastRows = 64

// parts is how many workers so many rows are worth.
func (n *narrow) parts(tokens int) int { return min(n.device.team.size, ceil(tokens, leastRows)) }

// runTogether gives every worker a share of the rows.
func (n *narrow) runTogether(tokens int) {
	parts := n.parts(tokens)
	n.job.share = ceil(ceil(tokens, parts), leastRows/4) * (leastRows / 4)
	n.job.parts = ceil(tokens, n.job.share)
	n.meet.size = int32(n.job.parts)
	n.lanes[0].stream.resize(n, tokens)
	n.device.team.run(n.job.parts, n.together)
}

func (n *narrow) runShare(_, part int) {
	w, s, j, batch := &n.lanes[part], &n.lanes[0].stream, &n.job, n.job.batch
	rows := span{part * j.share, min((part+1)*j.share, batch.Tokens())}
	w.encode(s, batch, span{0, batch.Len()}, rows, n.meet.wait)
	n.meet.wait()
	w.finish(s, batch.Offsets, span{batch.Len() * part / j.parts, batch.Len() * (part + 1) / j.parts}, 0, j.out)
}

// runChunk takes one chunk through all layers.
func (n *narrow) runChunk(worker, chunk int) {
	if n.job.ctx.Err() != nil {
		return
	}
	w, batch, sequences := &n.lanes[worker], n.job.batch, n.chunks[chunk]
	first, last := batch.Offsets[sequences.from], batch.Offsets[sequences.to]
	w.stream.resize(n, last-first)
	w.encode(&w.stream, batch, sequences, span{0, last - first}, func() {})
	w.finish(&w.stream, batch.Offsets, sequences, first, n.job.out)
}

// lane is one worker's memory.
type lane struct {
	*narrow
	stream    stream
	products  simd.Scratch
	attention simd.AttentionScratch
	inner     simd.FeedForwardScratch
	head      headScratch
	row       []float32
}

// encode takes rows of some sequences' tokens through all layers. wait is
// called before other lanes' rows are read.
func (w *lane) encode(s *stream, batch *gpu.Batch, sequences, rows span, wait func()) {
	w.row = grow(w.row, w.device.config.Hidden)
	w.lookup(s, batch, sequences, rows)
	for i, l := range w.layers {
		giveWay(batch)
		qkv := &s.qkv[i%2]
		w.input(s, l.attentionNorm, rows)
		w.kernels().ProductBF16(qkv, rows.from, &s.in, l.qkv, rows.from, rows.to, false, &w.products)
		w.rotate(qkv, l.rope, batch.Offsets, sequences, rows)
		wait()
		w.attend(s, qkv, l, batch.Offsets, sequences, rows)
		w.kernels().Product(s.y[rows.from*w.device.config.Hidden:], &s.context, l.out, rows.from, rows.to, false, &w.products)
		w.join(s, l.attentionNorm, rows)
		giveWay(batch)
		w.input(s, l.outputNorm, rows)
		w.feedForward(s, l, rows)
		w.join(s, l.outputNorm, rows)
	}
}

func (w *lane) kernels() *simd.Set { return w.device.kernels }

// lookup sets the residual stream to the normalised sum of each token's rows
// in the tables.
func (w *lane) lookup(s *stream, batch *gpu.Batch, sequences, rows span) {
	d, hidden, first := w.device, w.device.config.Hidden, batch.Offsets[sequences.from]
	ids, types := batch.IDs[first:], batch.Types[first:]
	w.eachSequence(batch.Offsets, sequences, rows, func(sequence, part span) {
		position := newPositions(d.config, ids[sequence.from:sequence.to])
		for t := sequence.from; t < part.to; t++ {
			p := position.next()
			if t < part.from {
				continue
			}
			x := s.x[t*hidden:][:hidden]
			w.kernels().Lookup(x, w.words, int(ids[t]))
			d.addType(x, types[t])
			if d.encoder.Position != nil {
				w.kernels().Add(x, row(d.encoder.Position, p, hidden))
			}
		}
	})
	w.norm(s.x[rows.from*hidden:rows.to*hidden], d.encoder.Norm)
}

// norm normalises rows of x.
func (w *lane) norm(x []float32, n model.Norm) {
	if n.Gain != nil {
		w.kernels().Norm(x, n.Gain, n.Bias, w.device.config.Epsilon)
	}
}

// eachSequence visits the sequences that have tokens among rows, and which.
// Both are counted from the first sequence's first token.
func (w *lane) eachSequence(offsets []int, sequences, rows span, visit func(sequence, part span)) {
	first := offsets[sequences.from]
	for i := sequences.from; i < sequences.to; i++ {
		sequence := span{offsets[i] - first, offsets[i+1] - first}
		part := span{max(sequence.from, rows.from), min(sequence.to, rows.to)}
		if part.from < part.to {
			visit(sequence, part)
		}
	}
}

// rotate turns the queries and keys of rows, if there is a rope.
func (w *lane) rotate(qkv *simd.Rows, r *rope, offsets []int, sequences, rows span) {
	if r == nil {
		return
	}
	w.eachSequence(offsets, sequences, rows, func(sequence, part span) {
		for t := part.from; t < part.to; t++ {
			cos, sin := r.at(t - sequence.from)
			w.kernels().Rope(qkv.BF16(t, t+1)[:2*w.device.config.Hidden], cos, sin)
		}
	})
}

// attend fills rows of the context.
func (w *lane) attend(s *stream, qkv *simd.Rows, l *narrowLayer, offsets []int, sequences, rows span) {
	c := &w.device.config
	w.eachSequence(offsets, sequences, rows, func(sequence, part span) {
		h := simd.Head{From: sequence.from, To: sequence.to, Size: c.HeadSize(), Hidden: c.Hidden, Window: l.window}
		for head := range c.Heads {
			h.Column = head * h.Size
			if r := w.device.relative; r != nil {
				h.Distances, h.Zero = r.byHead[head], r.zero
			}
			if w.number == simd.BF16 {
				w.kernels().AttendBF16(&s.context, qkv, &h, part.from, part.to, &w.attention)
			} else {
				w.kernels().Attend(s.y, qkv, &h, part.from, part.to, &w.attention)
			}
		}
	})
	if w.number == simd.Int8 {
		w.kernels().SetRows(&s.context, s.y, rows.from, rows.to, false, w.row)
	}
}

// feedForward computes the block between the two norms.
func (w *lane) feedForward(s *stream, l *narrowLayer, rows span) {
	var other func([]float32)
	if w.device.config.Activation != model.GELU {
		other = w.device.activate
	}
	w.kernels().FeedForward(s.y[rows.from*w.device.config.Hidden:], &s.in, l.gate, l.up, l.down, rows.from, rows.to, other, &w.inner)
}

// input sets what a block reads: the residual stream, normalised before it if
// that is where the norms stand.
func (w *lane) input(s *stream, n model.Norm, rows span) {
	x := s.x
	if w.device.config.PreNorm {
		from, to := rows.from*w.device.config.Hidden, rows.to*w.device.config.Hidden
		x = s.y
		copy(x[from:to], s.x[from:to])
		w.norm(x[from:to], n)
	}
	w.kernels().SetRows(&s.in, x, rows.from, rows.to, true, w.row)
}

// join adds a block's output to the residual stream, and normalises that
// unless the norms stand before the blocks.
func (w *lane) join(s *stream, n model.Norm, rows span) {
	from, to := rows.from*w.device.config.Hidden, rows.to*w.device.config.Hidden
	if w.device.config.PreNorm {
		w.kernels().Add(s.x[from:to], s.y[from:to])
		return
	}
	w.kernels().AddNorm(s.x[from:to], s.y[from:to], n.Gain, n.Bias, w.device.config.Epsilon)
}

// finish writes what is asked of sequences whose tokens begin at first.
func (w *lane) finish(s *stream, offsets []int, sequences span, first int, out gpu.Output) {
	hidden := w.device.config.Hidden
	for i := sequences.from; i < sequences.to; i++ {
		x := s.x[(offsets[i]-first)*hidden : (offsets[i+1]-first)*hidden]
		w.norm(x, w.device.encoder.Final)
		w.device.head.write(out, i, offsets[i], x, &w.head)
	}
}

// stream is the memory of some tokens on their way, one row each.
type stream struct {
	x       []float32    // Hidden: the residual stream
	in      simd.Rows    // Hidden: x as the next block's input
	qkv     [2]simd.Rows // 3 × Hidden, of even and of odd layers: a lane may lag in the one while another fills the next
	y       []float32    // Hidden: a block's output before it is added
	context simd.Rows    // Hidden: what attention gathered
}

func (s *stream) resize(n *narrow, tokens int) {
	c := &n.device.config
	s.x, s.y = grow(s.x, tokens*c.Hidden), grow(s.y, tokens*c.Hidden)
	s.in.Reset(n.number, tokens, c.Hidden)
	s.context.Reset(n.number, tokens, c.Hidden)
	s.qkv[0].Reset(simd.BF16, tokens, 3*c.Hidden)
	s.qkv[1].Reset(simd.BF16, tokens, 3*c.Hidden)
}
