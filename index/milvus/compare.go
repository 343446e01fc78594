package milvus

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"sluice/index"
)

const comparedDocuments = 256 // at a time

// Compare compares every row that the clusters have of an index with the
// documents it is to hold, and reports what differs. With repair it also writes
// what is missing or other, and deletes what is of no document. The index must
// not be open.
func Compare(ctx context.Context, clusters []*Cluster, o Options, documents iter.Seq2[index.Document, error], repair bool, report func(fault string)) error {
	c := comparison{Index: &Index{options: o}, rows: roaring.New(), repair: repair, report: report}
	for _, part := range collections(clusters, o) {
		if err := part.open(ctx); err != nil {
			return err
		}
		c.shards = append(c.shards, &shard{collection: part})
	}
	if err := c.all(ctx, documents); err != nil {
		return err
	}
	for _, s := range c.shards {
		if err := c.others(ctx, s.collection); err != nil {
			return err
		}
	}
	return nil
}

type comparison struct {
	*Index
	rows   *roaring.Bitmap // that documents have
	repair bool
	report func(string)
}

// all compares every document with its cluster, some at a time.
func (c *comparison) all(ctx context.Context, documents iter.Seq2[index.Document, error]) error {
	parts := make([][]index.Document, len(c.shards))
	for d, err := range documents {
		if err != nil {
			return err
		}
		i := c.shardOf(d.Ordinal)
		if parts[i] = append(parts[i], d); len(parts[i]) == comparedDocuments {
			if err := c.documents(ctx, c.shards[i].collection, parts[i]); err != nil {
				return err
			}
			parts[i] = nil
		}
	}
	for i, part := range parts {
		if err := c.documents(ctx, c.shards[i].collection, part); err != nil {
			return err
		}
	}
	return nil
}

// documents compares the rows of documents.
func (c *comparison) documents(ctx context.Context, on *collection, documents []index.Document) error {
	var wrong columns
	for _, d := range documents {
		if err := c.document(ctx, on, d, &wrong); err != nil {
			return err
		}
	}
	if !c.repair {
		return nil
	}
	return on.insert(ctx, &wrong, true)
}

// document adds the rows of a document that are missing or other to wrong.
func (c *comparison) document(ctx context.Context, on *collection, d index.Document, wrong *columns) error {
	rows := rowNumbers(d)
	c.rows.AddMany(rows)
	vectors, err := on.vectors(ctx, rows)
	if err != nil {
		return err
	}
	held, err := on.held(ctx, rows)
	if err != nil {
		return err
	}
	for _, r := range d.Rows {
		if fault := faultOf(r, d.Ordinal, held, vectors); fault != "" {
			c.report(fmt.Sprintf("%s: document %d: row %d %s", on.name, d.Ordinal, r.Row, fault))
			wrong.add(r, d.Ordinal, int64(d.Class), 0)
		}
	}
	return nil
}

func faultOf(r index.Row, ordinal uint32, held map[uint32]stored, vectors map[uint32][]float32) string {
	switch is, there := held[r.Row]; {
	case !there:
		return "is missing"
	case is.ordinal != ordinal:
		return fmt.Sprintf("is said to be of document %d", is.ordinal)
	case !slices.Equal(vectors[r.Row], r.Vector):
		return "has another vector"
	}
	return ""
}

// others reports the rows that are of no document.
func (c *comparison) others(ctx context.Context, on *collection) error {
	var dead []uint32
	err := on.scan(ctx, 0, 1<<32, func(r stored) {
		if !c.rows.Contains(r.row) {
			c.report(fmt.Sprintf("%s: row %d is of no document", on.name, r.row))
			dead = append(dead, r.row)
		}
	})
	if err != nil || !c.repair {
		return err
	}
	return on.delete(ctx, dead)
}
