package milvus

import (
	"context"
	"hash/fnv"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"sluice/filter"
	"sluice/index"
	"sluice/index/local"
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
	awaited  columns          // which another daemon is to insert
	placed   map[uint32]int64 // ordinal: class under which its rows are, or will be
	removed  []uint32         // ordinals that are there no more
	claimed  []claim          // rows of the placed; some were there already
	replaced []uint32         // rows that are dead once the batch is visible
	replace  bool
}

// claim is a row of a document.
type claim struct{ row, ordinal uint32 }

// prepare decides what is to be written where.
func (ix *Index) prepare(ctx context.Context, b index.Batch, touched []uint32) ([]shardChange, error) {
	old, err := ix.rowsOf(touched)
	if err != nil {
		return nil, err
	}
	puts := ix.dealOut(b.Put, old)
	change := make([]shardChange, len(ix.shards))
	for i, s := range ix.shards {
		// A part of a first filling goes where nothing is; later a row may be
		// there already, by a try that failed or by another daemon.
		change[i].replace = b.Epoch > 0 || ix.stale || ix.options.Shared > 0 || len(s.unclaimed) > 0
		if err := s.place(ctx, &change[i], puts[i], b.Epoch); err != nil {
			return nil, err
		}
	}
	ix.retire(change, old)
	return change, nil
}

// dealOut returns the documents for each cluster. Those of which old has the same
// rows are there: they are taken out of both.
func (ix *Index) dealOut(put []index.Document, old map[uint32][]uint32) [][]index.Document {
	puts := make([][]index.Document, len(ix.shards))
	for _, d := range put {
		if hasRows(d, old[d.Ordinal]) {
			delete(old, d.Ordinal)
			continue
		}
		d.Elsewhere = d.Elsewhere && ix.options.Shared > 0
		i := ix.shardOf(d.Ordinal)
		puts[i] = append(puts[i], d)
	}
	return puts
}

// hasRows reports whether a document has these rows, and any.
func hasRows(d index.Document, rows []uint32) bool {
	return len(rows) > 0 && slices.EqualFunc(d.Rows, rows, func(r index.Row, row uint32) bool { return r.Row == row })
}

// retire notes what becomes of the documents of which old has the rows.
func (ix *Index) retire(change []shardChange, old map[uint32][]uint32) {
	for ordinal, rows := range old {
		c := &change[ix.shardOf(ordinal)]
		c.replaced = append(c.replaced, rows...)
		if _, again := c.placed[ordinal]; !again {
			c.removed = append(c.removed, ordinal)
		}
	}
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

// place claims the documents' rows where they are there already, or adds them to
// what is to be inserted, here or elsewhere.
func (s *shard) place(ctx context.Context, c *shardChange, documents []index.Document, epoch uint64) error {
	there, err := s.there(ctx, documents)
	if err != nil {
		return err
	}
	c.placed = make(map[uint32]int64, len(documents))
	for _, d := range documents {
		if len(d.Rows) == 0 {
			continue
		}
		class, known := there[d.Ordinal]
		if !known {
			class = int64(d.Class)
		}
		c.placed[d.Ordinal] = class
		to := &c.insert
		if d.Elsewhere {
			to = &c.awaited
		}
		for _, r := range d.Rows {
			c.claimed = append(c.claimed, claim{r.Row, d.Ordinal})
			if !known {
				to.add(r, d.Ordinal, class, epoch)
			}
		}
	}
	return nil
}

// there returns the documents of which the cluster has all rows as they are to
// be, and under which class.
func (s *shard) there(ctx context.Context, documents []index.Document) (map[uint32]int64, error) {
	var rows []uint32
	there := map[uint32]int64{}
	for _, d := range documents {
		if class, known := s.unclaimedClass(d); known {
			there[d.Ordinal] = class
			rows = append(rows, rowNumbers(d)...)
		}
	}
	vectors, err := s.vectors(ctx, rows)
	if err != nil {
		return nil, err
	}
	for _, d := range documents {
		for _, r := range d.Rows {
			if !slices.Equal(r.Vector, vectors[r.Row]) {
				delete(there, d.Ordinal)
			}
		}
	}
	return there, nil
}

// unclaimedClass is that of the document's rows if all are among the unclaimed.
func (s *shard) unclaimedClass(d index.Document) (class int64, known bool) {
	for i, r := range d.Rows {
		u, known := s.unclaimed[r.Row]
		if !known || u.ordinal != d.Ordinal || i > 0 && u.class != class {
			return 0, false
		}
		class = u.class
	}
	return class, len(d.Rows) > 0
}

// write sends the rows to the clusters and makes sure that they have them. Meanwhile
// the embedded index analyses the texts: both take long, and neither can be seen yet.
func (ix *Index) write(ctx context.Context, b index.Batch, change []shardChange) (staged *local.Staged, err error) {
	group, ctx := errgroup.WithContext(ctx)
	for i, s := range ix.shards {
		group.Go(index.Guarded(func() error { return s.write(ctx, &change[i]) }))
	}
	group.Go(index.Guarded(func() (err error) {
		staged, err = ix.postings.Stage(ctx, withoutVectors(b))
		return err
	}))
	return staged, group.Wait()
}

// withoutVectors is the batch as the embedded index is to hold it.
func withoutVectors(b index.Batch) index.Batch {
	b.Put = slices.Clone(b.Put)
	for i, d := range b.Put {
		rows := slices.Clone(d.Rows)
		for j := range rows {
			rows[j].Vector = nil
		}
		b.Put[i].Rows = rows
	}
	return b
}

func (s *shard) write(ctx context.Context, c *shardChange) error {
	if err := s.insert(ctx, &c.insert, c.replace); err != nil {
		return err
	}
	left, err := s.await(ctx, &c.awaited)
	if err == nil {
		err = s.insert(ctx, left, c.replace)
	}
	if err != nil || !c.replace || len(c.insert.rows)+len(left.rows) == 0 {
		return err
	}
	return s.verify(ctx, c.rows())
}

// rows are those claimed.
func (c *shardChange) rows() []uint32 {
	rows := make([]uint32, len(c.claimed))
	for i, r := range c.claimed {
		rows[i] = r.row
	}
	return rows
}

const (
	awaitEach = 20 * time.Millisecond
	awaitMost = 500 * time.Millisecond // then the daemon that took the documents is taken for dead
)

// await waits until another daemon has inserted rows, and returns those that it
// has not. To insert them twice would be no harm: they would be the same.
func (s *shard) await(ctx context.Context, rows *columns) (left *columns, err error) {
	if len(rows.rows) == 0 {
		return rows, nil
	}
	for began := time.Now(); ; wait(ctx, awaitEach) {
		held, err := s.held(ctx, rows.numbers())
		if err != nil {
			return nil, err
		}
		if left = rows.except(held); len(left.rows) == 0 {
			return left, s.catchUp(ctx)
		}
		if time.Since(began) > s.patience {
			return left, nil
		}
	}
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
	for _, r := range c.claimed {
		delete(s.unclaimed, r.row)
	}
	s.classes = edit.classes
}
