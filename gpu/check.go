package gpu

import (
	"errors"
	"fmt"

	"sluice/model"
)

// ErrInput is wrapped where a batch does not fit the model, or an output the
// batch.
var ErrInput = errors.New("invalid batch")

// Check makes sure that d, which runs a model of config c, can run batch and
// fill out: that nothing later leaves a table or a buffer.
func Check(d Device, c model.Config, batch *Batch, out Output) error {
	if err := batch.Check(c); err != nil {
		return err
	}
	return out.check(d, c, batch)
}

// Check makes sure that a model of config c can run b.
func (b *Batch) Check(c model.Config) error {
	if len(b.Types) != len(b.IDs) || (b.Len() > 0 && (b.Offsets[0] != 0 || b.Offsets[b.Len()] != len(b.IDs))) {
		return fmt.Errorf("%w: %d ids, %d type ids, offsets %v", ErrInput, len(b.IDs), len(b.Types), b.Offsets)
	}
	for i := range b.Len() {
		if n := b.Offsets[i+1] - b.Offsets[i]; n < 1 || n > c.Positions {
			return fmt.Errorf("%w: sequence %d has %d tokens, the model takes 1 to %d", ErrInput, i, n, c.Positions)
		}
	}
	for i, id := range b.IDs {
		if id < 0 || int(id) >= c.Vocabulary || !hasType(c, b.Types[i]) {
			return fmt.Errorf("%w: token id %d of type %d is outside the model's tables", ErrInput, id, b.Types[i])
		}
	}
	return nil
}

// hasType admits any type where the model makes no difference.
func hasType(c model.Config, kind int32) bool {
	return c.Types < 2 || (kind >= 0 && int(kind) < c.Types)
}

func (o Output) check(d Device, c model.Config, b *Batch) error {
	if o.Logits != nil && d.Labels() == 0 {
		return fmt.Errorf("%w: logits are asked of a model without a classification head", ErrInput)
	}
	for _, x := range []struct {
		numbers     []float32
		rows, width int
	}{
		{o.Pooled, b.Len(), d.Dimensions()}, {o.Norms, b.Len(), 1},
		{o.Tokens, b.Tokens(), c.Hidden}, {o.Logits, b.Len(), d.Labels()},
	} {
		if x.numbers != nil && len(x.numbers) != x.rows*x.width {
			return fmt.Errorf("%w: room for %d numbers, want %d × %d", ErrInput, len(x.numbers), x.rows, x.width)
		}
	}
	return nil
}
