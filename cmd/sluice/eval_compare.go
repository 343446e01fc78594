package main

import (
	"context"

	"github.com/alecthomas/kong"

	"sluice/eval"
)

type evalCompareCommand struct {
	output
	First    string `arg:"" type:"existingdir" help:"Directory that eval run --out wrote."`
	Second   string `arg:"" optional:"" type:"existingdir" help:"Directory of a run that is compared with the first, strategy by strategy. Default: the strategies of the first are compared with one of them."`
	Baseline string `help:"Without a second run: the strategy that the others are compared with. Default: the first of the run."`
	Metric   string `default:"ndcg@10" help:"What is compared: recall@k, mrr@k or ndcg@k."`
}

func (c evalCompareCommand) Run(ctx context.Context, k *kong.Context) error {
	return c.evaluate(ctx, k, func(context.Context) (evaluation, error) { return c.contrasts() })
}

func (c evalCompareCommand) contrasts() (eval.Contrasts, error) {
	first, err := eval.ReadRun(c.First)
	if err != nil {
		return eval.Contrasts{}, err
	}
	if c.Second == "" {
		baseline := c.Baseline
		if baseline == "" && len(first.Strategies) > 0 {
			baseline = first.Strategies[0].Strategy
		}
		return eval.CompareStrategies(first, baseline, c.Metric)
	}
	second, err := eval.ReadRun(c.Second)
	if err != nil {
		return eval.Contrasts{}, err
	}
	return eval.CompareRuns(first, second, c.Metric)
}
