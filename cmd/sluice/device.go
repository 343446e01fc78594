package main

import (
	"context"
	"errors"
	"strings"

	"sluice/gpu"
	"sluice/gpu/cpu"
	"sluice/gpu/cuda"
	"sluice/gpu/graph"
)

// openScheduler starts the models on the device of the configuration, of which
// it notes what it has become.
func (d *daemon) openScheduler(ctx context.Context, o gpu.Options, dirs []string) (*gpu.Scheduler, error) {
	kind, list, _ := strings.Cut(d.config.Device, ":")
	switch kind {
	case "gorgonia":
		return graph.Open(o, dirs...)
	case "auto":
		path, ordinals, err := gpus(ctx, "")
		if err != nil {
			d.log.Info("no GPU is used", "why", err)
			d.config.Device = "cpu"
			break
		}
		d.config.Device = "cuda"
		return cuda.Open(ctx, path, ordinals, d.log, o, dirs...)
	case "cuda":
		path, ordinals, err := gpus(ctx, list)
		if err != nil {
			return nil, err
		}
		return cuda.Open(ctx, path, ordinals, d.log, o, dirs...)
	}
	return cpu.Open(cpu.Precision(d.config.Precision), o, dirs...)
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
