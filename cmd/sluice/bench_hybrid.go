package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/alecthomas/kong"

	"sluice/bench"
	"sluice/bench/figures"
	"sluice/eval"
)

const benchTenant = "bench"

type benchHybridCommand struct {
	output
	Data      string        `arg:"" type:"existingdir" help:"Directory with texts (.md, .txt, .tar.xz) to make passages of."`
	Passages  int           `default:"300000" help:"How many passages, each a document. The first run embeds them, which takes many minutes; later ones take up its data."`
	Filter    []string      `default:"10" enum:"0.1,1,10,50,100" help:"Percent of the documents that who searches may read; of several, the searches are by readers of each in turn."`
	Rate      float64       `default:"50" help:"Searches a second."`
	Strategy  string        `default:"hybrid" enum:"sparse,dense,hybrid,hybrid-late,auto" help:"Of the searches."`
	Beside    []string      `enum:"sparse,dense,hybrid,hybrid-late,auto" help:"Strategies to compare it with, in turns, for example sparse,auto."`
	Rounds    int           `default:"5" help:"Turns of each load."`
	Turn      time.Duration `default:"10s" help:"Length of one turn."`
	Model     string        `default:"all-minilm-l6-v2" help:"The model that the daemon serves: a name that 'sluice model pull' knows, or a directory."`
	Precision string        `default:"auto" enum:"auto,f32,bf16,int8" help:"Arithmetic of the model."`
}

func (c benchHybridCommand) Run(ctx context.Context, k *kong.Context) error {
	cache, err := benchCache()
	if err != nil {
		return err
	}
	options := bench.HybridOptions{
		Data: c.Data, Cache: cache, Name: filepath.Base(c.Model) + "-" + c.Precision, Passages: c.Passages, Filters: c.Filter,
		Rate: c.Rate, Strategy: c.Strategy, Beside: c.Beside, Rounds: c.Rounds, Turn: c.Turn, Log: os.Stdout, Watch: watchLoad(), Start: c.start,
	}
	return c.write(ctx, k, func(ctx context.Context) (figures.File, error) { return bench.Hybrid(ctx, options) })
}

func (c benchHybridCommand) start(ctx context.Context, dir string) (bench.Daemon, error) {
	d, err := startBenchDaemon(ctx, benchSettings{data: dir, model: c.Model, precision: c.Precision, profile: c.profile})
	if err != nil {
		return bench.Daemon{}, err
	}
	token := func(ctx context.Context, subject string, groups, roles []string) (string, error) {
		return d.secret.token(ctx, eval.Principal{Name: subject, Tenant: benchTenant, Groups: groups, Roles: roles})
	}
	return bench.Daemon{URL: d.url, PID: d.command.Process.Pid, Token: token, Stop: d.stop}, nil
}
