package milvus

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Owner is what collections say that they are of: a generation of a database.
// Numbers of generations are never used again.
func Owner(database string, generation uint32) string {
	return fmt.Sprint(ownedBy(database), generation)
}

func ownedBy(database string) string { return "rows of Sluice: database " + database + ", generation " }

// DropOrphans drops collections of generations that a database has no more, among
// those whose names begin so, and returns their names: another daemon may have made
// one just when its generation was dropped, or ended before it dropped it. live tells
// the owners that there are; it is asked when the collections are listed, so that
// who is not in it never will be.
func DropOrphans(ctx context.Context, clusters []*Cluster, prefix, database string, live func(context.Context) (map[string]bool, error)) (dropped []string, err error) {
	listed := make([]map[string]string, len(clusters))
	for i, c := range clusters {
		if listed[i], err = c.owners(ctx, prefix); err != nil {
			return nil, err
		}
	}
	alive, err := live(ctx)
	if err != nil {
		return nil, err
	}
	for i, c := range clusters {
		for name, owner := range listed[i] {
			if !strings.HasPrefix(owner, ownedBy(database)) || alive[owner] {
				continue
			}
			if err := c.Drop(ctx, name); err != nil {
				return dropped, err
			}
			dropped = append(dropped, name)
		}
	}
	return dropped, nil
}

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
		err := c.read(ctx, func(ctx context.Context) error {
			described, err := c.searching.DescribeCollection(ctx, name)
			if err == nil {
				found[name] = described.Schema.Description
			} else if c.gone(ctx, name) {
				err = nil
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// gone reports that there is no collection of that name: another daemon was first.
func (c *Cluster) gone(ctx context.Context, name string) bool {
	there, err := c.searching.HasCollection(ctx, name)
	return err == nil && !there
}

// Drop removes a collection of that name, if there is one.
func (c *Cluster) Drop(ctx context.Context, name string) error {
	return (&collection{Cluster: c, name: name}).drop(ctx)
}
