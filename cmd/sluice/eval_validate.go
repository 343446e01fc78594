package main

import (
	"context"
	"fmt"

	"sluice/bench/figures"
	"sluice/eval"
)

type evalValidateCommand struct {
	Dataset string  `arg:"" type:"existingdir" help:"Directory of the data set."`
	Low     float64 `default:"0.5" help:"Share of its terms that the evidence of a question may repeat, for the question to be in other words."`
	Share   float64 `default:"0.2" help:"Share of the answerable questions that must be in other words."`
	JSON    string  `name:"json" type:"path" help:"File for the figures."`
}

func (c evalValidateCommand) Run(ctx context.Context) error {
	validity, err := eval.Validate(c.Dataset, eval.Bounds{Low: c.Low, Share: c.Share})
	if validity.Items > 0 {
		fmt.Print(validity.Markdown())
	}
	if err != nil {
		return exitCode{1, err}
	}
	if c.JSON == "" {
		return nil
	}
	return validity.Figures(commandLine(), figures.Commit(ctx)).Write(c.JSON)
}
