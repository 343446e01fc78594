package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"runtime/trace"

	"github.com/alecthomas/kong"

	"sluice/bench/figures"
)

// profile is what a process notes of itself while it works.
type profile struct {
	CPU   string `name:"cpuprofile" type:"path" help:"File for a CPU profile of whatever is measured; 'go tool pprof -http=: FILE' shows its flame graph."`
	Trace string `name:"trace" type:"path" help:"File for an execution trace of it; 'go tool trace FILE' shows it. It slows what it traces down."`
}

// run does f meanwhile.
func (p profile) run(f func() error) (err error) {
	for _, kind := range []struct {
		path  string
		start func(*os.File) error
		stop  func()
	}{
		{p.CPU, func(f *os.File) error { return pprof.StartCPUProfile(f) }, pprof.StopCPUProfile},
		{p.Trace, func(f *os.File) error { return trace.Start(f) }, trace.Stop},
	} {
		if kind.path == "" {
			continue
		}
		file, err := os.Create(kind.path)
		if err == nil {
			err = kind.start(file)
		}
		if err != nil {
			return fmt.Errorf("profiling: %w", err)
		}
		defer func() {
			kind.stop()
			err = errors.Join(err, file.Close())
		}()
	}
	return f()
}

// args are the flags that say the same.
func (p profile) args() (args []string) {
	if p.CPU != "" {
		args = append(args, "--cpuprofile", p.CPU)
	}
	if p.Trace != "" {
		args = append(args, "--trace", p.Trace)
	}
	return args
}

func (p profile) files() (files []string) {
	for _, path := range []string{p.CPU, p.Trace} {
		if path != "" {
			files = append(files, path)
		}
	}
	return files
}

// report is where figures go, and with them how they were made.
type report struct {
	profile
	JSON string `name:"json" type:"path" help:"File for the figures, and for all that says where and how they were measured."`
}

type measure func(context.Context) (figures.File, error)

// here measures in this process, and profiles it.
func (r report) here(ctx context.Context, k *kong.Context, f measure) error {
	return r.profile.run(func() error { return r.write(ctx, k, f) })
}

// write measures, and writes the figures where they are wanted.
func (r report) write(ctx context.Context, k *kong.Context, f measure) error {
	file, err := f(ctx)
	if err != nil || r.JSON == "" {
		return err
	}
	file.Command, file.Flags, file.Profiles = commandLine(), flags(k), r.files()
	file.Took()
	return file.Write(r.JSON)
}

// flags are those in force, but for where the figures go.
func flags(k *kong.Context) map[string]string {
	all := map[string]string{}
	for _, flag := range k.Flags() {
		switch flag.Name {
		case "help", "version", "json", "cpuprofile", "trace":
		default:
			all[flag.Name] = fmt.Sprint(k.FlagValue(flag))
		}
	}
	return all
}
