//go:build nvidia

package worker

import (
	"gorgonia.org/cu"

	"sluice/gpu/cuda/kernel"
	"sluice/gpu/cuda/wire"
)

// forward is one pass of a batch, in the slot's stream.
type forward struct {
	*Slot
	model *Model
	plan  plan
}

// run queues the pass, and waits for it.
func (f *forward) run() error {
	if err := f.queue(); err != nil {
		return err
	}
	return f.stream.Synchronize()
}

// queue copies in, computes, and copies out.
func (f *forward) queue() error {
	p := f.plan
	if err := cu.MemcpyHtoDAsync(f.memory, f.host.Pointer(), int64(p.inputs), f.stream); err != nil {
		return err
	}
	x, err := f.encode()
	if err != nil {
		return err
	}
	if err := f.heads(x); err != nil {
		return err
	}
	if err := f.copyOut(f.at(p.inputs), p.inputs, p.outputs-p.inputs); err != nil {
		return err
	}
	if p.want&wire.WantTokens != 0 {
		return f.copyOut(x, p.tokenVectors, 2*p.tokens*f.model.config.Hidden)
	}
	return nil
}

// encode is the last hidden states: see model.Layer.
func (f *forward) encode() (x cu.DevicePtr, err error) {
	k, p, m := f.kernels, f.plan, f.model
	x, y := f.at(p.x), f.at(p.y)
	if err := k.Embed(f.stream, x, m.tables, f.at(p.ids), f.at(p.positions), f.at(p.types), p.tokens); err != nil {
		return 0, err
	}
	for i := range m.layers {
		l := &m.layers[i]
		if x, y, err = f.block(x, y, l.attentionNorm, l, f.attend); err != nil {
			return 0, err
		}
		if x, y, err = f.block(x, y, l.outputNorm, l, f.feed); err != nil {
			return 0, err
		}
	}
	return x, f.norm(x, x, m.final)
}

// block takes the residual stream x through attention or the feed-forward part,
// with the normalisation before or after it. It returns where the stream is
// then, and where it is not.
func (f *forward) block(x, y cu.DevicePtr, n kernel.Norm, l *layer, do func(l *layer, y, in, x cu.DevicePtr) error) (now, free cu.DevicePtr, err error) {
	if !f.model.config.PreNorm {
		if err := do(l, y, x, x); err != nil {
			return x, y, err
		}
		return x, y, f.norm(x, y, n)
	}
	in := x
	if n.Gain != 0 {
		in = f.at(f.plan.in)
		if err := f.norm(in, x, n); err != nil {
			return x, y, err
		}
	}
	return y, x, do(l, y, in, x)
}

// attend sets y to x plus the attention of in.
func (f *forward) attend(l *layer, y, in, x cu.DevicePtr) error {
	k, p := f.kernels, f.plan
	qkv, context := f.at(p.qkv), f.at(p.context)
	if err := k.Multiply(f.stream, qkv, in, 0, l.qkv, p.tokens); err != nil {
		return err
	}
	if l.turn.Cos != 0 {
		if err := k.Rope(f.stream, qkv, f.at(p.positions), l.turn, l.heads, p.tokens); err != nil {
			return err
		}
	}
	if err := k.Attention(f.stream, context, qkv, f.at(p.work), 3*p.tiles, l.heads); err != nil {
		return err
	}
	return k.Multiply(f.stream, y, context, x, l.out, p.tokens)
}

// feed sets y to x plus the feed-forward part of in.
func (f *forward) feed(l *layer, y, in, x cu.DevicePtr) error {
	k, p := f.kernels, f.plan
	middle := f.at(p.middle)
	if err := k.Multiply(f.stream, middle, in, 0, l.up, p.tokens); err != nil {
		return err
	}
	if f.model.config.Gated {
		if err := k.MultiplyGated(f.stream, middle, in, middle, l.gate, p.tokens); err != nil {
			return err
		}
	}
	return k.Multiply(f.stream, y, middle, x, l.down, p.tokens)
}

func (f *forward) norm(out, x cu.DevicePtr, n kernel.Norm) error {
	if n.Gain == 0 {
		return nil
	}
	return f.kernels.LayerNorm(f.stream, out, x, 0, n, f.plan.tokens, f.model.config.Hidden)
}

// heads computes what is wanted of the last hidden states.
func (f *forward) heads(x cu.DevicePtr) error {
	if f.plan.want&wire.WantPooled != 0 {
		if err := f.embed(x); err != nil {
			return err
		}
	}
	if f.plan.want&wire.WantLogits != 0 {
		return f.classify(x)
	}
	return nil
}

// embed pools to unit length; what projections make is scaled on the host.
func (f *forward) embed(x cu.DevicePtr) error {
	p, m := f.plan, f.model
	if len(m.projections) == 0 {
		return f.pool(f.at(p.pooled), f.at(p.norms), x, m.pooling, true)
	}
	from, to := f.at(p.vectorA), f.at(p.vectorB)
	if err := f.pool(from, 0, x, m.pooling, false); err != nil {
		return err
	}
	for i, d := range m.projections {
		if i == len(m.projections)-1 {
			to = f.at(p.pooled)
		}
		if err := f.kernels.MultiplyF32(f.stream, to, from, 0, d, p.sequences); err != nil {
			return err
		}
		from, to = to, from
	}
	return nil
}

func (f *forward) classify(x cu.DevicePtr) error {
	c := f.model.classifier
	v := f.at(f.plan.vectorA)
	if err := f.pool(v, 0, x, c.pooling, false); err != nil {
		return err
	}
	return f.kernels.Classify(f.stream, f.at(f.plan.logits), v, c.head, f.plan.sequences)
}

func (f *forward) pool(out, lengths, x cu.DevicePtr, pooling kernel.Pooling, unit bool) error {
	p := f.plan
	return f.kernels.Pool(f.stream, out, lengths, x, f.at(p.offsets), pooling, unit, p.sequences, f.model.config.Hidden)
}
