package cpu

import (
	"sluice/gpu"
	"sluice/kernels/simd"
	"sluice/model"
	"sluice/model/tokenizer"
)

// Open is gpu.Open on all cores, which the models share. Each has an aside.
func Open(p Precision, o gpu.Options, dirs ...string) (*gpu.Scheduler, error) {
	open := func(m *model.Model, t *tokenizer.Tokenizer) ([]gpu.Device, error) {
		d, err := NewFor(m, t, p)
		if err != nil {
			return nil, err
		}
		return []gpu.Device{d, d.aside()}, nil
	}
	return gpu.Open(open, o, dirs...)
}

// NewFor is NewPrecision on all cores, where Auto is the fastest precision that
// suits what the tokenizer feeds the model.
func NewFor(m *model.Model, t *tokenizer.Tokenizer, p Precision) (*Device, error) {
	if p == Auto {
		return fastest(m, t, 0, simd.Best())
	}
	return NewPrecision(m, 0, p)
}
