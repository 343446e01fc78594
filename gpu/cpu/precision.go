package cpu

import (
	"errors"
	"fmt"

	"sluice/kernels/simd"
	"sluice/model"
)

// Precision is the arithmetic of an encoder's products. Vectors of different
// precisions are not to be mixed.
type Precision string

const (
	F32  Precision = "f32"
	BF16 Precision = "bf16" // weights and activations as bfloat16, sums as float32
	Int8 Precision = "int8" // weights by column and activations by token as 8-bit integers; attention as BF16

	// Auto is, in Open, the fastest that suits each model: see fastest.
	Auto Precision = "auto"
)

// ErrPrecision is wrapped where a precision is unknown.
var ErrPrecision = errors.New("unknown precision")

// ParsePrecision reads a setting.
func ParsePrecision(name string) (Precision, error) {
	switch p := Precision(name); p {
	case F32, BF16, Int8:
		return p, nil
	}
	return "", fmt.Errorf("%w: %q; there are f32, bf16 and int8", ErrPrecision, name)
}

// NewPrecision is New with a choice of precision.
func NewPrecision(m *model.Model, workers int, p Precision) (*Device, error) {
	if _, err := ParsePrecision(string(p)); err != nil {
		return nil, err
	}
	return newPrecision(m, workers, p, simd.Best()), nil
}

func newPrecision(m *model.Model, workers int, p Precision, kernels *simd.Set) *Device {
	d := prepare(m, workers, kernels)
	d.precision = p
	if d.precision == F32 {
		d.packLayers(m.Encoder.Layers)
	} else {
		d.narrow = newNarrow(d, m.Encoder.Layers)
	}
	return d
}
