package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/alecthomas/kong"

	"sluice/bench"
	"sluice/bench/figures"
	"sluice/client"
	"sluice/eval"
)

type benchReindexCommand struct {
	output
	Data      string  `arg:"" type:"existingdir" help:"Directory with two snapshots of the Kubernetes Enhancement Proposals, keps-2026-01-01.tar.xz and keps-2026-07-25.tar.xz."`
	Documents int     `help:"Take so many of them only."`
	Cycles    int     `default:"100" help:"Builds, switches, rollbacks and drops under load."`
	Switched  int     `default:"30" help:"Documents of the collection that is switched."`
	Rate      float64 `default:"50" help:"Searches a second meanwhile."`
	Precision string  `default:"auto" enum:"auto,f32,bf16,int8" help:"Arithmetic of the model."`
}

func (c benchReindexCommand) Run(ctx context.Context, k *kong.Context) error {
	return c.here(ctx, k, c.measure)
}

// measure starts a daemon of its own, in this process.
func (c benchReindexCommand) measure(ctx context.Context) (file figures.File, err error) {
	target, err := startSelf(ctx, &eval.Dataset{}, c.Precision)
	if err != nil {
		return file, err
	}
	defer func() { err = errors.Join(err, target.Stop()) }()
	as := func(tenant string) (*client.Client, error) {
		token, err := target.Token(ctx, eval.Principal{Tenant: tenant, Name: "root", Roles: []string{"admin"}})
		if err != nil {
			return nil, err
		}
		return client.New(target.URL, client.WithToken(token), client.WithRetries(0))
	}
	return bench.Reindex(ctx, bench.ReindexOptions{
		API: as, Old: filepath.Join(c.Data, "keps-2026-01-01.tar.xz"), New: filepath.Join(c.Data, "keps-2026-07-25.tar.xz"),
		Documents: c.Documents, Cycles: c.Cycles, Switched: c.Switched, Rate: c.Rate, Log: os.Stdout,
	})
}
