package milvus

import (
	"context"
	"fmt"
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
