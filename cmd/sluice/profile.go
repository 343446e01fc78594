package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"runtime/trace"
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
