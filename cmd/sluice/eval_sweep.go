package main

import (
	"context"
	"errors"

	"github.com/alecthomas/kong"

	"sluice/eval"
	"sluice/kernels/simd"
)

type evalSweepCommand struct {
	output
	Datasets   []string `arg:"" type:"existingdir" help:"Directories of data sets with the splits dev and test. All points are tried on dev; the chosen one is run once on test."`
	Strategies []string `default:"sparse,dense,hybrid,hybrid-late" help:"Strategies to try, the cheapest first."`
	Chunkers   []string `help:"Chunkers to try. Default: the one of each format."`
	Precisions []string `default:"auto" help:"Arithmetic of the model to try: auto, f32, bf16, int8."`
	Out        string   `type:"path" help:"Directory for sweep.json and report.md."`
}

func (c evalSweepCommand) Run(ctx context.Context, k *kong.Context) error {
	if len(c.Chunkers) == 0 {
		c.Chunkers = []string{""}
	}
	options := eval.SweepOptions{
		Datasets: c.Datasets, Strategies: c.Strategies, Chunkers: c.Chunkers, Precisions: c.Precisions,
		Connect: func(precision string) eval.Connector { return eval.Over(selfStarter(precision)) },
		Out:     c.Out, Command: commandLine(), Kernels: simd.Best().Level, Progress: progressBars(),
	}
	var sweep eval.Sweep
	err := c.evaluate(ctx, k, func(ctx context.Context) (_ evaluation, err error) {
		sweep, err = eval.Tune(ctx, options)
		return sweep, err
	})
	for _, report := range sweep.Tests {
		err = errors.Join(err, outcomeError(report))
	}
	return err
}
