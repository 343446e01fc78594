//go:build !cuda

package graph

import (
	"context"
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// evaluate computes what roots are worth. It stands in for Gorgonia's machines,
// which compute on a goroutine of their own: a panic there ends the process.
// Here it reaches the caller; and a value is given up after its last use.
func evaluate(ctx context.Context, g *gorgonia.ExprGraph, roots []*gorgonia.Node) ([][]float32, error) {
	uses := map[int64]int{}
	for _, n := range g.AllNodes() {
		for _, operand := range operands(g, n) {
			uses[operand]++
		}
	}
	for _, n := range roots {
		uses[n.ID()]++
	}
	values := map[int64]gorgonia.Value{}
	for _, n := range g.AllNodes() { // operands come before what is made of them
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v, err := value(n, operands(g, n), values)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", n.Op(), err)
		}
		values[n.ID()] = v
		for _, operand := range operands(g, n) {
			if uses[operand]--; uses[operand] == 0 {
				delete(values, operand)
			}
		}
	}
	var all [][]float32
	for _, n := range roots {
		all = append(all, values[n.ID()].Data().([]float32))
	}
	return all, nil
}

// value is n's own, or what its operation makes of its operands' values.
func value(n *gorgonia.Node, operands []int64, values map[int64]gorgonia.Value) (gorgonia.Value, error) {
	if n.Op() == nil {
		return n.Value(), nil
	}
	var inputs []gorgonia.Value
	for _, operand := range operands {
		inputs = append(inputs, values[operand])
	}
	return n.Op().Do(inputs...)
}

func operands(g *gorgonia.ExprGraph, n *gorgonia.Node) (ids []int64) {
	for all := g.From(n.ID()); all.Next(); {
		ids = append(ids, all.Node().ID())
	}
	return ids
}

// transposed lends x, which only says that it is transposed: what multiplies
// takes the numbers as they lie.
func transposed(x []float32, rows, columns int) *tensor.Dense {
	t := matrix(x, rows, columns)
	if err := t.T(); err != nil {
		panic(err) // a matrix can be transposed
	}
	return t
}
