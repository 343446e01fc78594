package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"text/tabwriter"

	"sluice/gpu/cuda"
	"sluice/gpu/cuda/wire"
	"sluice/kernels/simd"
	"sluice/model"
)

type devicesCommand struct {
	Models []string `arg:"" optional:"" type:"existingdir" help:"Model directories: each GPU tries its kernels on their matrices, and those that would serve are listed."`
}

func (c devicesCommand) Run(ctx context.Context) error {
	return listDevices(ctx, os.Stdout, c.Models...)
}

// listDevices writes what the setting device can name here, and which kernels
// would multiply for models. That there is no GPU is no error.
func listDevices(ctx context.Context, w io.Writer, models ...string) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "DEVICE\tNAME\tKERNELS\tMEMORY\tDRIVER")
	fmt.Fprintf(table, "cpu\t%s, %d cores\t%s\t-\t-\n", runtime.GOARCH, runtime.GOMAXPROCS(0), simd.Best().Level)
	path, gpus, why := listGPUs(ctx, table)
	if err := table.Flush(); err != nil {
		return err
	}
	if why != nil {
		fmt.Fprintln(w, "no GPU:", why)
	}
	for _, dir := range models {
		if err := listKernels(ctx, w, path, gpus, dir); err != nil {
			return err
		}
	}
	return nil
}

func listGPUs(ctx context.Context, table io.Writer) (path string, devices []wire.Device, err error) {
	if path, err = cuda.Program(); err != nil {
		return "", nil, err
	}
	devices, err = cuda.Devices(ctx, path)
	for _, d := range devices {
		fmt.Fprintf(table, "cuda:%d\t%s, compute %s, %d processors\t%s\t%.1f GiB\tCUDA %s\n",
			d.Ordinal, d.Name, d.Compute, d.Processors, d.Kernels, float64(d.Memory)/(1<<30), d.Driver)
	}
	return path, devices, err
}

// listKernels has each GPU try its kernels on a model's matrices. What is wrong
// with one goes to the standard error.
func listKernels(ctx context.Context, w io.Writer, path string, gpus []wire.Device, dir string) error {
	data, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		return fmt.Errorf("%s is no model's directory: %w", dir, err)
	}
	config, err := model.ParseConfig(data)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	warnings := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	for _, d := range gpus {
		if !d.Usable() {
			continue
		}
		fmt.Fprintf(w, "\n%s on cuda:%d: matrices, in × out, and kernels by rows of a batch\n", dir, d.Ordinal)
		for _, line := range cuda.Kernels(cuda.FastestKernels(ctx, path, d.Ordinal, config, 0, warnings)) {
			fmt.Fprintln(w, " ", line)
		}
	}
	return nil
}
