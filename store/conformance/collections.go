package conformance

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/store"
)

func testCollections(t *testing.T, f *fixture) {
	english, swedish := store.Settings{Analyzer: "english"}, store.Settings{Analyzer: "swedish"}
	none, err := f.Collections(f.ctx)
	require.NoError(t, err)
	require.Empty(t, none)

	a, created, err := f.CreateCollection(f.ctx, "acme", "handbook", english)
	require.NoError(t, err)
	require.True(t, created)
	require.NotZero(t, a.ID)
	require.False(t, a.Created.IsZero())
	equal(t, store.Collection{ID: a.ID, Tenant: "acme", Name: "handbook", Settings: english, Created: a.Created}, a)

	again, created, err := f.CreateCollection(f.ctx, "acme", "handbook", english)
	require.NoError(t, err)
	require.False(t, created)
	equal(t, a, again)

	_, _, err = f.CreateCollection(f.ctx, "acme", "handbook", swedish)
	require.ErrorIs(t, err, store.ErrSettingsDiffer)

	b, created, err := f.CreateCollection(f.ctx, "other", "handbook", swedish)
	require.NoError(t, err)
	require.True(t, created)
	require.NotEqual(t, a.ID, b.ID)

	found, err := f.Collection(f.ctx, "other", "handbook")
	require.NoError(t, err)
	equal(t, b, found)
	_, err = f.Collection(f.ctx, "nobody", "handbook")
	require.ErrorIs(t, err, store.ErrNotFound)

	all, err := f.Collections(f.ctx)
	require.NoError(t, err)
	equal(t, []store.Collection{a, b}, all)
	equal(t, []store.Change{
		{Epoch: 1, Kind: store.CollectionCreated, Collection: a.ID},
		{Epoch: 2, Kind: store.CollectionCreated, Collection: b.ID},
	}, f.changes(0))
}

// Settings come back as they were given, those of vectors that documents bring
// among them; what cannot be is refused, and nothing is created.
func testSettings(t *testing.T, f *fixture) {
	possible := map[string]store.Settings{
		"none": {}, "one bit": {Analyzer: "english", CodeBits: 1}, "eight": {CodeBits: 8},
		"dense": {Own: store.Own{Dense: store.MaxDenseDimensions}}, "multi": {CodeBits: 8, Own: store.Own{Multi: store.MaxMultiDimensions}},
		"both": {Analyzer: "cjk", CodeBits: 1, Own: store.Own{Dense: 1, Multi: 1}}, "chunker": {CodeBits: 1, Chunker: "structure/1"},
	}
	for name, settings := range possible {
		_, _, err := f.CreateCollection(f.ctx, "acme", name, settings)
		require.NoError(t, err, name)
	}
	f.reopen()
	for name, settings := range possible {
		c, err := f.Collection(f.ctx, "acme", name)
		require.NoError(t, err)
		require.Equal(t, settings, c.Settings, name)
		settings.Own.Dense ^= 2
		_, _, err = f.CreateCollection(f.ctx, "acme", name, settings)
		require.Error(t, err, name)
	}
	before := f.epoch()
	for what, settings := range map[string]store.Settings{
		"two bits": {CodeBits: 2}, "negative bits": {CodeBits: -1},
		"too many dimensions": {Own: store.Own{Dense: store.MaxDenseDimensions + 1}}, "negative dimensions": {Own: store.Own{Dense: -1}},
		"too many of tokens":      {CodeBits: 1, Own: store.Own{Multi: store.MaxMultiDimensions + 1}},
		"negative of tokens":      {CodeBits: 1, Own: store.Own{Multi: -1}},
		"chunker of own vectors":  {Chunker: "structure/1", Own: store.Own{Dense: 4}},
		"tokens without codes":    {Own: store.Own{Dense: 4, Multi: 4}},
		"codes without any token": {CodeBits: 8, Own: store.Own{Dense: 4}},
	} {
		_, _, err := f.CreateCollection(f.ctx, "acme", "refused", settings)
		require.ErrorIs(t, err, store.ErrInvalid, what)
	}
	require.Equal(t, before, f.epoch())
}

// Tenant and name must never run into each other.
func testCollectionNames(t *testing.T, f *fixture) {
	pairs := [][2]string{
		{"a", "bc"}, {"ab", "c"}, {"abc", ""}, {"", "abc"}, {"", ""},
		{"a\x00", "b"}, {"a", "\x00b"}, {"a/b", "c"}, {"a", "b/c"},
		{"\xff\xff", "\xff"}, {"\xff", "\xff\xff"}, {"ö", "ö"}, {"\x00\x00\x00\x01", "a"},
		{strings.Repeat("t", store.MaxKeyBytes), strings.Repeat("n", store.MaxKeyBytes)},
	}
	ids := map[uint32]bool{}
	for _, p := range pairs {
		id := f.collection(p[0], p[1])
		require.False(t, ids[id], "%q shares collection %d", p, id)
		ids[id] = true
		c, err := f.Collection(f.ctx, p[0], p[1])
		require.NoError(t, err)
		require.Equal(t, p, [2]string{c.Tenant, c.Name})
	}
	for _, p := range [][2]string{{strings.Repeat("t", store.MaxKeyBytes+1), "n"}, {"t", strings.Repeat("n", store.MaxKeyBytes+1)}} {
		_, _, err := f.CreateCollection(f.ctx, p[0], p[1], store.Settings{})
		require.ErrorIs(t, err, store.ErrInvalid)
	}
}

func testCollectionRace(t *testing.T, f *fixture) {
	var creations [16]bool
	var group sync.WaitGroup
	for i := range creations {
		group.Go(func() {
			_, created, err := f.CreateCollection(f.ctx, "acme", "one", store.Settings{})
			if err != nil {
				t.Errorf("creating: %v", err)
			}
			creations[i] = created
		})
	}
	group.Wait()
	n := 0
	for _, created := range creations {
		if created {
			n++
		}
	}
	require.Equal(t, 1, n, "created once")
	require.EqualValues(t, 1, f.epoch())
}
