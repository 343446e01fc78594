package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"sluice/client"
)

type cacheCommand struct {
	Stats cacheStats `cmd:"" help:"Say how much the embedding cache of a daemon holds."`
	Prune cachePrune `cmd:"" help:"Remove embeddings that were kept long ago; what is still needed is embedded again when it is."`
}

// admin is the admin listener of a daemon.
type admin struct {
	Admin string `help:"Admin listener of the daemon (its setting admin_listen)." default:"http://127.0.0.1:8081"`
}

// hint adds to an error what its usual cause is.
func (a admin) hint(err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%w (is that the admin listener of a daemon? --admin names another; a demo has none: stop it first)", err)
	}
	return err
}

type cacheStats struct{ admin }

func (c cacheStats) Run(ctx context.Context) error {
	api, err := client.New(c.Admin)
	if err != nil {
		return err
	}
	size, err := api.CacheSize(ctx)
	if err != nil {
		return c.hint(err)
	}
	fmt.Printf("%d embeddings, %d MiB\n", size.Entries, size.Bytes>>20)
	return nil
}

type cachePrune struct {
	admin
	OlderThan time.Duration `required:"" help:"Age from which on embeddings are removed, for example 720h; 0s: all."`
}

func (c cachePrune) Run(ctx context.Context) error {
	api, err := client.New(c.Admin)
	if err != nil {
		return err
	}
	removed, err := api.PruneCache(ctx, c.OlderThan)
	if err != nil {
		return c.hint(err)
	}
	fmt.Printf("removed %d embeddings, %d MiB\n", removed.Entries, removed.Bytes>>20)
	return nil
}
