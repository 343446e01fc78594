package main

import (
	"context"

	"github.com/alecthomas/kong"

	"sluice/eval"
)

type evalFailuresCommand struct {
	evalled `embed:""`

	At  int    `default:"10" help:"How many first results an item must be among."`
	Out string `type:"path" help:"Directory for report.md and a file of every case with misses."`
}

func (c evalFailuresCommand) Run(ctx context.Context, k *kong.Context) error {
	options, err := c.options()
	if err != nil {
		return err
	}
	options.Out = c.Out
	return c.evaluate(ctx, k, func(ctx context.Context) (evaluation, error) { return eval.Trace(ctx, options, c.At) })
}
