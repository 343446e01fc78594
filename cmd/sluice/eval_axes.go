package main

import (
	"context"
	"errors"
	"runtime"

	"github.com/alecthomas/kong"

	"sluice/document/convert"
	"sluice/eval"
	"sluice/kernels/simd"
)

type evalAxesCommand struct {
	output
	Twins        []string `type:"existingdir" help:"Directories of PDF and HTML with Markdown of the same name (or in a folder md beside theirs), and of DoclingDocument files."`
	Dataset      string   `type:"existingdir" help:"Directory of the data set of --run and --answers."`
	Recorded     string   `name:"run" type:"existingdir" help:"Directory that eval run --out wrote."`
	Answers      string   `type:"existingdir" help:"Directory that eval answers --out wrote."`
	Misses       string   `type:"existingdir" help:"Directory that eval failures --out wrote."`
	K            int      `default:"5" help:"Of precision, recall, nDCG and MRR."`
	MachinePrice float64  `default:"0.10" help:"Dollars for an hour of the machine that builds the index."`
	StoragePrice float64  `default:"0.08" help:"Dollars for a gigabyte of disk and a month."`
	Out          string   `type:"path" help:"Directory for axes.json, report.md, and a file of every document that was read badly."`
}

func (c evalAxesCommand) Run(ctx context.Context, k *kong.Context) (err error) {
	if (c.Recorded != "" || c.Answers != "") && c.Dataset == "" {
		return errors.New("--run and --answers need --dataset: the data set that they are of")
	}
	converter := convert.New(codeCache(), runtime.GOMAXPROCS(0))
	defer func() { err = errors.Join(err, converter.Close()) }()
	options := eval.AxesOptions{
		Twins: c.Twins, Parse: converter.Parse, Dataset: c.Dataset, Run: c.Recorded, Answers: c.Answers, Misses: c.Misses, K: c.K,
		Prices: eval.Prices{Machine: c.MachinePrice, Storage: c.StoragePrice}, Out: c.Out, Command: commandLine(), Kernels: simd.Best().Level, Progress: progressBars(),
	}
	return c.evaluate(ctx, k, func(ctx context.Context) (evaluation, error) { return eval.MeasureAxes(ctx, options) })
}
