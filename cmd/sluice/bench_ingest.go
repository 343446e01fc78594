package main

import (
	"context"
	"errors"
	"os"

	"github.com/alecthomas/kong"

	"sluice/bench"
	"sluice/bench/figures"
	"sluice/client"
	"sluice/eval"
)

type benchIngestCommand struct {
	output
	Data      string `arg:"" type:"existingdir" help:"Directory with texts (.md, .txt, .tar.xz) to make documents of."`
	Documents int    `default:"200" help:"How many, of about 700 words each."`
	Streams   int    `default:"4" help:"Bulk requests side by side."`
	Rounds    int    `default:"3" help:"How often, each time as another tenant."`
	Model     string `default:"all-minilm-l6-v2" help:"The model that the daemon serves: a name that 'sluice model pull' knows, or a directory."`
	Precision string `default:"auto" enum:"auto,f32,bf16,int8" help:"Arithmetic of the model."`
}

func (c benchIngestCommand) Run(ctx context.Context, k *kong.Context) error {
	return c.write(ctx, k, c.measure)
}

func (c benchIngestCommand) measure(ctx context.Context) (file figures.File, err error) {
	cache, err := benchCache()
	if err != nil {
		return file, err
	}
	d, err := startBenchDaemon(ctx, benchSettings{model: c.Model, precision: c.Precision, profile: c.profile})
	if err != nil {
		return file, err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	as := func(tenant string) (*client.Client, error) {
		token, err := d.secret.token(ctx, eval.Principal{Tenant: tenant, Name: "root", Roles: []string{"admin"}})
		if err != nil {
			return nil, err
		}
		return client.New(d.url, client.WithToken(token))
	}
	return bench.Ingest(ctx, bench.IngestOptions{
		Data: c.Data, Cache: cache, Documents: c.Documents, Streams: c.Streams, Rounds: c.Rounds, Log: os.Stdout, API: as, PID: d.command.Process.Pid,
	})
}
