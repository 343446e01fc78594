package graph

import (
	"fmt"
	"hash"
	"hash/fnv"
	"math"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// operation is one that Gorgonia lacks: it changes a copy of its first
// operand, row by row of the last dimension. The others are what it needs for
// that. It computes in double precision.
type operation struct {
	name     string // says all that the result depends on
	operands int
	row      func(at int, x []float32, others [][]float32)
}

var _ gorgonia.Op = (*operation)(nil)

// gelu is x·Φ(x) by the error function.
var gelu = &operation{"gelu", 1, func(_ int, x []float32, _ [][]float32) {
	for i, v := range x {
		x[i] = float32(float64(v) / 2 * math.Erfc(-float64(v)/math.Sqrt2))
	}
}}

// softmax is over the last dimension. Gorgonia's own subtracts, in place of a
// row's first element, the tensor's: it overflows where that is far below the
// others of its row.
var softmax = &operation{"softmax", 1, func(_ int, x []float32, _ [][]float32) {
	top, sum := math.Inf(-1), 0.0
	for _, v := range x {
		top = max(top, float64(v))
	}
	for _, v := range x {
		sum += math.Exp(float64(v) - top)
	}
	for i, v := range x {
		x[i] = float32(math.Exp(float64(v)-top) / sum)
	}
}}

// layerNorm normalises the rows of its first operand with gain and bias.
func layerNorm(epsilon float64) *operation {
	return &operation{fmt.Sprintf("layernorm %v", epsilon), 3, func(_ int, x []float32, others [][]float32) {
		var mean, variance float64
		for _, v := range x {
			mean += float64(v) / float64(len(x))
		}
		for _, v := range x {
			variance += (float64(v) - mean) * (float64(v) - mean) / float64(len(x))
		}
		for i, v := range x {
			x[i] = float32((float64(v)-mean)/math.Sqrt(variance+epsilon)*float64(others[0][i]) + float64(others[1][i]))
		}
	}}
}

// rotary turns the rows of heads × positions × size by the angles of their
// position, given as cosines and sines, 1 × positions × size/2.
func rotary(positions int) *operation {
	return &operation{fmt.Sprintf("rotary %d", positions), 3, func(at int, x []float32, others [][]float32) {
		half := len(x) / 2
		first := at % positions * half
		for k := range half {
			turn := complex(float64(others[0][first+k]), float64(others[1][first+k]))
			y := complex(float64(x[k]), float64(x[k+half])) * turn
			x[k], x[k+half] = float32(real(y)), float32(imag(y))
		}
	}}
}

// apply is the node of o over operands.
func (o *operation) apply(operands ...*gorgonia.Node) *gorgonia.Node {
	return gorgonia.Must(gorgonia.ApplyOp(o, operands...))
}

// Do implements gorgonia.Op.
func (o *operation) Do(values ...gorgonia.Value) (gorgonia.Value, error) {
	var others [][]float32
	for _, v := range values[1:] {
		others = append(others, v.Data().([]float32))
	}
	result := values[0].(*tensor.Dense).Clone().(*tensor.Dense)
	x, shape := result.Data().([]float32), result.Shape()
	width := shape[len(shape)-1]
	for at := range len(x) / width {
		o.row(at, x[at*width:][:width], others)
	}
	return result, nil
}

// Type says that all operands have as many dimensions as the result.
func (o *operation) Type() hm.Type {
	all := make([]hm.Type, o.operands+1)
	for i := range all {
		all[i] = hm.TypeVariable('a')
	}
	return hm.NewFnType(all...)
}

// InferShape says that the first operand's shape is the result's.
func (o *operation) InferShape(shapes ...gorgonia.DimSizer) (tensor.Shape, error) {
	return shapes[0].(tensor.Shape).Clone(), nil
}

// Arity and the rest are what gorgonia.Op says.
func (o *operation) Arity() int           { return o.operands }
func (o *operation) ReturnsPtr() bool     { return false }
func (o *operation) CallsExtern() bool    { return false }
func (o *operation) OverwritesInput() int { return -1 }
func (o *operation) String() string       { return o.name }

func (o *operation) WriteHash(h hash.Hash) { h.Write([]byte(o.name)) }
func (o *operation) Hashcode() uint32 {
	h := fnv.New32a()
	o.WriteHash(h)
	return h.Sum32()
}
