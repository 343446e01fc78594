package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sluice/ingest"
	"sluice/retrieve"
)

// generations is what searches run on, as a reindex needs it.
type generations struct {
	*retrieve.Serving
	engine *retrieve.Engine
}

func (g generations) Keys(ctx context.Context, tenant, collection string, generation uint32, q ingest.Query, k int) ([]string, error) {
	principal := q.Principal
	principal.Tenant = tenant
	response, err := g.engine.Search(ctx, retrieve.Request{Principal: principal, Collection: collection, Generation: generation, Query: q.Text, K: 3 * k})
	if err != nil {
		return nil, err
	}
	var keys []string
	seen := map[string]bool{}
	for _, r := range response.Results {
		if !seen[r.Key] && len(keys) < k {
			seen[r.Key] = true
			keys = append(keys, r.Key)
		}
	}
	return keys, nil
}

// sweepIndexes removes indexes of generations that were dropped just before a crash.
func (d *daemon) sweepIndexes(ctx context.Context) error {
	all, err := d.store.Collections(ctx)
	if err != nil {
		return err
	}
	kept := map[string]bool{}
	for _, c := range all {
		for _, g := range c.Live() {
			kept[filepath.Base(collectionDir(d.config.Data, c.At(g)))] = true
		}
	}
	entries, err := os.ReadDir(indexDir(d.config.Data))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		if ours, _ := filepath.Match("c????????", entry.Name()); ours && !kept[entry.Name()] {
			if err := os.RemoveAll(filepath.Join(indexDir(d.config.Data), entry.Name())); err != nil {
				return fmt.Errorf("removing the index of a dropped generation: %w", err)
			}
		}
	}
	return nil
}
