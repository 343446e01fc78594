package milvus

import (
	"context"
	"slices"
	"strings"
)

// Collections returns the collections of a cluster whose names begin so.
func (c *Cluster) Collections(ctx context.Context, prefix string) (names []string, err error) {
	err = c.read(ctx, func(ctx context.Context) error {
		all, err := c.searching.ListCollections(ctx)
		names = nil
		for _, collection := range all {
			if strings.HasPrefix(collection.Name, prefix) {
				names = append(names, collection.Name)
			}
		}
		return err
	})
	slices.Sort(names)
	return names, err
}

// owners are what the collections whose names begin so say that they are of.
func (c *Cluster) owners(ctx context.Context, prefix string) (map[string]string, error) {
	names, err := c.Collections(ctx, prefix)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, name := range names {
		owner, there, err := c.ownerOf(ctx, name)
		if err != nil {
			return nil, err
		}
		if there {
			found[name] = owner
		}
	}
	return found, nil
}

func (c *Cluster) ownerOf(ctx context.Context, name string) (owner string, there bool, err error) {
	err = c.read(ctx, func(ctx context.Context) error {
		described, err := c.searching.DescribeCollection(ctx, name)
		if err == nil {
			owner, there = described.Schema.Description, true
		} else if c.gone(ctx, name) {
			err = nil
		}
		return err
	})
	return owner, there, err
}

// gone reports that there is no collection of that name: another daemon was first.
func (c *Cluster) gone(ctx context.Context, name string) bool {
	there, err := c.searching.HasCollection(ctx, name)
	return err == nil && !there
}

// Drop removes a collection of that name, if there is one.
func (c *Cluster) Drop(ctx context.Context, name string) error {
	return c.call(ctx, func(ctx context.Context) error {
		exists, err := c.searching.HasCollection(ctx, name)
		if err != nil || !exists {
			return err
		}
		if err = c.searching.DropCollection(ctx, name); err != nil && c.gone(ctx, name) {
			return nil
		}
		return err
	})
}
