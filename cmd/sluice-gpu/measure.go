//go:build nvidia

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"

	"sluice/bench/figures"
	"sluice/gpu/cuda/measure"
	"sluice/gpu/cuda/worker"
)

// commit is set by the linker.
var commit = "unknown"

// measureDevice writes the figures of a device, and to a file if one is named.
func measureDevice(args []string) error {
	flags := flag.NewFlagSet("measure", flag.ContinueOnError)
	file := flags.String("json", "", "write the figures to this file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ordinal, err := strconv.Atoi(flags.Arg(0))
	if err != nil || flags.NArg() != 1 {
		return errors.New("usage: sluice-gpu measure [--json FILE] DEVICE")
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	d, err := worker.Open(ordinal)
	if err != nil {
		return err
	}
	described, err := d.Describe()
	if err != nil {
		return err
	}
	fmt.Printf("%s, compute %s, CUDA %s, kernels %s\n", described.Name, described.Compute, described.Driver, described.Kernels)
	run := figures.New(context.Background(), described.Kernels)
	measured, err := measure.Run(d, program, measure.Full, os.Stdout)
	if *file != "" {
		run.Command, run.Commit, run.Environment.GPU, run.Figures = "sluice-gpu "+strings.Join(os.Args[1:], " "), commit, described.Name, measured
		run.Took()
		err = errors.Join(err, run.Write(*file))
	}
	return errors.Join(err, d.Close())
}
