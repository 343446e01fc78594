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

// sweepIndexes removes indexes of generations that were dropped just before a
// crash, or while Milvus could not be reached.
func (d *daemon) sweepIndexes(ctx context.Context) error {
	all, err := d.store.Collections(ctx)
	if err != nil {
		return err
	}
	kept := map[string]bool{}
	for _, c := range all {
		for _, g := range c.Live() {
			kept[collectionDir(d.indexes, c.At(g))] = true
			if len(d.milvus) == 0 {
				continue
			}
			options, err := d.milvusOptions(c.At(g))
			if err != nil {
				return err
			}
			kept[options.Dir] = true
		}
	}
	err = sweep(d.indexes, "c????????", kept, os.RemoveAll)
	if err == nil && len(d.milvus) > 0 {
		err = sweep(d.milvusDir(), "*", kept, func(dir string) error { return d.removeFromMilvus(ctx, dir) })
	}
	if err == nil {
		err = d.sweepMilvus(ctx)
	}
	return err
}

// sweep removes what is in a directory, of names like that, and is not kept.
func sweep(dir, names string, kept map[string]bool, remove func(string) error) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		name := filepath.Join(dir, entry.Name())
		if ours, _ := filepath.Match(names, entry.Name()); !ours || kept[name] {
			continue
		}
		if err := remove(name); err != nil {
			return fmt.Errorf("removing the index of a dropped generation: %w", err)
		}
	}
	return nil
}
