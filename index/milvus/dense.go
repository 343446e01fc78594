package milvus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"sluice/filter"
	"sluice/index"
	"sluice/kernels/ref"
)

const (
	searchSlack    = 8 // rows asked for beyond k: replaced ones, and ties
	searchWidening = 4
	searchesAtOnce = 4    // of one query, on one cluster
	exactRows      = 2048 // vectors fetched at a time
)

// search is one query of the dense leg. k is not more than there are allowed rows.
type search struct {
	state   *state
	allowed filter.Set
	vector  []float32
	k       int
	partial bool
}

// run merges what the clusters found. With partial, the answer without clusters
// that fail comes with index.ErrPartial.
func (s *search) run(ctx context.Context, p *plan) ([]index.Hit, error) {
	if len(s.state.shards) == 1 {
		return s.shard(ctx, 0, p)
	}
	var (
		group errgroup.Group
		found = make([][]index.Hit, len(s.state.shards))
		errs  = make([]error, len(s.state.shards))
	)
	for i := range s.state.shards {
		group.Go(func() error {
			errs[i] = index.Guarded(func() (err error) {
				found[i], err = s.shard(ctx, i, p)
				return err
			})()
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs
	err := errors.Join(errs...)
	if err != nil && (!s.partial || slices.IndexFunc(errs, func(err error) bool { return err == nil }) < 0) {
		return nil, err
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", index.ErrPartial, err)
	}
	return s.best(slices.Concat(found...)), err
}

// errCut: the server has more rows that match than it tells.
var errCut = errors.New("more rows match than a search can return")

// shard returns the best rows of one cluster.
func (s *search) shard(ctx context.Context, i int, p *plan) ([]index.Hit, error) {
	shard := s.state.shards[i]
	hits, err := s.covered(ctx, shard.collection, p.covers[i])
	if err == nil && len(hits) >= s.k {
		return hits, nil
	}
	if (err == nil || errors.Is(err, errCut)) && p.rows > exactRows {
		hits, err = s.covered(ctx, shard.collection, shard.classes.listed(s.allowed))
	}
	if err != nil && !errors.Is(err, errCut) {
		return nil, err
	}
	if err == nil && len(hits) >= s.k {
		return hits, nil
	}
	return s.exact(ctx, shard, hits)
}

// covered makes all searches of a cover.
func (s *search) covered(ctx context.Context, c *collection, cover cover) ([]index.Hit, error) {
	if len(cover.searches) == 1 {
		return s.top(ctx, c, cover.searches[0], cover.share)
	}
	var mu sync.Mutex
	var hits []index.Hit
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(searchesAtOnce)
	for _, e := range cover.searches {
		group.Go(index.Guarded(func() error {
			found, err := s.top(ctx, c, e, cover.share)
			mu.Lock()
			defer mu.Unlock()
			hits = append(hits, found...)
			return err
		}))
	}
	err := group.Wait()
	return s.best(hits), err
}

// top returns the best allowed rows that match. It asks for more until there are
// k, with all their ties, or no more rows.
func (s *search) top(ctx context.Context, c *collection, e expression, share float64) ([]index.Hit, error) {
	for n := min(int(float64(s.k)/share)+searchSlack, mostResults); ; n = min(searchWidening*n, mostResults) {
		found, err := c.search(ctx, e, s.vector, n)
		if err != nil {
			return nil, err
		}
		hits := s.visible(found)
		switch {
		case len(found) < n, len(hits) >= s.k && found[n-1].score < hits[s.k-1].Score:
			return s.best(hits), nil
		case n == mostResults:
			return s.best(hits), errCut
		}
	}
}

// visible leaves out what the Set does not admit and what is not live. The
// server's word is taken for neither.
func (s *search) visible(rows []found) []index.Hit {
	hits := make([]index.Hit, 0, min(len(rows), s.k+searchSlack))
	for _, f := range rows {
		ordinal, known := s.state.owners.of(f.row)
		hit := index.Hit{Row: f.row, Ordinal: ordinal, Score: f.score}
		if known && s.allowed.Contains(ordinal) && s.state.postings.Holds(hit) {
			hits = append(hits, hit)
		}
	}
	return hits
}

// best returns the k best, each row once.
func (s *search) best(hits []index.Hit) []index.Hit {
	slices.SortFunc(hits, func(a, b index.Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Row, b.Row))
	})
	hits = slices.CompactFunc(hits, func(a, b index.Hit) bool { return a.Row == b.Row })
	return hits[:min(len(hits), s.k)]
}

// exact looks at every allowed row of a cluster that has told too few: those not
// among the hits are fetched and scored here. A graph walk under a filter may end
// early; a server that lacks rows is an error.
func (s *search) exact(ctx context.Context, shard shardState, hits []index.Hit) ([]index.Hit, error) {
	known := make(map[uint32]bool, len(hits))
	for _, h := range hits {
		known[h.Row] = true
	}
	var missing []index.Hit
	err := s.state.postings.Documents(s.allowed, func(ordinal uint32, rows []uint32) bool {
		for _, row := range rows {
			if shard.classes.all.Contains(ordinal) && !known[row] {
				missing = append(missing, index.Hit{Row: row, Ordinal: ordinal})
			}
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	for part := range slices.Chunk(missing, exactRows) {
		if err := s.score(ctx, shard.collection, part); err != nil {
			return nil, err
		}
		hits = s.best(append(hits, part...))
	}
	return hits, nil
}

// score fetches the rows' vectors.
func (s *search) score(ctx context.Context, c *collection, hits []index.Hit) error {
	rows := make([]uint32, len(hits))
	for i, h := range hits {
		rows[i] = h.Row
	}
	vectors, err := c.vectors(ctx, rows)
	if err != nil {
		return err
	}
	for i, row := range rows {
		vector, ok := vectors[row]
		if !ok {
			return fmt.Errorf("the Milvus server at %s lacks row %d of %s; repair it with 'sluice check --milvus': %w", c.address, row, c.name, index.ErrUnavailable)
		}
		hits[i].Score = ref.Dot(s.vector, vector)
	}
	return nil
}
