package milvus

import (
	"context"
	"hash/fnv"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"sluice/filter"
	"sluice/index"
)

// shardOf is the cluster of a document: that whose name and the ordinal make the
// highest hash, so that another cluster more moves only what goes to it.
func (ix *Index) shardOf(ordinal uint32) (best int) {
	if len(ix.shards) == 1 {
		return 0
	}
	highest := uint64(0)
	for i, s := range ix.shards {
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(s.address)) // it never fails
		_, _ = hash.Write([]byte{byte(ordinal), byte(ordinal >> 8), byte(ordinal >> 16), byte(ordinal >> 24)})
		if sum := mix(hash.Sum64()); sum > highest {
			best, highest = i, sum
		}
	}
	return best
}

// mix spreads the last bytes hashed over all bits (the finaliser of MurmurHash3).
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// shardChange is what a batch does to one cluster.
type shardChange struct {
	insert   columns
	placed   map[uint32]int64  // ordinal: class under which its rows are, or will be
	removed  []uint32          // ordinals that are there no more
	claimed  map[uint32]uint32 // row: ordinal; were there already
	replaced []uint32          // rows that are dead once the batch is visible
	replace  bool
}

// prepare decides what is to be written where.
func (ix *Index) prepare(ctx context.Context, b index.Batch, touched []uint32) ([]shardChange, error) {
	change := make([]shardChange, len(ix.shards))
	for i := range change {
		// A part of a first filling goes where nothing is; later a row may be
		// there already, by a try that failed or by another daemon.
		change[i] = shardChange{placed: map[uint32]int64{}, claimed: map[uint32]uint32{}, replace: b.Epoch > 0 || ix.stale || len(ix.shards[i].unclaimed) > 0}
	}
	old, err := ix.rowsOf(touched)
	if err != nil {
		return nil, err
	}
	for _, d := range b.Put {
		i := ix.shardOf(d.Ordinal)
		rows := rowNumbers(d)
		if len(rows) > 0 && slices.Equal(rows, old[d.Ordinal]) {
			delete(old, d.Ordinal) // it is the version that is there
			continue
		}
		if err := ix.shards[i].place(ctx, &change[i], d, b.Epoch); err != nil {
			return nil, err
		}
	}
	for ordinal, rows := range old {
		i := ix.shardOf(ordinal)
		change[i].replaced = append(change[i].replaced, rows...)
		if _, again := change[i].placed[ordinal]; !again {
			change[i].removed = append(change[i].removed, ordinal)
		}
	}
	return change, nil
}

// rowsOf returns the live rows of documents.
func (ix *Index) rowsOf(ordinals []uint32) (map[uint32][]uint32, error) {
	rows := map[uint32][]uint32{}
	err := ix.current.postings.Documents(filter.SetOf(ordinals...), func(ordinal uint32, of []uint32) bool {
		rows[ordinal] = slices.Clone(of)
		return true
	})
	return rows, err
}

func rowNumbers(d index.Document) []uint32 {
	rows := make([]uint32, len(d.Rows))
	for i, r := range d.Rows {
		rows[i] = r.Row
	}
	return rows
}

// place claims the document's rows where they are there already, or adds them to
// what is to be inserted.
func (s *shard) place(ctx context.Context, c *shardChange, d index.Document, epoch uint64) error {
	if len(d.Rows) == 0 {
		return nil
	}
	class, there, err := s.has(ctx, d)
	if err != nil {
		return err
	}
	if !there {
		class = int64(d.Class)
	}
	c.placed[d.Ordinal] = class
	for _, r := range d.Rows {
		c.claimed[r.Row] = d.Ordinal
		if !there {
			c.insert.add(r, d.Ordinal, class, epoch)
		}
	}
	return nil
}

// has reports whether the cluster has all the document's rows as they are to be,
// and under which class.
func (s *shard) has(ctx context.Context, d index.Document) (class int64, there bool, err error) {
	for i, r := range d.Rows {
		u, known := s.unclaimed[r.Row]
		if !known || u.ordinal != d.Ordinal || i > 0 && u.class != class {
			return 0, false, nil
		}
		class = u.class
	}
	vectors, err := s.vectors(ctx, rowNumbers(d))
	if err != nil {
		return 0, false, err
	}
	for _, r := range d.Rows {
		if !slices.Equal(r.Vector, vectors[r.Row]) {
			return 0, false, nil
		}
	}
	return class, true, nil
}

// write sends the rows to the clusters and makes sure that they have them.
func (ix *Index) write(ctx context.Context, change []shardChange) error {
	group, ctx := errgroup.WithContext(ctx)
	for i, s := range ix.shards {
		c := &change[i]
		if len(c.insert.rows) == 0 {
			continue
		}
		group.Go(func() error {
			if err := s.insert(ctx, &c.insert, c.replace); err != nil || !c.replace {
				return err
			}
			return s.verify(ctx, slices.Sorted(maps.Keys(c.claimed)))
		})
	}
	return group.Wait()
}

// commit remembers where the rows are now.
func (s *shard) commit(c shardChange) {
	edit := s.classes.edit()
	for _, ordinal := range c.removed {
		edit.remove(ordinal, s.classOf[ordinal])
		delete(s.classOf, ordinal)
	}
	for ordinal, class := range c.placed {
		edit.remove(ordinal, s.classOf[ordinal])
		edit.put(ordinal, class)
		s.classOf[ordinal] = class
	}
	for row := range c.claimed {
		delete(s.unclaimed, row)
	}
	s.classes = edit.classes
}
