package milvus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sluice/index"
)

const scratchPrefix = "sluice_check_"

// errWrong: the server speaks the protocol and answers wrongly.
var errWrong = errors.New("it does not answer as Milvus does; use Milvus 2.3 or newer")

// check inserts, searches with filters, upserts and deletes in a collection
// made for that, and compares every answer. Some servers that speak the protocol
// leave rows out.
func (c *Cluster) check(ctx context.Context) (err error) {
	scratch := &collection{Cluster: c, name: scratchPrefix + strings.ToLower(rand.Text()), dims: scratchDims, owner: "check of a server"}
	if err := scratch.open(ctx); err != nil {
		return fmt.Errorf("checking it: %w", err)
	}
	defer func() {
		err = errors.Join(err, scratch.Drop(context.WithoutCancel(ctx), scratch.name))
	}()
	for _, step := range []struct {
		what string
		run  func(context.Context, *collection) error
	}{
		{"insert rows and find them all", checkInsert},
		{"find rows by a list of row numbers", finds(in(rowField, []uint32{1, 2, 3, 4}), 1, 2, 3, 4)},
		{"find rows by a list of documents", finds(in(documentField, []uint32{5, 9}), 10, 11, 18, 19)},
		{"find rows by a class", finds(inClasses([]int64{-1}), 1, 5, 9, 13, 17, 21, 25, 29)},
		{"find rows by a class and a list", finds(in(classField, []int64{-1}).or(in(documentField, []uint32{1})), 1, 2, 3, 5, 9, 13, 17, 21, 25, 29)},
		{"keep documents out", finds(notIn(documentField, []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}), 28, 29, 30, 31)},
		{"replace a row", checkUpsert},
		{"delete rows", checkDelete},
	} {
		if err := step.run(ctx, scratch); err != nil {
			return fmt.Errorf("it was to %s: %w", step.what, err)
		}
	}
	return nil
}

const (
	scratchDims = 8
	scratchRows = 32
)

func scratchRow(row uint32) index.Row {
	v := make([]float32, scratchDims)
	v[row%scratchDims], v[(row/scratchDims)%scratchDims] = 0.8, 0.6
	return index.Row{Row: row, Vector: v}
}

func checkInsert(ctx context.Context, c *collection) error {
	var all columns
	var rows []uint32
	for row := range uint32(scratchRows) {
		all.add(scratchRow(row), row/2, -int64(row%4), 1)
		rows = append(rows, row)
	}
	if err := c.insert(ctx, &all, false); err != nil {
		return err
	}
	return finds(everything(), rows...)(ctx, c)
}

// finds compares the rows that a filter finds, by search and by query.
func finds(e expression, want ...uint32) func(context.Context, *collection) error {
	return func(ctx context.Context, c *collection) error {
		hits, err := c.search(ctx, e, scratchRow(3).Vector, 2*scratchRows)
		if err != nil {
			return err
		}
		got := make([]uint32, len(hits))
		for i, h := range hits {
			got[i] = h.row
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("it returned the rows %d and not %d: %w", got, want, errWrong)
		}
		return nil
	}
}

func checkUpsert(ctx context.Context, c *collection) error {
	var again columns
	again.add(scratchRow(4), 77, 5, 2)
	if err := c.insert(ctx, &again, true); err != nil {
		return err
	}
	rows, err := c.query(ctx, in(rowField, []uint32{4}))
	if err != nil {
		return err
	}
	if want := []stored{{4, 77, 5, 2}}; !slices.Equal(rows, want) {
		return fmt.Errorf("it has %v and not %v: %w", rows, want, errWrong)
	}
	return finds(in(documentField, []uint32{2, 77}), 4, 5)(ctx, c)
}

func checkDelete(ctx context.Context, c *collection) error {
	if err := c.delete(ctx, []uint32{2, 3}); err != nil {
		return err
	}
	return finds(in(rowField, []uint32{1, 2, 3, 4}), 1, 4)(ctx, c)
}
