package main

import (
	"context"
	"errors"
	"fmt"

	"sluice/eval"
	"sluice/kernels/simd"
)

type evalSweepCommand struct {
	Datasets   []string `arg:"" type:"existingdir" help:"Directories of data sets with the splits dev and test. All points are tried on dev; the chosen one is run once on test."`
	Strategies []string `default:"sparse,dense,hybrid,hybrid-late" help:"Strategies to try, the cheapest first."`
	Chunkers   []string `help:"Chunkers to try. Default: the one of each format."`
	Precisions []string `default:"auto" help:"Arithmetic of the model to try: auto, f32, bf16, int8."`
	Out        string   `type:"path" help:"Directory for sweep.json and report.md."`
	JSON       string   `name:"json" type:"path" help:"File for the figures."`
}

func (c evalSweepCommand) Run(ctx context.Context) error {
	if len(c.Chunkers) == 0 {
		c.Chunkers = []string{""}
	}
	sweep, err := eval.Tune(ctx, eval.SweepOptions{
		Datasets: c.Datasets, Strategies: c.Strategies, Chunkers: c.Chunkers, Precisions: c.Precisions,
		Connect: func(precision string) eval.Connector { return eval.Over(selfStarter(precision)) },
		Command: commandLine(), Kernels: simd.Best().Level, Progress: progressBars(),
	})
	if err != nil {
		return exitCode{1, err}
	}
	fmt.Print(sweep.Markdown())
	if c.Out != "" {
		err = sweep.Write(c.Out)
	}
	if c.JSON != "" {
		err = errors.Join(err, sweep.Figures(commandLine()).Write(c.JSON))
	}
	for _, report := range sweep.Tests {
		err = errors.Join(err, outcomeError(report, nil))
	}
	return err
}
