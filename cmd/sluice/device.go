package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sluice/gpu"
	"sluice/gpu/cpu"
	"sluice/gpu/cuda"
	"sluice/gpu/graph"
	"sluice/index/local"
	"sluice/retrieve"
)

// openScheduler starts the models on the device of the configuration. Where that
// is auto, it notes what it has become.
func (d *daemon) openScheduler(ctx context.Context, o gpu.Options, dirs []string) (*gpu.Scheduler, error) {
	kind, list, _ := strings.Cut(d.config.Device, ":")
	if kind == "gorgonia" {
		return graph.Open(o, dirs...)
	}
	if kind != "cpu" {
		path, ordinals, err := gpus(ctx, list)
		if err == nil {
			d.config.Device = fmt.Sprint("cuda ", ordinals)
			s, searcher, err := cuda.Open(ctx, path, ordinals, d.log, o, dirs...)
			d.searcher = searcher
			return s, err
		}
		if kind != "auto" {
			return nil, err
		}
		d.log.Info("the CPU runs the models", "why", err)
		d.config.Device = "cpu"
	}
	return cpu.Open(cpu.Precision(d.config.Precision), o, dirs...)
}

// hold has GPUs search large parts of indexes; nil where there are none.
func (d *daemon) hold() func(vectors []float32, dims int) local.Held {
	if d.searcher == nil {
		return nil
	}
	return func(vectors []float32, dims int) local.Held { return d.searcher.Hold(vectors, dims) }
}

// matcher has GPUs score large pools of passages; nil where there are none.
func (d *daemon) matcher() retrieve.Matcher {
	if d.searcher == nil {
		return nil
	}
	return d.searcher.MaxSim
}

// gpus are the devices of a list, all that can be used where it is empty, and
// the program that runs them.
func gpus(ctx context.Context, list string) (path string, ordinals []int, err error) {
	if path, err = cuda.Program(); err != nil {
		return "", nil, err
	}
	if list != "" {
		ordinals, err = cuda.ParseOrdinals(list)
		return path, ordinals, err
	}
	devices, err := cuda.Devices(ctx, path)
	if err != nil {
		return "", nil, err
	}
	for _, d := range devices {
		if d.Usable() {
			ordinals = append(ordinals, d.Ordinal)
		}
	}
	if len(ordinals) == 0 {
		return "", nil, errors.New("no GPU has the compute capability 8.0 that the kernels need ('sluice devices' lists them)")
	}
	return path, ordinals, nil
}
