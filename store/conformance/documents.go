package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/chunk"
	"sluice/filter"
	"sluice/store"
)

// Each step commits the version as changed so far, and says what must come of it.
func testCommit(t *testing.T, f *fixture) {
	steps := []struct {
		name      string
		change    func(*store.Version)
		version   uint32
		unchanged bool
		newRows   bool
	}{
		{"create", func(*store.Version) {}, 1, false, true},
		{"the same", func(*store.Version) {}, 1, true, false},
		{"other identity", func(v *store.Version) { *v = version(v.Key, "another text", 3) }, 2, false, true},
		{"other chunker", func(v *store.Version) {
			v.Chunker, v.Chunks, v.Vectors, v.Codes = "markdown/2", v.Chunks[:1], v.Vectors[:3], v.Codes[:1]
		}, 2, false, true},
		{"other model", func(v *store.Version) { v.Model, v.Vectors = "m2", []float32{7, 8, 9} }, 2, false, true},
		{"other access", func(v *store.Version) { v.Access = readableBy("bob") }, 2, false, false},
		{"the same access", func(*store.Version) {}, 2, true, false},
		{"other identity and access", func(v *store.Version) { v.Identity[0]++; v.Access = readableBy("cy") }, 3, false, true},
	}
	c := f.collection("acme", "docs")
	v := version("a", "a text", 2)
	var last store.Record
	for i, step := range steps {
		step.change(&v)
		before := f.epoch()
		r := f.commit(c, v)
		require.Equal(t, i == 0, r.Created, step.name)
		require.Equal(t, step.unchanged, r.Unchanged, step.name)
		require.Equal(t, step.version, r.Version, step.name)
		require.EqualValues(t, len(v.Chunks), r.Rows, step.name)
		if i > 0 {
			require.Equal(t, last.Ordinal, r.Ordinal, step.name)
			require.Equal(t, step.newRows, r.FirstRow != last.FirstRow, step.name)
		}
		if step.newRows && i > 0 {
			require.GreaterOrEqual(t, r.FirstRow, last.FirstRow+last.Rows, step.name)
		}
		if step.unchanged {
			require.Equal(t, before, f.epoch(), step.name)
			equal(t, last, r.Record)
		} else {
			require.Equal(t, before+1, r.Epoch, step.name)
			require.Equal(t, before+1, f.epoch(), step.name)
			equal(t, []store.Change{{Epoch: r.Epoch, Kind: store.DocumentChanged, Collection: c, Ordinal: r.Ordinal}}, f.changes(before))
		}
		equal(t, contentOf(r.Record, v), f.content(c, r.Ordinal))
		last = r.Record
	}
}

// testVectorsNeeded commits without vectors: possible exactly where the content is there.
func testVectorsNeeded(t *testing.T, f *fixture) {
	c, whole := f.collection("acme", "docs"), version("a", "a text", 2)
	bare := func(change func(*store.Version)) store.Version {
		v := whole
		v.Vectors, v.Dimensions = nil, 0
		change(&v)
		return v
	}
	refused := func(v store.Version) {
		before := f.epoch()
		_, err := f.Commit(f.ctx, c, v)
		require.ErrorIs(t, err, store.ErrVectorsNeeded)
		require.Equal(t, before, f.epoch())
	}
	refused(bare(func(*store.Version) {}))
	first := f.commit(c, whole)
	require.True(t, f.commit(c, bare(func(*store.Version) {})).Unchanged)
	changed := f.commit(c, bare(func(v *store.Version) { v.Access = readableBy("bob") }))
	require.True(t, changed.AccessOnly)
	refused(bare(func(v *store.Version) { v.Identity[0]++ }))
	refused(bare(func(v *store.Version) { v.Chunker = "markdown/2" }))
	refused(bare(func(v *store.Version) { v.Model = "m2" }))
	equal(t, contentOf(changed.Record, whole), f.content(c, first.Ordinal))
}

func testContent(t *testing.T, f *fixture) {
	c := f.collection("acme", "docs")
	big := version("big", strings.Repeat("a large text, and compressible. ", 100_000), 2000)
	odd := version("odd", "å\x00\xff\n", 1)
	odd.Vectors = []float32{float32(math.Inf(1)), math.SmallestNonzeroFloat32, float32(math.Copysign(0, -1))}
	odd.Chunks[0].Headings = nil
	overlapping := version("overlapping", "0123456789", 2)
	overlapping.Chunks[0].End, overlapping.Chunks[1].Start = 8, 2
	plain := store.Version{Key: "plain", Text: "no chunks at all"}
	for _, v := range []store.Version{version("a", "a text", 2), big, odd, overlapping, plain, {Key: "nothing"}} {
		r := f.commit(c, v)
		require.Equal(t, []any{v.Key, v.Title, v.Format, v.Chunker, v.Model, v.Identity},
			[]any{r.Key, r.Title, r.Format, r.Chunker, r.Model, r.Identity})
		require.False(t, r.Updated.IsZero())
		equal(t, contentOf(r.Record, v), f.content(c, r.Ordinal))
		found, err := f.Lookup(f.ctx, c, v.Key)
		require.NoError(t, err)
		equal(t, r.Record, found)
		without, err := f.Content(f.ctx, c, r.Ordinal, false)
		require.NoError(t, err)
		equal(t, store.Content{Record: r.Record, Text: v.Text, Chunks: v.Chunks}, without)
	}
	_, err := f.Content(f.ctx, c, 1000, true)
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = f.Content(f.ctx, c+1, 0, true)
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = f.Lookup(f.ctx, c+1, "a")
	require.ErrorIs(t, err, store.ErrNotFound)
}

func testAccessForms(t *testing.T, f *fixture) {
	day := time.Date(9999, 12, 31, 23, 59, 59, 123_456_789, time.FixedZone("", 3600))
	given := filter.Access{
		Readers: filter.Readers{List: []filter.Reader{filter.Group("b"), filter.User("a"), filter.Group("b"), filter.Public}},
		Attributes: filter.Attributes{
			"empty": "", "text": "x\x00y", "yes": true, "no": false, "min": int64(math.MinInt64), "max": int64(math.MaxInt64),
			"set": []string{"q", "p", "q"}, "none": []string{},
		},
		Applicability: filter.Applicability{Regions: []string{"se", "de", "se"}, ValidFrom: time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC), ValidUntil: day},
	}
	want := filter.Access{
		Readers: filter.Readers{List: []filter.Reader{filter.Group("b"), filter.Public, filter.User("a")}},
		Attributes: filter.Attributes{
			"empty": "", "text": "x\x00y", "yes": true, "no": false, "min": int64(math.MinInt64), "max": int64(math.MaxInt64),
			"set": []string{"p", "q"}, "none": []string(nil),
		},
		Applicability: filter.Applicability{Regions: []string{"de", "se"}, ValidFrom: given.Applicability.ValidFrom,
			ValidUntil: time.Date(9999, 12, 31, 22, 59, 59, 123_456_000, time.UTC)},
	}
	c := f.collection("acme", "docs")
	v := version("a", "a text", 1)
	v.Access = given
	r := f.commit(c, v)
	equal(t, want, r.Access)
	equal(t, want, f.content(c, r.Ordinal).Access)
	require.True(t, f.commit(c, v).Unchanged, "an equal row in another form is no change")

	for _, a := range []filter.Access{{}, {Readers: filter.Readers{Undeclared: true}}} {
		v.Access = a
		require.False(t, f.commit(c, v).Unchanged)
		equal(t, a, f.content(c, r.Ordinal).Access)
	}
}

func testCommitRefused(t *testing.T, f *fixture) {
	c := f.collection("acme", "docs")
	cases := map[string]func(*store.Version){
		"a long key":          func(v *store.Version) { v.Key = strings.Repeat("k", store.MaxKeyBytes+1) },
		"too few vectors":     func(v *store.Version) { v.Vectors = v.Vectors[1:] },
		"too many vectors":    func(v *store.Version) { v.Vectors = append(v.Vectors, 0) },
		"too few codes":       func(v *store.Version) { v.Codes = v.Codes[1:] },
		"too many codes":      func(v *store.Version) { v.Codes = append(v.Codes, nil) },
		"negative dimensions": func(v *store.Version) { v.Dimensions = -3 },
		"a chunk too far":     func(v *store.Version) { v.Chunks[1].End = len(v.Text) + 1 },
		"a chunk backwards":   func(v *store.Version) { v.Chunks[0] = chunk.Chunk{Start: 2, End: 1} },
		"a chunk before":      func(v *store.Version) { v.Chunks[0].Start = -1 },
		"huge headings": func(v *store.Version) {
			v.Chunks[0].Headings = slices.Repeat([]string{strings.Repeat("x", store.MaxVersionBytes/1024)}, 1025)
		},
		"an int attribute": func(v *store.Version) { v.Access.Attributes = filter.Attributes{"n": 1} },
		"a null attribute": func(v *store.Version) { v.Access.Attributes = filter.Attributes{"n": nil} },
	}
	for name, change := range cases {
		v := version("a", "a text", 2)
		change(&v)
		_, err := f.Commit(f.ctx, c, v)
		require.ErrorIs(t, err, store.ErrInvalid, name)
	}
	_, err := f.Commit(f.ctx, c+1, version("a", "a text", 2))
	require.ErrorIs(t, err, store.ErrNotFound)
	require.EqualValues(t, 1, f.epoch(), "nothing was written")
	require.Empty(t, f.scan(c, 0))
}

// Token codes are a version's: they come, change and go with it.
func testCodes(t *testing.T, f *fixture) {
	c := f.collection("acme", "docs")
	first := version("a", "a text", 3)
	old := f.commit(c, first).Record
	require.True(t, old.Coded)
	equal(t, first.Codes, f.codes(old))

	second := version("a", "another text", 2)
	r := f.commit(c, second).Record
	require.Empty(t, f.codes(old), "codes of rows that are gone")
	equal(t, second.Codes, f.codes(r))
	some := map[int][]byte{}
	require.NoError(t, f.Codes(f.ctx, c, []uint32{old.FirstRow, r.FirstRow + 1, r.FirstRow + 99}, func(at int, its []byte) {
		some[at] = bytes.Clone(its)
	}))
	equal(t, map[int][]byte{1: second.Codes[1]}, some)
	never := func(int, []byte) { t.Error("there are none") }
	require.NoError(t, f.Codes(f.ctx, c+1, []uint32{r.FirstRow}, never))
	ended, cancel := context.WithCancel(f.ctx)
	cancel()
	require.ErrorIs(t, f.Codes(ended, c, []uint32{r.FirstRow}, never), context.Canceled)

	changed, err := f.SetAccess(f.ctx, c, "a", func(filter.Access) (filter.Access, error) { return readableBy("bob"), nil })
	require.NoError(t, err)
	r = changed.Record
	equal(t, second.Codes, f.codes(r))
	f.reopen()
	equal(t, second.Codes, f.codes(r))
	f.delete(c, "a")
	require.Empty(t, f.codes(r))

	bare := version("b", "b text", 2)
	bare.Codes = nil
	r = f.commit(c, bare).Record
	require.False(t, r.Coded)
	require.Empty(t, f.codes(r))
}

// Keys of any bytes never run into each other, in or across collections.
func testKeys(t *testing.T, f *fixture) {
	keys := []string{"", "a", "b", "a/b", "a\x00", "a\x00b", "\x00", "\xff", "\xff\xff", "å", "%2f", "..", strings.Repeat("k", store.MaxKeyBytes)}
	collections := []uint32{f.collection("t", "x"), f.collection("t", "y"), f.collection("u", "x")}
	want := map[string]store.Record{}
	id := func(c uint32, key string) string { return fmt.Sprint(c, " ", key) }
	for _, c := range collections {
		for _, key := range keys {
			r := f.commit(c, version(key, id(c, key), 1))
			require.True(t, r.Created, "%q", key)
			want[id(c, key)] = r.Record
		}
	}
	for _, c := range collections {
		require.Len(t, f.scan(c, 0), len(keys))
		for _, key := range keys {
			r, err := f.Lookup(f.ctx, c, key)
			require.NoError(t, err)
			equal(t, want[id(c, key)], r)
			require.Equal(t, id(c, key), f.content(c, r.Ordinal).Text)
		}
	}
}

func testDelete(t *testing.T, f *fixture) {
	c := f.collection("acme", "docs")
	a := f.commit(c, version("a", "a text", 2))
	b := f.commit(c, version("b", "b text", 2))
	r := f.delete(c, "a")
	removed := a.Record
	removed.Epoch = b.Epoch + 1
	equal(t, store.Receipt{Record: removed}, r)
	equal(t, []store.Change{{Epoch: r.Epoch, Kind: store.DocumentChanged, Collection: c, Ordinal: a.Ordinal}}, f.changes(b.Epoch))

	_, err := f.Lookup(f.ctx, c, "a")
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = f.Content(f.ctx, c, a.Ordinal, true)
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = f.Delete(f.ctx, c, "a")
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = f.Delete(f.ctx, c+1, "b")
	require.ErrorIs(t, err, store.ErrNotFound)
	equal(t, []store.Record{b.Record}, f.scan(c, 0))

	back := f.commit(c, version("a", "a text", 2))
	require.True(t, back.Created)
	require.EqualValues(t, 1, back.Version)
	require.Greater(t, back.Ordinal, b.Ordinal)
	require.GreaterOrEqual(t, back.FirstRow, b.FirstRow+b.Rows)
}

func testSetAccess(t *testing.T, f *fixture) {
	c := f.collection("acme", "docs")
	v := version("a", "a text", 2)
	r := f.commit(c, v)
	to := func(a filter.Access) func(filter.Access) (filter.Access, error) {
		return func(filter.Access) (filter.Access, error) { return a, nil }
	}
	got, err := f.SetAccess(f.ctx, c, "a", func(present filter.Access) (filter.Access, error) {
		equal(t, v.Access, present)
		return readableBy("bob"), nil
	})
	require.NoError(t, err)
	want := r.Record
	want.Access, want.Epoch, want.Updated = readableBy("bob"), r.Epoch+1, got.Updated
	equal(t, store.Receipt{Record: want, AccessOnly: true}, got)
	equal(t, contentOf(want, v), f.content(c, r.Ordinal))
	equal(t, []store.Change{{Epoch: want.Epoch, Kind: store.DocumentChanged, Collection: c, Ordinal: r.Ordinal}}, f.changes(r.Epoch))

	same, err := f.SetAccess(f.ctx, c, "a", to(readableBy("bob")))
	require.NoError(t, err)
	equal(t, store.Receipt{Record: want, Unchanged: true}, same)

	refusal := errors.New("refused")
	_, err = f.SetAccess(f.ctx, c, "a", func(a filter.Access) (filter.Access, error) { return filter.Access{}, refusal })
	require.ErrorIs(t, err, refusal)
	_, err = f.SetAccess(f.ctx, c, "a", to(filter.Access{Attributes: filter.Attributes{"n": 1.5}}))
	require.ErrorIs(t, err, store.ErrInvalid)
	_, err = f.SetAccess(f.ctx, c, "b", to(filter.Access{}))
	require.ErrorIs(t, err, store.ErrNotFound)
	require.Equal(t, want.Epoch, f.epoch())
}

// No change of access is lost to another one: the one that comes late is asked again.
func testSetAccessRace(t *testing.T, f *fixture) {
	c := f.collection("acme", "docs")
	f.commit(c, version("a", "a text", 1))
	count := func(between func()) {
		_, err := f.SetAccess(f.ctx, c, "a", func(a filter.Access) (filter.Access, error) {
			n, _ := a.Attributes["n"].(int64)
			a.Attributes = filter.Attributes{"n": n + 1}
			between()
			return a, nil
		})
		if err != nil {
			t.Errorf("setting access: %v", err)
		}
	}
	var once sync.Once
	count(func() { once.Do(func() { count(func() {}) }) })
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 10 {
				count(func() {})
			}
		})
	}
	group.Wait()
	r, err := f.Lookup(f.ctx, c, "a")
	require.NoError(t, err)
	require.EqualValues(t, 42, r.Access.Attributes["n"])
	require.EqualValues(t, 1, r.Version)
}

func testRecords(t *testing.T, f *fixture) {
	c, other := f.collection("acme", "docs"), f.collection("acme", "more")
	var ordinals []uint32
	want := map[uint32]store.Record{}
	for i := range 50 {
		r := f.commit(c, version(fmt.Sprint(i), fmt.Sprint(i), 1))
		f.commit(other, version(fmt.Sprint(i), fmt.Sprint(-i), 1))
		ordinals = append(ordinals, r.Ordinal)
		want[r.Ordinal] = r.Record
	}
	f.delete(c, "7")
	delete(want, ordinals[7])

	asked := append(slices.Clone(ordinals), ordinals[3], 1<<20, math.MaxUint32)
	slices.Reverse(asked)
	given := slices.Clone(asked)
	got, err := f.Records(f.ctx, c, asked)
	require.NoError(t, err)
	equal(t, want, got)
	equal(t, given, asked)

	got, err = f.Records(f.ctx, c, []uint32{ordinals[9], ordinals[7]})
	require.NoError(t, err)
	equal(t, map[uint32]store.Record{ordinals[9]: want[ordinals[9]]}, got)
	got, err = f.Records(f.ctx, c, nil)
	require.NoError(t, err)
	require.Empty(t, got)
	got, err = f.Records(f.ctx, 1000, ordinals)
	require.NoError(t, err)
	require.Empty(t, got)
}

func testScan(t *testing.T, f *fixture) {
	c, other := f.collection("acme", "docs"), f.collection("acme", "more")
	require.Empty(t, f.scan(c, 0))
	const n = 600
	var records [n]store.Record
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { records[i] = f.commit(c, version(fmt.Sprint(i), fmt.Sprint(i), 1)).Record })
	}
	f.commit(other, version("x", "x", 1))
	group.Wait()
	want := slices.SortedFunc(slices.Values(records[:]), func(a, b store.Record) int { return int(a.Ordinal) - int(b.Ordinal) })
	equal(t, want, f.scan(c, 0))
	equal(t, want[n/2:], f.scan(c, want[n/2].Ordinal))
	require.Empty(t, f.scan(c, want[n-1].Ordinal+1))
	require.Empty(t, f.scan(c, math.MaxUint32))
	require.Empty(t, f.scan(1000, 0))
	for r, err := range f.Scan(f.ctx, c, 0) {
		require.NoError(t, err)
		equal(t, want[0], r)
		break
	}
}

// The consumer of a scan may write meanwhile.
func testScanUnderWrites(t *testing.T, f *fixture) {
	c := f.collection("acme", "docs")
	var group sync.WaitGroup
	for i := range 300 {
		group.Go(func() { f.commit(c, version(fmt.Sprint(i), fmt.Sprint(i), 1)) })
	}
	group.Wait()
	seen := map[string]bool{}
	for r, err := range f.Scan(f.ctx, c, 0) {
		require.NoError(t, err)
		require.False(t, seen[r.Key])
		seen[r.Key] = true
		if len(seen)%30 == 1 {
			f.delete(c, r.Key)
		}
	}
	require.Len(t, seen, 300)
	require.Len(t, f.scan(c, 0), 290)
}

// Record, text, chunks and vectors are always of one version.
func testConsistentContents(t *testing.T, f *fixture) {
	c := f.collection("acme", "docs")
	versions := []store.Version{version("a", "one", 1), version("a", "twenty-two", 4)}
	ordinal := f.commit(c, versions[0]).Ordinal
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 1000 {
			f.commit(c, versions[(i+1)%2])
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		got := f.content(c, ordinal)
		equal(t, contentOf(got.Record, versions[(got.Version+1)%2]), got)
	}
}

// testNothingReused holds over deletes and reopening.
func testNothingReused(t *testing.T, f *fixture) {
	ordinals, rows, collections := map[uint32]bool{}, map[uint32]bool{}, map[uint32]bool{}
	for round := range 4 {
		c := f.collection("acme", "docs")
		collections[f.collection("acme", fmt.Sprint(round))] = true
		for i := range 3 {
			r := f.commit(c, version(fmt.Sprint(i), fmt.Sprint(round, i), 2))
			require.False(t, ordinals[r.Ordinal])
			ordinals[r.Ordinal] = true
			for row := r.FirstRow; row < r.FirstRow+r.Rows; row++ {
				require.False(t, rows[row])
				rows[row] = true
			}
		}
		for i := range 3 {
			f.delete(c, fmt.Sprint(i))
		}
		f.reopen()
	}
	require.Len(t, slices.Collect(maps.Keys(collections)), 4)
}
