//go:build nvidia

package kernel

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"

	"sluice/kernels/ref"
	"sluice/model"
)

// activated applies the reference of an activation.
func activated(x []float32, a model.Activation) {
	switch a {
	case model.GELU:
		ref.GELU(x)
	case model.GELUTanh:
		ref.GELUTanh(x)
	case model.SiLU:
		ref.SiLU(x)
	case model.ReLU:
		ref.ReLU(x)
	case model.Tanh:
		ref.Tanh(x)
	}
}

// product is one case: operands on the host, and what comes out.
type product struct {
	rows, in, out        int
	x, w, bias, residual []float32
	activation           model.Activation
	want                 []float32
}

func (b *bench) product(rows, in, out int, a model.Activation, residual bool, round bool) *product {
	p := &product{rows: rows, in: in, out: out, activation: a}
	p.x, p.w, p.bias = b.normals(rows*in, 1), b.normals(out*in, 1/math.Sqrt(float64(in))), b.normals(out, 1)
	if residual {
		p.residual = b.normals(rows*out, 1)
	}
	if round {
		rounded(p.x)
		rounded(p.w)
		rounded(p.residual)
	}
	p.want = make([]float32, rows*out)
	ref.Linear(p.want, p.x, p.w, p.bias, in, out)
	activated(p.want, a)
	if residual {
		ref.Add(p.want, p.residual)
	}
	return p
}

// bound is the largest error of a sum in float32: as many roundings as terms of its magnitude.
func (p *product) bound() float64 {
	abs := func(x []float32) []float32 {
		y := make([]float32, len(x))
		for i, v := range x {
			y[i] = max(v, -v)
		}
		return y
	}
	y := make([]float32, p.rows*p.out)
	ref.Linear(y, abs(p.x), abs(p.w), abs(p.bias), p.in, p.out)
	largest := float32(0)
	for _, v := range y {
		largest = max(largest, v)
	}
	return float64(largest) * 1e-6
}

func (b *bench) dense(p *product, weight cu.DevicePtr) Dense {
	a, err := ActivationOf(p.activation)
	require.NoError(b, err)
	return Dense{Weight: weight, Bias: upload(b, p.bias), In: p.in, Out: p.out, Activation: a}
}

func TestMultiply(t *testing.T) {
	variants := slices.Concat(variants80[:], open(t).Variants())
	for i, shape := range [][3]int{ // rows, in, out
		{1, 8, 2}, {1, 384, 384}, {33, 40, 66}, {70, 136, 130}, {129, 72, 258}, {17, 1536, 64},
	} {
		for _, v := range variants {
			t.Run(fmt.Sprint(shape, v.Name), func(t *testing.T) {
				b := open(t)
				p := b.product(shape[0], shape[1], shape[2], activations[i%len(activations)], i%2 == 1, true)
				y, residual := room(b, 2*p.rows*p.out), cu.DevicePtr(0)
				if p.residual != nil {
					residual = upload(b, rounded(p.residual))
				}
				d := b.dense(p, upload(b, rounded(p.w)))
				require.NoError(t, b.multiply(v, cu.NoStream, y, upload(b, rounded(p.x)), 0, residual, d, p.rows))
				near(b, p.want, widened(download[uint16](b, y, p.rows*p.out)), halfStep, p.bound())
			})
		}
	}
}

func TestMultiplyF32(t *testing.T) {
	for i, shape := range [][3]int{{1, 1, 1}, {3, 17, 5}, {65, 33, 67}, {64, 384, 2}} {
		t.Run(fmt.Sprint(shape), func(t *testing.T) {
			b := open(t)
			p := b.product(shape[0], shape[1], shape[2], activations[(i+1)%len(activations)], i%2 == 0, false)
			y, residual := room(b, 4*p.rows*p.out), cu.DevicePtr(0)
			if p.residual != nil {
				residual = upload(b, p.residual)
			}
			require.NoError(t, b.MultiplyF32(cu.NoStream, y, upload(b, p.x), residual, b.dense(p, upload(b, p.w)), p.rows))
			near(b, p.want, download[float32](b, y, p.rows*p.out), 1e-6, p.bound())
		})
	}
}

// The variants for a device sum in the same order, so a batch's size changes no bit.
func TestVariantsAgree(t *testing.T) {
	b := open(t)
	p := b.product(70, 200, 130, model.GELU, true, true)
	x, residual, d := upload(b, rounded(p.x)), upload(b, rounded(p.residual)), b.dense(p, upload(b, rounded(p.w)))
	y := room(b, 2*p.rows*p.out)
	run := func(v Variant, rows int) []uint16 {
		require.NoError(t, b.MultiplyBy(v, cu.NoStream, y, x, residual, d, rows))
		return download[uint16](b, y, rows*p.out)
	}
	for _, variants := range [][]Variant{variants80[:], b.Variants()} {
		var many []uint16
		for _, v := range variants {
			got := run(v, p.rows)
			if many == nil {
				many = got
			}
			require.Equal(t, many, got, v.Name)
			require.Equal(t, many[:p.out], run(v, 1), v.Name)
		}
	}
}

func TestUnknownActivation(t *testing.T) {
	_, err := ActivationOf("swish")
	require.ErrorIs(t, err, model.ErrUnsupported)
}

// What comes out is multiplied by a factor, which may lie where it goes.
func TestMultiplyGated(t *testing.T) {
	for _, v := range slices.Concat(variants80[:], open(t).Variants()) {
		t.Run(v.Name, func(t *testing.T) {
			b := open(t)
			p := b.product(70, 40, 66, model.SiLU, false, true)
			factor := b.normals(p.rows*p.out, 0.02) // outliers are 1
			bits := rounded(factor)
			ref.Multiply(p.want, factor)
			y := upload(b, bits)
			require.NoError(t, b.multiply(v, cu.NoStream, y, upload(b, rounded(p.x)), y, 0, b.dense(p, upload(b, rounded(p.w))), p.rows))
			near(b, p.want, widened(download[uint16](b, y, p.rows*p.out)), halfStep, p.bound())
		})
	}
}
