//go:build nvidia

package worker

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"unsafe"

	"gorgonia.org/cu"

	"sluice/gpu/cuda/kernel"
	"sluice/gpu/cuda/wire"
	"sluice/kernels/ref"
	"sluice/model"
)

// A kernel is started once to see its bits, and then rounds times as often as
// events tell apart, in turns with the others.
const (
	rounds = 5
	burst  = 4
)

// mostTried is how many launches of a kernel there are for a product and a count of rows.
const mostTried = 1 + rounds*burst

var errNoneLeft = errors.New("no kernel for products is left")

// trial is kernels that race for products of random numbers.
type trial struct {
	stream   cu.Stream
	variants []kernel.Variant // the plainest first, without those that are out
	multiply func(v kernel.Variant, in cu.Stream, y, x, residual cu.DevicePtr, d kernel.Dense, rows int) error
	seconds  func(v kernel.Variant, rows int, in cu.Stream, launches func() error) (float64, error)
	tell     func(wire.Tried) error
	uploads
	x, weight, bias, residual, y cu.DevicePtr
	plainest, answer             []byte // y's, on the host
}

// Try tells how long each kernel of a device takes for the products of a model,
// which must give the bits of the plainest: see wire.Tried. After an error the
// device may be spoilt for this process; what was told last caused it.
func Try(ordinal int, of wire.Trial, tell func(wire.Tried) error) error {
	d, err := Open(ordinal)
	if err != nil {
		return err
	}
	slot, err := d.NewSlot()
	if err != nil {
		return errors.Join(err, d.Close())
	}
	t := newTrial(slot, tell)
	return errors.Join(t.run(of), slot.Close(), d.Close())
}

func newTrial(s *Slot, tell func(wire.Tried) error) *trial {
	return &trial{stream: s.stream, variants: s.kernels.Variants(), multiply: s.kernels.MultiplyBy, seconds: byEvents, tell: tell}
}

func byEvents(_ kernel.Variant, _ int, in cu.Stream, launches func() error) (float64, error) {
	return kernel.Seconds(in, launches)
}

// productsOf are a model's, each once.
func productsOf(c model.Config) ([]wire.Product, error) {
	size, err := kernel.HeadSize(c.HeadSize())
	_, unknown := kernel.ActivationOf(c.Activation)
	if err := errors.Join(multiplies(c), err, unknown); err != nil {
		return nil, err
	}
	attended := c.Heads * size
	products := []wire.Product{
		{In: c.Hidden, Out: 3 * attended, Activation: model.Identity},
		{In: attended, Out: c.Hidden, Activation: model.Identity, Adds: true},
		{In: c.Intermediate, Out: c.Hidden, Activation: model.Identity, Adds: true}, // which may be the one before
		{In: c.Hidden, Out: c.Intermediate, Activation: upActivation(c)},
	}
	if c.Gated {
		products = append(products, wire.Product{In: c.Hidden, Out: c.Intermediate, Activation: c.Activation, Adds: true})
	}
	return slices.Compact(products), nil
}

func (t *trial) run(of wire.Trial) error {
	t.variants = slices.DeleteFunc(slices.Clone(t.variants), func(v kernel.Variant) bool { return slices.Contains(of.Without, v.Name) })
	if len(t.variants) == 0 {
		return errNoneLeft
	}
	products, err := productsOf(of.Config)
	if err != nil {
		return err
	}
	err = t.reserve(products, slices.Max(of.Rows))
	for _, p := range products {
		for _, rows := range of.Rows {
			if err == nil {
				err = t.try(p, rows)
			}
		}
	}
	return errors.Join(err, t.Close())
}

// reserve makes room for the largest products, and fills it.
func (t *trial) reserve(products []wire.Product, rows int) error {
	var in, out, matrix int
	for _, p := range products {
		in, out, matrix = max(in, p.In), max(out, p.Out), max(matrix, p.In*p.Out)
	}
	random := rand.New(rand.NewPCG(9, 0))
	numbers, bits := make([]float32, 1<<20-3), make([]uint16, 1<<20-3) // an odd number: no two rows are the same for long
	for i := range numbers {
		numbers[i] = random.Float32() - 0.5
		bits[i] = ref.BF16(numbers[i])
	}
	t.bias = t.floats(numbers[:out])
	t.x, t.weight, t.residual, t.y = t.repeated(bits, rows*in), t.repeated(bits, matrix), t.repeated(bits, rows*out), t.repeated(bits, rows*out)
	t.plainest, t.answer = make([]byte, 2*rows*out), make([]byte, 2*rows*out)
	return t.err
}

// try has all kernels multiply: those whose bits are the plainest's run for time.
func (t *trial) try(p wire.Product, rows int) error {
	d, err := t.dense(p)
	if err != nil {
		return err
	}
	residual := t.residual
	if !p.Adds {
		residual = 0
	}
	start := func(v kernel.Variant) error { return t.multiply(v, t.stream, t.y, t.x, residual, d, rows) }
	if err := t.compare(start, p, rows); err != nil {
		return err
	}
	return t.race(start, p, rows)
}

func (t *trial) dense(p wire.Product) (kernel.Dense, error) {
	activation, err := kernel.ActivationOf(p.Activation)
	return kernel.Dense{Weight: t.weight, Bias: t.bias, In: p.In, Out: p.Out, Activation: activation}, err
}

// compare puts out who has other bits than the plainest.
func (t *trial) compare(start func(kernel.Variant) error, p wire.Product, rows int) error {
	plainest, answer := t.plainest[:2*rows*p.Out], t.answer[:2*rows*p.Out]
	if err := t.answerOf(plainest, start, t.variants[0]); err != nil {
		return err
	}
	same := t.variants[:1]
	for _, v := range t.variants[1:] {
		if err := t.answerOf(answer, start, v); err != nil {
			return err
		}
		if bytes.Equal(plainest, answer) {
			same = append(same, v)
			continue
		}
		why := fmt.Sprintf("it gives other bits than %s for %d × %d by %d", t.variants[0].Name, rows, p.In, p.Out)
		if err := t.tell(wire.Tried{Kernel: v.Name, Product: p, Rows: rows, Why: why}); err != nil {
			return err
		}
	}
	t.variants = same
	return nil
}

// answerOf brings what a kernel makes of y to the host. What it leaves out is NaN.
func (t *trial) answerOf(answer []byte, start func(kernel.Variant) error, v kernel.Variant) error {
	if err := t.tell(wire.Tried{Kernel: v.Name}); err != nil {
		return err
	}
	if err := cu.MemsetD8Async(t.y, 0xff, int64(len(answer)), t.stream); err != nil {
		return err
	}
	if err := start(v); err != nil {
		return err
	}
	if err := t.stream.Synchronize(); err != nil {
		return err
	}
	return cu.MemcpyDtoH(unsafe.Pointer(&answer[0]), t.y, int64(len(answer)))
}

// race tells the median time of each kernel.
func (t *trial) race(start func(kernel.Variant) error, p wire.Product, rows int) error {
	took := make([][]float64, len(t.variants))
	for range rounds {
		for i, v := range t.variants {
			if err := t.tell(wire.Tried{Kernel: v.Name}); err != nil {
				return err
			}
			seconds, err := t.seconds(v, rows, t.stream, func() (err error) {
				for n := 0; n < burst && err == nil; n++ {
					err = start(v)
				}
				return err
			})
			if err != nil {
				return err
			}
			took[i] = append(took[i], seconds/burst)
		}
	}
	for i, v := range t.variants {
		slices.Sort(took[i])
		if err := t.tell(wire.Tried{Kernel: v.Name, Product: p, Rows: rows, Seconds: took[i][rounds/2]}); err != nil {
			return err
		}
	}
	return nil
}
