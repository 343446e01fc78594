package main

import (
	"context"
	"fmt"

	"sluice/eval"
	"sluice/kernels/simd"
)

type evalRouterCommand struct {
	Datasets  []string `arg:"" type:"existingdir" help:"Directories of data sets with the split dev. Their cases are asked by sparse and hybrid-late."`
	Precision string   `default:"auto" enum:"auto,f32,bf16,int8" help:"Arithmetic of the model."`
	Out       string   `required:"" type:"path" help:"File for the model, retrieve/complexity/model.json in the sources."`
}

func (c evalRouterCommand) Run(ctx context.Context) error {
	model, err := eval.TrainRouter(ctx, c.Datasets, eval.Options{
		Connect: eval.Over(selfStarter(c.Precision)), Command: commandLine(), Kernels: simd.Best().Level, Progress: progressBars(),
	})
	if err != nil {
		return err
	}
	for i, name := range model.Features {
		fmt.Printf("%-10s %+.3f\n", name, model.Weights[i])
	}
	fmt.Printf("%-10s %+.3f\n", "bias", model.Bias)
	return eval.WriteRouter(model, c.Out)
}
