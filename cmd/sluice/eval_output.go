package main

import (
	"context"
	"fmt"

	"github.com/alecthomas/kong"

	"sluice/bench/figures"
	"sluice/kernels/simd"
)

// evaluation is what an evaluation found.
type evaluation interface {
	Markdown() string
	Figures() map[string]float64
}

// evaluate prints what an evaluation in this process finds, and writes its figures.
func (o output) evaluate(ctx context.Context, k *kong.Context, f func(context.Context) (evaluation, error)) error {
	return o.here(ctx, k, func(ctx context.Context) (figures.File, error) {
		file := figures.New(ctx, simd.Best().Level)
		found, err := f(ctx)
		if err != nil {
			return file, err
		}
		fmt.Print(found.Markdown())
		file.Figures = found.Figures()
		return file, nil
	})
}
