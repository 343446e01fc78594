package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"sluice/client"
	"sluice/eval"
)

// target is a daemon to measure.
type target struct {
	url    string
	secret signer
	pid    int
	admin  string // host:port; "": not known
}

func (c benchServeCommand) daemon(ctx context.Context, dataset *eval.Dataset) (target, func() error, error) {
	if c.Self {
		d, err := startBenchDaemon(ctx, benchSettings{
			policies: dataset.Policies, attributes: attributeNames(dataset), model: c.Model, precision: c.Precision, connections: c.Idle, profile: c.profile,
		})
		if err != nil {
			return target{}, nil, err
		}
		return target{d.url, d.secret, d.command.Process.Pid, d.admin}, d.stop, nil
	}
	if len(c.files()) > 0 {
		return target{}, nil, errors.New("--server: a daemon that runs is profiled by its admin listener, at /debug/pprof")
	}
	if c.Secret == "" {
		return target{}, nil, errors.New("--server needs --secret: the load asks as many principals")
	}
	secret, err := os.ReadFile(c.Secret)
	return target{strings.TrimSuffix(c.Server, "/"), secret, c.PID, ""}, func() error { return nil }, err
}

func (t target) ingest(ctx context.Context, dataset *eval.Dataset) error {
	for _, tenant := range dataset.Tenants() {
		token, err := t.secret.token(ctx, eval.Principal{Name: "bench", Tenant: tenant, Roles: []string{"admin"}})
		if err != nil {
			return err
		}
		api, err := client.New(t.url, client.WithToken(token))
		if err != nil {
			return err
		}
		defer api.CloseIdle()
		if _, err := api.CreateCollection(ctx, dataset.Name, client.CollectionSettings{}); err != nil {
			return err
		}
		out := &outcome{count: map[string]int{}}
		err = api.Ingest(ctx, dataset.Name, dataset.Current(tenant), func(r client.WriteResult) error {
			out.add(r)
			return nil
		})
		if err := errors.Join(err, out.err()); err != nil {
			return fmt.Errorf("ingesting the data set: %w", err)
		}
	}
	return nil
}

func (t target) tokens(ctx context.Context, dataset *eval.Dataset) (map[string]string, error) {
	tokens := map[string]string{}
	for _, p := range dataset.Principals {
		token, err := t.secret.token(ctx, p)
		if err != nil {
			return nil, err
		}
		tokens[p.Name] = token
	}
	return tokens, nil
}
