package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"text/tabwriter"

	"sluice/gpu/cuda"
	"sluice/kernels/simd"
)

type devicesCommand struct{}

func (devicesCommand) Run(ctx context.Context) error { return listDevices(ctx, os.Stdout) }

// listDevices writes what the setting device can name here. That there is no
// GPU is no error.
func listDevices(ctx context.Context, w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "DEVICE\tNAME\tKERNELS\tMEMORY\tDRIVER")
	fmt.Fprintf(table, "cpu\t%s, %d cores\t%s\t-\t-\n", runtime.GOARCH, runtime.GOMAXPROCS(0), simd.Best().Level)
	why := listGPUs(ctx, table)
	if err := table.Flush(); err != nil {
		return err
	}
	if why != nil {
		fmt.Fprintln(w, "no GPU:", why)
	}
	return nil
}

func listGPUs(ctx context.Context, table io.Writer) error {
	path, err := cuda.Program()
	if err != nil {
		return err
	}
	devices, err := cuda.Devices(ctx, path)
	for _, d := range devices {
		fmt.Fprintf(table, "cuda:%d\t%s, compute %s, %d processors\t%s\t%.1f GiB\tCUDA %s\n",
			d.Ordinal, d.Name, d.Compute, d.Processors, d.Kernels, float64(d.Memory)/(1<<30), d.Driver)
	}
	return err
}
