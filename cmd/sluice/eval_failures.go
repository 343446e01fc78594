package main

import (
	"context"
	"fmt"

	"sluice/eval"
)

type evalFailuresCommand struct {
	evalled `embed:""`

	At  int    `default:"10" help:"How many first results an item must be among."`
	Out string `type:"path" help:"Directory for report.md and a file of every case with misses."`
}

func (c evalFailuresCommand) Run(ctx context.Context) error {
	options, err := c.options()
	if err != nil {
		return err
	}
	failures, err := eval.Trace(ctx, options, c.At)
	if err != nil {
		return exitCode{1, err}
	}
	fmt.Print(failures.Markdown())
	if c.Out != "" {
		if err := failures.Write(c.Out); err != nil {
			return err
		}
	}
	if c.JSON == "" {
		return nil
	}
	return failures.Figures().Write(c.JSON)
}
