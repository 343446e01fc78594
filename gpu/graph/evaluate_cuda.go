//go:build cuda

package graph

import (
	"context"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// evaluate has Gorgonia's machine compute what roots are worth: on the GPU,
// where an operation has a kernel there. What panics ends the process, and ctx
// is looked at once.
func evaluate(ctx context.Context, g *gorgonia.ExprGraph, roots []*gorgonia.Node) ([][]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	machine := gorgonia.NewTapeMachine(g)
	defer machine.Close()
	if err := machine.RunAll(); err != nil {
		return nil, err
	}
	var all [][]float32
	for _, n := range roots {
		all = append(all, n.Value().Data().([]float32))
	}
	return all, nil
}

// transposed moves the numbers, as a GPU gets them as they lie. The model's stay.
func transposed(x []float32, rows, columns int) *tensor.Dense {
	t := matrix(x, rows, columns)
	if err := t.T(); err != nil {
		panic(err) // a matrix can be transposed
	}
	return t.Materialize().(*tensor.Dense)
}
