package main

import (
	"context"
	"fmt"

	"github.com/alecthomas/kong"

	"sluice/eval"
)

type evalValidateCommand struct {
	output
	Dataset string  `arg:"" type:"existingdir" help:"Directory of the data set."`
	Low     float64 `default:"0.5" help:"Share of its terms that the evidence of a question may repeat, for the question to be in other words."`
	Share   float64 `default:"0.2" help:"Share of the answerable questions that must be in other words."`
}

func (c evalValidateCommand) Run(ctx context.Context, k *kong.Context) error {
	return c.evaluate(ctx, k, func(context.Context) (evaluation, error) {
		validity, err := eval.Validate(c.Dataset, eval.Bounds{Low: c.Low, Share: c.Share})
		if err != nil && validity.Items > 0 {
			fmt.Print(validity.Markdown())
		}
		return validity, err
	})
}
