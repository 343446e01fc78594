package main

import (
	"context"
	"fmt"

	"github.com/alecthomas/kong"

	"sluice/bench/figures"
)

// output is where figures go, and with them how they were made.
type output struct {
	profile
	JSON string `name:"json" type:"path" help:"File for the figures, and for all that says where and how they were measured."`
}

type measure func(context.Context) (figures.File, error)

// here measures in this process, and profiles it.
func (o output) here(ctx context.Context, k *kong.Context, f measure) error {
	return o.profile.run(func() error { return o.write(ctx, k, f) })
}

// write measures, and writes the figures where they are wanted.
func (o output) write(ctx context.Context, k *kong.Context, f measure) error {
	file, err := f(ctx)
	if err != nil || o.JSON == "" {
		return err
	}
	file.Command, file.Flags, file.Profiles = commandLine(), flags(k), o.files()
	file.Took()
	return file.Write(o.JSON)
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
