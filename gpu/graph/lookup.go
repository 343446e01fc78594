package graph

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// lookup is the sum of each token's rows in the tables, tokens × hidden.
func (e *expression) lookup() *node {
	x := e.rows(e.weights.word, func(i int) int { return int(e.ids[i]) })
	if t := e.weights.position; t != nil {
		positions := e.positions()
		x = add(x, e.rows(t, func(i int) int { return positions[i] }))
	}
	if t := e.weights.kind; t != nil {
		x = add(x, e.rows(t, e.kind))
	}
	return x
}

// rows are those of a table that each token names.
func (e *expression) rows(table *tensor.Dense, of func(token int) int) *node {
	numbers := make([]int, len(e.ids))
	for i := range numbers {
		numbers[i] = of(i)
	}
	list := tensor.New(tensor.WithShape(len(numbers)), tensor.WithBacking(numbers))
	return gorgonia.Must(gorgonia.ByIndices(e.input(table), e.input(list), 0))
}

// kind is 0 where the model makes no difference.
func (e *expression) kind(i int) int {
	if e.config.Types < 2 {
		return 0
	}
	return int(e.kinds[i])
}

// positions are the tokens' as model.Config.Offset says.
func (e *expression) positions() []int {
	padding, next := e.config.Offset-1, e.config.Offset
	positions := make([]int, len(e.ids))
	for i, id := range e.ids {
		if e.config.Offset > 0 && int(id) == padding {
			positions[i] = padding
			continue
		}
		positions[i] = next
		next++
	}
	return positions
}
