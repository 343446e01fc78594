package main

import (
	"context"
	"errors"
	"fmt"

	"sluice/document/convert"
	"sluice/eval"
	"sluice/kernels/simd"
)

type evalAxesCommand struct {
	Twins        []string `type:"existingdir" help:"Directories of PDF and HTML with Markdown of the same name (or in a folder md beside theirs), and of DoclingDocument files."`
	Dataset      string   `type:"existingdir" help:"Directory of the data set of --run and --answers."`
	Recorded     string   `name:"run" type:"existingdir" help:"Directory that eval run --out wrote."`
	Answers      string   `type:"existingdir" help:"Directory that eval answers --out wrote."`
	K            int      `default:"5" help:"Of precision, recall, nDCG and MRR."`
	MachinePrice float64  `default:"0.10" help:"Dollars for an hour of the machine that builds the index."`
	StoragePrice float64  `default:"0.08" help:"Dollars for a gigabyte of disk and a month."`
	Out          string   `type:"path" help:"Directory for axes.json and report.md."`
	JSON         string   `name:"json" type:"path" help:"File for the figures."`
}

func (c evalAxesCommand) Run(ctx context.Context) (err error) {
	if (c.Recorded != "" || c.Answers != "") && c.Dataset == "" {
		return errors.New("--run and --answers need --dataset: the data set that they are of")
	}
	converter := convert.New(codeCache())
	defer func() { err = errors.Join(err, converter.Close()) }()
	axes, err := eval.MeasureAxes(ctx, eval.AxesOptions{
		Twins: c.Twins, Parse: converter.Parse, Dataset: c.Dataset, Run: c.Recorded, Answers: c.Answers, K: c.K,
		Prices: eval.Prices{Machine: c.MachinePrice, Storage: c.StoragePrice}, Command: commandLine(), Kernels: simd.Best().Level, Progress: progressBars(),
	})
	if err != nil {
		return exitCode{1, err}
	}
	fmt.Print(axes.Markdown())
	if c.Out != "" {
		err = axes.Write(c.Out)
	}
	if c.JSON != "" {
		err = errors.Join(err, axes.Figures().Write(c.JSON))
	}
	return err
}
