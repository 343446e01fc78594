// Package conformance tests any implementation of index.Index against the
// contract and a naive oracle.
package conformance

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/filter"
	"sluice/index"
	"sluice/index/text"
)

// Open returns the index that lies at a place, a path that no other test
// uses: new the first time, as it was durably left when opened again.
// It has the default analyzer and the given dimensions.
type Open func(t *testing.T, place string, dims int) index.Index

const (
	dims      = 8
	ordinals  = 40
	tolerance = 1e-5 // of a float32 score
)

// Run runs the suite.
func Run(t *testing.T, open Open) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Open)
	}{
		{"Oracle", testOracle},
		{"ManyRows", testManyRows},
		{"FewAllowed", testFewAllowed},
		{"Reopen", testReopen},
		{"ForeignDocumentsChangeNothing", testForeign},
		{"OrderOfInsertionChangesNothing", testOrder},
		{"NoHits", testNoHits},
		{"Refused", testRefused},
		{"Snapshot", testSnapshot},
		{"Replay", testReplay},
		{"Cancelled", testCancelled},
		{"Closed", testClosed},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, open)
		})
	}
}

// testOracle applies random batches and compares random queries.
func testOracle(t *testing.T, open Open) {
	for seed := range uint64(6) {
		c, o := NewCorpus(seed, dims), newOracle(analyzer(t))
		ix := open(t, fmt.Sprintf("%s/%d", t.TempDir(), seed), dims)
		for epoch := uint64(1); epoch <= 40; epoch++ {
			b := c.Batch(epoch, ordinals)
			require.NoError(t, ix.Apply(t.Context(), b))
			o.apply(b)
			if c.IntN(5) == 0 {
				require.NoError(t, ix.Flush(t.Context()))
				require.Equal(t, epoch, ix.Applied())
			}
			compare(t, ix, o, c, fmt.Sprintf("seed %d, epoch %d", seed, epoch))
		}
		require.NoError(t, ix.Close())
	}
}

// testManyRows compares lexical queries over so many rows that an index has
// cause to skip most of them, with Sets from nearly nothing to everything.
func testManyRows(t *testing.T, open Open) {
	const seed, documents = 13, 2500
	c, o := NewCorpus(seed, dims), newOracle(analyzer(t))
	ix := open(t, t.TempDir()+"/index", dims)
	b := index.Batch{Epoch: 1}
	for ordinal := range uint32(documents) {
		b.Put = append(b.Put, c.RareDocument(ordinal))
	}
	for _, b := range []index.Batch{b, {Epoch: 2, Delete: []uint32{7, 8, 9, 2000}}} {
		require.NoError(t, ix.Apply(t.Context(), b))
		o.apply(b)
	}
	r := reader(t, ix)
	for i, share := range []int{1, 2, 7, 30, 500, 1, 2, 7, 30, 500, 1, 1} {
		if i == 5 {
			require.NoError(t, ix.Flush(t.Context()))
			r = reader(t, ix)
		}
		allowed, k := c.OneIn(share, documents), []int{1, 10, 100}[i%3]
		for range 2 {
			query := c.RareQuery(1 + c.IntN(9))
			hits, err := r.Lexical(t.Context(), allowed, query, k)
			require.NoError(t, err)
			requireTop(t, o.lexical(allowed, query), hits, k, fmt.Sprintf("seed %d, one in %d, k %d, %q", seed, share, k, query))
		}
	}
	require.NoError(t, ix.Close())
}

// testFewAllowed asks for all rows of a handful of documents among many: by
// themselves, with those of a class, and in both ways of being nearly nothing and
// nearly everything. There are peers that leave some of them out.
func testFewAllowed(t *testing.T, open Open) {
	const seed, documents, k, leastRecall = 17, 2000, 10, .95
	c, o := NewCorpus(seed, dims), newOracle(analyzer(t))
	ix := open(t, t.TempDir()+"/index", dims)
	asked, missed, b := 0, 0, index.Batch{Epoch: 1}
	for ordinal := range uint32(documents) {
		d := c.RareDocument(ordinal)
		d.Class = uint64(ordinal % 10)
		b.Put = append(b.Put, d)
	}
	require.NoError(t, ix.Apply(t.Context(), b))
	o.apply(b)
	require.NoError(t, ix.Flush(t.Context()))
	r := reader(t, ix)
	for round := range 8 {
		few, class := c.ordinals(4, documents), uint32(c.IntN(10))
		for name, admits := range map[string]func(uint32) bool{
			"few":        func(d uint32) bool { return slices.Contains(few, d) },
			"a class":    func(d uint32) bool { return d%10 == class },
			"both":       func(d uint32) bool { return d%10 == class || slices.Contains(few, d) },
			"but few":    func(d uint32) bool { return !slices.Contains(few, d) },
			"of a class": func(d uint32) bool { return d%10 == class && d%70 != class },
		} {
			allowed, vector := admitting(documents, admits), c.Vector()
			where, rows := fmt.Sprintf("seed %d, round %d, %s", seed, round, name), o.dense(allowed, vector)
			all, err := r.Dense(t.Context(), allowed, vector, len(rows))
			require.NoError(t, err)
			requireTop(t, rows, all, len(rows), where+", all")
			best, err := r.Dense(t.Context(), allowed, vector, k)
			require.NoError(t, err)
			requireHits(t, rows, best, k, where)
			asked, missed = asked+len(best), missed+notBest(rows, best)
		}
	}
	require.Less(t, float64(missed), (1-leastRecall)*float64(asked), "of the best that were asked for")
	require.NoError(t, ix.Close())
}

// testReopen loses what was not flushed and gets it again from the feed.
func testReopen(t *testing.T, open Open) {
	const seed = 7
	c, o, place := NewCorpus(seed, dims), newOracle(analyzer(t)), t.TempDir()+"/index"
	var feed []index.Batch
	for epoch := uint64(1); epoch <= 30; epoch++ {
		ix := open(t, place, dims)
		require.LessOrEqual(t, ix.Applied(), epoch-1)
		for _, b := range feed[ix.Applied():] {
			require.NoError(t, ix.Apply(t.Context(), b))
		}
		b := c.Batch(epoch, ordinals)
		feed = append(feed, b)
		o.apply(b)
		require.NoError(t, ix.Apply(t.Context(), b))
		if c.IntN(3) == 0 {
			require.NoError(t, ix.Flush(t.Context()))
			require.Equal(t, epoch, ix.Applied())
		}
		compare(t, ix, o, c, fmt.Sprintf("seed %d, epoch %d", seed, epoch))
		require.NoError(t, ix.Close())
	}
}

// answers are what a principal sees of two queries, bit for bit.
type answers struct{ dense, lexical []index.Hit }

func ask(t *testing.T, ix index.Index, allowed filter.Set, vector []float32, query string, k int) answers {
	t.Helper()
	r := reader(t, ix)
	dense, err := r.Dense(t.Context(), allowed, vector, k)
	require.NoError(t, err)
	lexical, err := r.Lexical(t.Context(), allowed, query, k)
	require.NoError(t, err)
	return answers{dense, lexical}
}

// testForeign adds, changes and deletes documents outside a Set, through
// fresh, sealed and merged states: not one bit of an answer inside it changes.
func testForeign(t *testing.T, open Open) {
	for seed := range uint64(4) {
		c := NewCorpus(seed+100, dims)
		ix := open(t, fmt.Sprintf("%s/%d", t.TempDir(), seed), dims)
		own := index.Batch{Epoch: 1}
		var mine []uint32
		for i := range uint32(15) {
			mine = append(mine, i*3)
			own.Put = append(own.Put, c.Document(i*3))
		}
		require.NoError(t, ix.Apply(t.Context(), own))
		allowed, vector, query := filter.SetOf(mine...), c.Vector(), c.Query(8)
		before := ask(t, ix, allowed, vector, query, 25)
		require.NotEmpty(t, before.lexical)
		for epoch := uint64(2); epoch <= 40; epoch++ {
			b := c.Batch(epoch, ordinals)
			b.Put = slices.DeleteFunc(b.Put, func(d index.Document) bool { return allowed.Contains(d.Ordinal) })
			b.Delete = slices.DeleteFunc(b.Delete, allowed.Contains)
			require.NoError(t, ix.Apply(t.Context(), b))
			if epoch%3 == 0 {
				require.NoError(t, ix.Flush(t.Context()))
			}
			require.Equal(t, before, ask(t, ix, allowed, vector, query, 25), "seed %d, epoch %d", seed, epoch)
		}
		require.NoError(t, ix.Close())
	}
}

// testOrder puts the same documents in different orders and batches.
func testOrder(t *testing.T, open Open) {
	c := NewCorpus(11, dims)
	var documents []index.Document
	for i := range uint32(ordinals) {
		documents = append(documents, c.Document(i))
	}
	allowed, vector, query := c.Set(ordinals).And(filter.SetOf(1, 2, 3)), c.Vector(), c.Query(6)
	for allowed.Len() == 0 {
		allowed = c.Set(ordinals)
	}
	var first answers
	for run := range 4 {
		ix := open(t, fmt.Sprintf("%s/%d", t.TempDir(), run), dims)
		epoch, flushEvery := uint64(0), 1+c.IntN(8)
		for chunk := range slices.Chunk(documents, 1+c.IntN(9)) {
			epoch++
			require.NoError(t, ix.Apply(t.Context(), index.Batch{Epoch: epoch, Put: chunk}))
			if int(epoch)%flushEvery == 0 {
				require.NoError(t, ix.Flush(t.Context()))
			}
		}
		got := ask(t, ix, allowed, vector, query, 50)
		if run == 0 {
			first = got
			require.NotEmpty(t, first.dense)
		}
		require.Equal(t, first, got, "run %d", run)
		require.NoError(t, ix.Close())
		c.Shuffle(len(documents), func(i, j int) { documents[i], documents[j] = documents[j], documents[i] })
	}
}

// testNoHits: nothing is found where nothing is asked for, allowed or there.
func testNoHits(t *testing.T, open Open) {
	c, ix := NewCorpus(3, dims), open(t, t.TempDir()+"/index", dims)
	all := filter.SetOf(1, 2, 3)
	none := answers{}
	empty := func(allowed filter.Set, query string, k int) {
		t.Helper()
		got := ask(t, ix, allowed, c.Vector(), query, k)
		require.Empty(t, got.dense)
		require.Empty(t, got.lexical)
	}
	empty(all, "alpha", 10)
	require.NoError(t, ix.Apply(t.Context(), index.Batch{Epoch: 1, Put: []index.Document{
		{Ordinal: 1, Rows: []index.Row{{Row: 5, Text: "alpha", Vector: c.Vector()}}},
		{Ordinal: 2},
	}}))
	require.NotEqual(t, none, ask(t, ix, all, c.Vector(), "alpha", 10))
	empty(filter.Set{}, "alpha", 10)
	empty(filter.SetOf(), "alpha", 10)
	empty(filter.SetOf(2, 3), "alpha", 10)
	empty(all, "alpha", 0)
	empty(all, "alpha", -1)
	for _, query := range []string{"", "the of", "unheard", "\xff\xfe", strings.Repeat("unheard ", 5000)} {
		require.Empty(t, ask(t, ix, all, c.Vector(), query, 10).lexical, "query %.20q", query)
	}
	require.NoError(t, ix.Apply(t.Context(), index.Batch{Epoch: 2, Put: []index.Document{{Ordinal: 1}}}))
	empty(all, "alpha", 10)
	require.NoError(t, ix.Close())
}

// testRefused: bad input is named, and nothing of its batch is applied.
func testRefused(t *testing.T, open Open) {
	c, ix := NewCorpus(5, dims), open(t, t.TempDir()+"/index", dims)
	one := func(vector []float32) []index.Document {
		return []index.Document{c.Document(0), {Ordinal: 1, Rows: []index.Row{{Row: c.nextRow, Text: "alpha", Vector: vector}}}}
	}
	with := func(x float64) []float32 {
		v := c.Vector()
		v[2] = float32(x)
		return v
	}
	good := c.Vector()
	require.NoError(t, ix.Apply(t.Context(), index.Batch{Epoch: 5, Put: one(good)[1:]}))
	before := ask(t, ix, filter.SetOf(0, 1, 2), good, "alpha", 10)
	for name, b := range map[string]index.Batch{
		"NaN":            {Epoch: 6, Put: one(with(math.NaN()))},
		"Inf":            {Epoch: 6, Put: one(with(math.Inf(-1)))},
		"overflow":       {Epoch: 6, Put: one(with(math.MaxFloat32))},
		"short":          {Epoch: 6, Put: one(good[1:])},
		"no vector":      {Epoch: 6, Put: one(nil)},
		"put twice":      {Epoch: 6, Put: append(one(good), one(good)...)},
		"put and delete": {Epoch: 6, Put: one(good), Delete: []uint32{1}},
		"rows descend": {Epoch: 6, Put: []index.Document{{Ordinal: 2, Rows: []index.Row{
			{Row: 9001, Vector: good}, {Row: 9000, Vector: good}}}}},
		"earlier epoch": {Epoch: 4, Put: one(good)},
	} {
		require.ErrorIs(t, ix.Apply(t.Context(), b), index.ErrInvalid, name)
		require.Equal(t, before, ask(t, ix, filter.SetOf(0, 1, 2), good, "alpha", 10), name)
	}
	r := reader(t, ix)
	for _, vector := range [][]float32{nil, good[1:], append(c.Vector(), 0), with(math.NaN()), with(math.Inf(1))} {
		_, err := r.Dense(t.Context(), filter.SetOf(1), vector, 3)
		require.ErrorIs(t, err, index.ErrInvalid)
	}
	_, err := r.Lexical(t.Context(), filter.SetOf(1), strings.Repeat("x", index.MaxQueryBytes+1), 3)
	require.ErrorIs(t, err, index.ErrInvalid)
	require.NoError(t, ix.Close())
}

// testSnapshot: a Reader sees the state it was taken at, even after Close.
func testSnapshot(t *testing.T, open Open) {
	c, ix := NewCorpus(6, dims), open(t, t.TempDir()+"/index", dims)
	o := newOracle(analyzer(t))
	first := c.Batch(1, ordinals)
	require.NoError(t, ix.Apply(t.Context(), first))
	o.apply(first)
	r := reader(t, ix)
	for epoch := uint64(2); epoch < 30; epoch++ {
		require.NoError(t, ix.Apply(t.Context(), c.Batch(epoch, ordinals)))
		if epoch%4 == 0 {
			require.NoError(t, ix.Flush(t.Context()))
		}
		compareReader(t, r, o, c, fmt.Sprintf("epoch %d", epoch))
	}
	require.NoError(t, ix.Close())
	compareReader(t, r, o, c, "after close")
}

// testReplay: applying batches a second time changes nothing.
func testReplay(t *testing.T, open Open) {
	c, o := NewCorpus(8, dims), newOracle(analyzer(t))
	ix := open(t, t.TempDir()+"/index", dims)
	for epoch := uint64(1); epoch <= 20; epoch++ {
		b := c.Batch(epoch, ordinals)
		o.apply(b)
		require.NoError(t, ix.Apply(t.Context(), b))
		if epoch%6 == 0 {
			require.NoError(t, ix.Flush(t.Context()))
		}
		require.NoError(t, ix.Apply(t.Context(), b))
		compare(t, ix, o, c, fmt.Sprintf("epoch %d", epoch))
	}
	require.NoError(t, ix.Close())
}

func testCancelled(t *testing.T, open Open) {
	c, ix := NewCorpus(9, dims), open(t, t.TempDir()+"/index", dims)
	require.NoError(t, ix.Apply(t.Context(), c.Batch(1, ordinals)))
	r := reader(t, ix)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, ix.Apply(ctx, c.Batch(2, ordinals)), context.Canceled)
	_, err := r.Dense(ctx, filter.SetOf(1, 2, 3), c.Vector(), 5)
	require.ErrorIs(t, err, context.Canceled)
	_, err = r.Lexical(ctx, filter.SetOf(1, 2, 3), c.Words(5), 5)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, ix.Close())
}

func testClosed(t *testing.T, open Open) {
	c, ix := NewCorpus(10, dims), open(t, t.TempDir()+"/index", dims)
	r, err := ix.Reader()
	require.NoError(t, err)
	r.Close()
	r.Close()
	_, err = r.Dense(t.Context(), filter.SetOf(1), c.Vector(), 5)
	require.ErrorIs(t, err, index.ErrClosed)
	require.NoError(t, ix.Close())
	require.NoError(t, ix.Close())
	require.ErrorIs(t, ix.Apply(t.Context(), c.Batch(1, ordinals)), index.ErrClosed)
	require.ErrorIs(t, ix.Flush(t.Context()), index.ErrClosed)
	_, err = ix.Reader()
	require.ErrorIs(t, err, index.ErrClosed)
}

func analyzer(t *testing.T) text.Analyzer {
	t.Helper()
	a, err := text.New(text.Default)
	require.NoError(t, err)
	return a
}

func reader(t *testing.T, ix index.Index) index.Reader {
	t.Helper()
	r, err := ix.Reader()
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

// compare asks the present state a few random queries.
func compare(t *testing.T, ix index.Index, o *oracle, c *Corpus, where string) {
	t.Helper()
	r, err := ix.Reader()
	require.NoError(t, err)
	defer r.Close()
	for range 3 {
		compareReader(t, r, o, c, where)
	}
	compareHolds(t, ix, o, where)
}

// compareHolds asks for every row that is there, and for those next to it.
func compareHolds(t *testing.T, ix index.Index, o *oracle, where string) {
	t.Helper()
	for ordinal := range uint32(ordinals) {
		rows := map[uint32]bool{}
		for _, r := range o.documents[ordinal].Rows {
			rows[r.Row] = true
		}
		for row := range rows {
			for _, asked := range []uint32{row, row + 1, row - 1} {
				require.Equal(t, rows[asked], ix.Holds(ordinal, asked), "%s: document %d, row %d", where, ordinal, asked)
			}
			require.False(t, ix.Holds(ordinal+ordinals, row), "%s: row %d of another document", where, row)
		}
	}
}

func compareReader(t *testing.T, r index.Reader, o *oracle, c *Corpus, where string) {
	t.Helper()
	allowed, vector, query := c.Set(ordinals), c.Vector(), c.Query(1+c.IntN(8))
	k := []int{1, 3, 10, 1000}[c.IntN(4)]
	where = fmt.Sprintf("%s, %d allowed, k %d", where, allowed.Len(), k)
	hits, err := r.Dense(t.Context(), allowed, vector, k)
	require.NoError(t, err, where)
	requireTop(t, o.dense(allowed, vector), hits, k, where+", dense")
	hits, err = r.Lexical(t.Context(), allowed, query, k)
	require.NoError(t, err, where)
	requireTop(t, o.lexical(allowed, query), hits, k, fmt.Sprintf("%s, lexical %q", where, query))
}

// requireTop accepts hits as the k best of rows: as many as there are, each
// with its score, in order, and no better row left out.
func requireTop(t *testing.T, rows map[uint32]scored, hits []index.Hit, k int, where string) {
	t.Helper()
	requireHits(t, rows, hits, k, where)
	require.Empty(t, better(rows, hits), "%s: rows are missing", where)
}

// requireHits accepts hits as some k of rows: as many as there are, each with
// its score, in order.
func requireHits(t *testing.T, rows map[uint32]scored, hits []index.Hit, k int, where string) {
	t.Helper()
	require.Len(t, hits, min(k, len(rows)), where)
	found := map[uint32]bool{}
	for i, h := range hits {
		exact, ok := rows[h.Row]
		require.True(t, ok && !found[h.Row] && exact.ordinal == h.Ordinal, "%s: hit %+v", where, h)
		require.InDelta(t, exact.score, float64(h.Score), tolerance, "%s: hit %+v", where, h)
		found[h.Row] = true
		if i > 0 {
			last := hits[i-1]
			inOrder := last.Score > h.Score || last.Score == h.Score && last.Row < h.Row
			require.True(t, inOrder, "%s: %+v before %+v", where, last, h)
		}
	}
}

// notBest counts the hits that are not among as many best rows.
func notBest(rows map[uint32]scored, hits []index.Hit) (n int) {
	best := slices.SortedFunc(maps.Values(rows), func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	for _, h := range hits {
		if float64(h.Score)+tolerance < best[len(hits)-1].score {
			n++
		}
	}
	return n
}

// better is the rows, not among the hits, that score more than the last of them.
func better(rows map[uint32]scored, hits []index.Hit) (missing []uint32) {
	for row, exact := range rows {
		if !slices.ContainsFunc(hits, func(h index.Hit) bool { return h.Row == row }) && exact.score > float64(hits[len(hits)-1].Score)+tolerance {
			missing = append(missing, row)
		}
	}
	return missing
}
