package pebble

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"sluice/store"
)

// variedStore makes a store with something under every tag, and a trimmed feed.
func variedStore(t *testing.T) *Store {
	s, err := Open("data", Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	ctx := t.Context()
	for _, name := range []string{"a", "b"} {
		c, _, err := s.CreateCollection(ctx, "tenant", name, store.Settings{Analyzer: "english"})
		require.NoError(t, err)
		for i := range 3 {
			_, err := s.Commit(ctx, c.ID, testVersion(fmt.Sprint(i), fmt.Sprint(name, i, " text"), 2))
			require.NoError(t, err)
		}
	}
	_, err = s.Delete(ctx, 1, "1")
	require.NoError(t, err)
	_, _, err = s.SetPolicies(ctx, store.PolicySource{Schema: "s", Policies: map[string]string{"p": "permit"}})
	require.NoError(t, err)
	require.NoError(t, s.Trim(ctx, 2))
	return s
}

func faults(t *testing.T, s *Store) (all []string) {
	require.NoError(t, s.Check(t.Context(), func(f store.Fault) { all = append(all, f.Where+": "+f.What) }))
	return all
}

type entry struct{ key, value []byte }

func entries(t *testing.T, s *Store) (all []entry) {
	it, err := s.db.NewIter(nil)
	require.NoError(t, err)
	for it.First(); it.Valid(); it.Next() {
		all = append(all, entry{bytes.Clone(it.Key()), bytes.Clone(it.Value())})
	}
	require.NoError(t, it.Close())
	return all
}

// damage changes a store with f, wants Check to report something, and undoes f.
func damage(t *testing.T, s *Store, what string, f func(*pebble.Batch)) []string {
	t.Helper()
	before := entries(t, s)
	b := s.db.NewBatch()
	f(b)
	require.NoError(t, b.Commit(pebble.Sync))
	found := faults(t, s)
	require.NotEmpty(t, found, "%s is not noticed", what)
	undo := s.db.NewBatch()
	require.NoError(t, undo.DeleteRange([]byte{0}, []byte{0xff}, nil))
	for _, e := range before {
		require.NoError(t, undo.Set(e.key, e.value, nil))
	}
	require.NoError(t, undo.Commit(pebble.Sync))
	return found
}

// Whatever single thing happens to any key or value, Check notices it.
func TestCheckNoticesEverything(t *testing.T) {
	s := variedStore(t)
	require.Empty(t, faults(t, s))
	rng := rand.New(rand.NewPCG(1, 2))
	all := entries(t, s)
	tags := map[byte]bool{}
	for i, e := range all {
		tags[e.key[0]] = true
		if e.key[0] != tagPolicies { // none is a state that policies may have
			damage(t, s, fmt.Sprintf("%q deleted", e.key), func(b *pebble.Batch) { require.NoError(t, b.Delete(e.key, nil)) })
		}
		flipped := bytes.Clone(e.value)
		flipped[rng.IntN(len(flipped))] ^= 1 << rng.IntN(8)
		damage(t, s, fmt.Sprintf("%q flipped", e.key), func(b *pebble.Batch) { require.NoError(t, b.Set(e.key, flipped, nil)) })
		damage(t, s, fmt.Sprintf("%q cut", e.key), func(b *pebble.Batch) {
			require.NoError(t, b.Set(e.key, e.value[:rng.IntN(len(e.value))], nil))
		})
		other := all[(i+1)%len(all)]
		damage(t, s, fmt.Sprintf("%q with the value of %q", e.key, other.key), func(b *pebble.Batch) {
			require.NoError(t, b.Set(e.key, other.value, nil))
		})
		damage(t, s, fmt.Sprintf("%q doubled", e.key), func(b *pebble.Batch) {
			require.NoError(t, b.Set(append(bytes.Clone(e.key), 7), e.value, nil))
		})
	}
	require.Len(t, tags, 11, "every tag is tried")
	require.Empty(t, faults(t, s))
	require.NoError(t, s.Close())
}

// Well-formed values that do not fit together: Check says where and what.
func TestCheckReports(t *testing.T) {
	s := variedStore(t)
	record := func(ordinal uint32, change func(*store.Record)) func(*pebble.Batch) {
		return func(b *pebble.Batch) {
			r, err := readRecord(s.db, 2, ordinal)
			require.NoError(t, err)
			change(&r)
			key := ordinalKey(tagRecord, 2, ordinal)
			require.NoError(t, b.Set(key, seal(key, encodeRecord(r)), nil))
		}
	}
	set := func(key, body []byte) func(*pebble.Batch) {
		return func(b *pebble.Batch) { require.NoError(t, b.Set(key, seal(key, body), nil)) }
	}
	change := func(c store.Change) func(*pebble.Batch) { return set(feedKey(c.Epoch), encodeChange(c)) }
	cases := []struct {
		name   string
		damage func(*pebble.Batch)
		want   string
	}{
		{"version", record(1, func(r *store.Record) { r.Version = 0 }), "collection 2 document 1 record: version 0"},
		{"epoch", record(1, func(r *store.Record) { r.Epoch = 1000 }), "document 1 record: version 1, epoch 1000"},
		{"old epoch", record(1, func(r *store.Record) { r.Epoch-- }), "is another one"},
		{"identity", record(1, func(r *store.Record) { r.Identity[3]++ }), "the text is of another version"},
		{"rows", record(1, func(r *store.Record) { r.Rows++ }), "2 chunks for 3 rows"},
		{"rows end", record(2, func(r *store.Record) { r.Rows++ }), "its rows end at 7, the next free row is 6"},
		{"shared rows", record(1, func(r *store.Record) { r.FirstRow-- }), "it shares rows with document 0"},
		{"key", record(1, func(r *store.Record) { r.Key = "2" }), `its key "2" leads to document 2`},
		{"lost key", record(1, func(r *store.Record) { r.Key = "9" }), `its key "9": not found`},
		{"ordinal", set(countersKey(2), counters{ordinal: 2, row: 6}.encode()), "document 2 record: the next free ordinal is 2"},
		{"stray counters", set(countersKey(9), counters{}.encode()), "counters of no collection"},
		{"stray key", set(documentKey(2, "9"), encodeNumber(9)), `collection 2 key "9": leads to document 9: not found`},
		{"stray content", set(ordinalKey(tagContent, 2, 9), nil), "collection 2 document 9 content: there is no record"},
		{"stray vectors", set(ordinalKey(tagVectors, 9, 0), nil), "collection 9 document 0 vectors: there is no record"},
		{"stray codes", set(ordinalKey(tagCodes, 2, 6), nil), "collection 2 row 6 token codes: no record has this row"},
		{"codes before all", set(ordinalKey(tagCodes, 1, 2), nil), "collection 1 row 2 token codes: no record has this row"},
		{"codes of none", record(1, func(r *store.Record) { r.Coded = false }), "collection 2 row 2 token codes: no record has this row"},
		{"lost codes", func(b *pebble.Batch) { require.NoError(t, b.Delete(ordinalKey(tagCodes, 2, 3), nil)) }, "document 1 record: token codes of row 3: not found"},
		{"stray name", set(nameKey("tenant", "c"), encodeNumber(2)), "leads to collection 2, which has another name"},
		{"collections", set(metaKey(), meta{epoch: 10, trimmed: 2, lastCollection: 1}.encode()), "beyond the last one given, 1"},
		{"feed beyond", set(metaKey(), meta{epoch: 9, trimmed: 2, lastCollection: 2}.encode()), "feed: it ends at epoch 10, the store is at 9"},
		{"feed before", set(metaKey(), meta{epoch: 10, trimmed: 3, lastCollection: 2}.encode()), "epoch 4 was expected"},
		{"trimmed", set(metaKey(), meta{epoch: 10, trimmed: 11, lastCollection: 2}.encode()), "the feed is trimmed up to epoch 11"},
		{"kind", change(store.Change{Epoch: 10, Kind: 9}), "change in epoch 10: there is no kind of change 9"},
		{"change of nothing", change(store.Change{Epoch: 9, Kind: store.DocumentChanged, Collection: 1, Ordinal: 7}), "document 7 of collection 1 was never created"},
		{"creation of nothing", change(store.Change{Epoch: 10, Kind: store.CollectionCreated, Collection: 7}), "collection 7 does not exist"},
		{"unknown", set([]byte("Zoo"), nil), `key "Zoo": the format has no such key`},
	}
	for _, c := range cases {
		found := damage(t, s, c.name, c.damage)
		fits := func(fault string) bool { return strings.Contains(fault, c.want) }
		require.True(t, slices.ContainsFunc(found, fits), "%s: want %q, got %q", c.name, c.want, found)
	}
	require.NoError(t, s.Close())
}

// A damaged value is an error of the calls that need it, and of no other.
func TestDamageIsAnError(t *testing.T) {
	s := variedStore(t)
	key := ordinalKey(tagVectors, 2, 1)
	require.NoError(t, s.db.Set(key, seal(key, []byte("no vectors")), pebble.Sync))
	_, err := s.Content(t.Context(), 2, 1, true)
	require.ErrorIs(t, err, store.ErrCorrupt)
	_, err = s.Content(t.Context(), 2, 1, false)
	require.NoError(t, err)
	require.NoError(t, s.db.Delete(ordinalKey(tagContent, 2, 1), pebble.Sync))
	_, err = s.Content(t.Context(), 2, 1, false)
	require.ErrorIs(t, err, store.ErrCorrupt)
	require.NoError(t, s.db.Delete(ordinalKey(tagRecord, 2, 1), pebble.Sync))
	_, err = s.Lookup(t.Context(), 2, "1")
	require.ErrorIs(t, err, store.ErrCorrupt)
	require.NotErrorIs(t, err, store.ErrNotFound)
	require.NotNil(t, readVersion(t, s, 2, "0"))
	require.NoError(t, s.Close())
}

// A bit that flips in a table on disk is found by Check, which does not stop the program.
func TestCheckFindsDamagedTables(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	_, err = fillDisk(t.Context(), s, 400)
	require.NoError(t, err)
	require.NoError(t, s.db.Flush())
	require.NoError(t, s.Close())
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	require.NotEmpty(t, tables)
	content, err := os.ReadFile(tables[0])
	require.NoError(t, err)
	content[len(content)/2] ^= 1
	require.NoError(t, os.WriteFile(tables[0], content, 0o600))

	s, err = Open(dir, Options{ReadOnly: true})
	require.NoError(t, err)
	require.Contains(t, strings.Join(faults(t, s), "\n"), "checksum mismatch")
	require.NoError(t, s.Close())
}

// The last numbers there are can be used, and none after them.
func TestNumbersEnd(t *testing.T) {
	s := variedStore(t)
	const last = 1<<32 - 1
	b := s.db.NewBatch()
	key := countersKey(1)
	require.NoError(t, b.Set(key, seal(key, counters{ordinal: last - 1, row: last - 2}.encode()), nil))
	require.NoError(t, b.Commit(pebble.Sync))
	clear(s.state.counters)
	_, err := s.Commit(t.Context(), 1, testVersion("three", "three", 3))
	require.ErrorIs(t, err, store.ErrTooManyRows)
	r, err := s.Commit(t.Context(), 1, testVersion("two", "two", 2))
	require.NoError(t, err)
	require.EqualValues(t, last-2, r.FirstRow)
	require.EqualValues(t, last-1, r.Ordinal)
	_, err = s.Commit(t.Context(), 1, testVersion("none", "none", 0))
	require.ErrorIs(t, err, store.ErrTooManyRows)
	_, err = s.Commit(t.Context(), 1, testVersion("two", "more", 1))
	require.ErrorIs(t, err, store.ErrTooManyRows)
	requireSound(t, s)
	n := 0
	for r, err := range s.Scan(t.Context(), 1, last-5) {
		require.NoError(t, err)
		require.EqualValues(t, binary.BigEndian.Uint32(ordinalKey(tagRecord, 1, r.Ordinal)[5:]), r.Ordinal)
		n++
	}
	require.Equal(t, 1, n)
	require.NoError(t, s.Close())
}
