package conformance

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/filter"
	"sluice/store"
)

// buildOf makes a build of a text for a generation: n chunks with vectors of
// 2 dimensions that follow from it.
func buildOf(g store.Generation, text string, n int) store.Build {
	v := version("", text, n)
	b := store.Build{Generation: g.ID, Chunker: g.Chunker, Model: g.Model, Chunks: v.Chunks, Dimensions: 2, Codes: v.Codes}
	for i := range 2 * n {
		b.Vectors = append(b.Vectors, float32(i)+float32(len(text)))
	}
	return b
}

// versionFor makes a version for all live generations of a collection.
func (f *fixture) versionFor(c store.Collection, key, text string, n int) store.Version {
	v := version(key, text, n)
	live := c.Live()
	v.Generation, v.Parsed = live[0].ID, []byte("parsed "+text)
	if live[0].Chunker != "" {
		v.Chunker, v.Model = live[0].Chunker, live[0].Model
	}
	for _, g := range live[1:] {
		b := buildOf(g, text, n+1)
		if g.Chunker == "" {
			b.Chunker, b.Model = "markdown/1", "m1"
		}
		v.Builds = append(v.Builds, b)
	}
	return v
}

// begin adds a building generation.
func (f *fixture) begin(collection uint32, chunker string) store.Collection {
	f.t.Helper()
	c, err := f.SetGenerations(f.ctx, collection, func(live []store.Generation) ([]store.Generation, error) {
		return append(live, store.Generation{Role: store.Building, Chunker: chunker, Model: "m2"}), nil
	})
	require.NoError(f.t, err)
	return c
}

// reshape gives each generation the role that role returns; 0 drops it.
func (f *fixture) reshape(collection uint32, role func(store.Role) store.Role) store.Collection {
	f.t.Helper()
	c, err := f.SetGenerations(f.ctx, collection, func(live []store.Generation) (next []store.Generation, err error) {
		for _, g := range live {
			if g.Role = role(g.Role); g.Role != 0 {
				next = append(next, g)
			}
		}
		return next, nil
	})
	require.NoError(f.t, err)
	return c
}

func switched(r store.Role) store.Role {
	return map[store.Role]store.Role{store.Serving: store.Previous, store.Building: store.Serving}[r]
}

func rolledBack(r store.Role) store.Role {
	return map[store.Role]store.Role{store.Serving: store.Previous, store.Previous: store.Serving}[r]
}

func servingOnly(r store.Role) store.Role {
	return map[store.Role]store.Role{store.Serving: store.Serving}[r]
}

func (f *fixture) named(tenant, name string) store.Collection {
	f.t.Helper()
	c, err := f.Collection(f.ctx, tenant, name)
	require.NoError(f.t, err)
	return c
}

// A generation is built, served, rolled back and dropped; documents keep their
// ordinals, versions and access in all of them.
func testGenerations(t *testing.T, f *fixture) {
	id := f.collection("acme", "handbook")
	f.collection("acme", "other")
	one := f.commit(id, f.versionFor(f.named("acme", "handbook"), "one", "text one", 2))
	f.commit(id, version("two", "text two", 3))
	parsed, err := f.Parsed(f.ctx, id, one.Ordinal)
	require.NoError(t, err)
	require.Equal(t, "parsed text one", string(parsed))

	before := f.epoch()
	c := f.begin(id, "new/1")
	equal(t, []store.Change{{Epoch: before + 1, Kind: store.GenerationsChanged, Collection: id}}, f.changes(before))
	building, ok := c.Generation(store.Building)
	require.True(t, ok)
	require.Equal(t, id, c.Serving().ID)
	require.Empty(t, f.scan(building.ID, 0))
	equal(t, c, f.named("acme", "handbook"))

	built, err := f.Build(f.ctx, id, one.Record, buildOf(building, "text one", 4))
	require.NoError(t, err)
	require.True(t, built)
	copied, err := f.Lookup(f.ctx, building.ID, "one")
	require.NoError(t, err)
	require.Equal(t, [3]uint32{one.Ordinal, one.Version, 4}, [3]uint32{copied.Ordinal, copied.Version, copied.Rows})
	require.Equal(t, building.ID, copied.Collection)
	require.Equal(t, "new/1", copied.Chunker)
	equal(t, one.Access, copied.Access)
	require.Len(t, f.codes(copied), 4)
	parsed, err = f.Parsed(f.ctx, building.ID, one.Ordinal)
	require.NoError(t, err)
	require.Equal(t, "parsed text one", string(parsed))
	require.Equal(t, []float32{8, 9, 10, 11, 12, 13, 14, 15}, f.content(building.ID, one.Ordinal).Vectors)

	// New content needs the builds of all; access and deletion reach all.
	_, err = f.Commit(f.ctx, id, version("three", "text three", 1))
	require.ErrorIs(t, err, store.ErrGenerations)
	three := f.commit(id, f.versionFor(c, "three", "text three", 1))
	require.Len(t, f.scan(building.ID, 0), 2)
	_, err = f.SetAccess(f.ctx, id, "one", func(filter.Access) (filter.Access, error) { return readableBy("bob"), nil })
	require.NoError(t, err)
	copied, err = f.Lookup(f.ctx, building.ID, "one")
	require.NoError(t, err)
	require.Equal(t, readableBy("bob").Readers, copied.Access.Readers)
	f.delete(id, "three")
	_, err = f.Lookup(f.ctx, building.ID, "three")
	require.ErrorIs(t, err, store.ErrNotFound)
	require.NotZero(t, three.Ordinal)

	two, err := f.Lookup(f.ctx, id, "two")
	require.NoError(t, err)
	_, err = f.Build(f.ctx, id, two, buildOf(building, "text two", 1))
	require.NoError(t, err)
	f.reopen()
	f.verify()

	c = f.reshape(id, switched)
	require.Equal(t, building.ID, c.Serving().ID)
	_, err = f.Commit(f.ctx, id, version("four", "text four", 1))
	require.ErrorIs(t, err, store.ErrGenerations, "prepared for what served before")
	f.commit(id, f.versionFor(c, "four", "text four", 1))
	require.Len(t, f.scan(id, 0), 3, "the previous generation is kept up to date")
	_, err = f.Build(f.ctx, id, two, buildOf(building, "text two", 1))
	require.ErrorIs(t, err, store.ErrGenerations)

	c = f.reshape(id, rolledBack)
	require.Equal(t, id, c.Serving().ID)
	c = f.reshape(id, rolledBack)
	require.Equal(t, building.ID, c.Serving().ID, "rolled back once more")
	c = f.reshape(id, servingOnly)
	require.Len(t, c.Generations, 1)
	require.Empty(t, f.scan(id, 0), "dropped with all that it held")
	_, err = f.Lookup(f.ctx, id, "four")
	require.ErrorIs(t, err, store.ErrNotFound)
	next := f.commit(id, f.versionFor(c, "five", "text five", 1))
	require.EqualValues(t, 4, next.Ordinal, "ordinals are the collection's")
	again := f.begin(id, "newer/1")
	newest, _ := again.Generation(store.Building)
	require.Greater(t, newest.ID, building.ID)
	f.reopen()
	equal(t, again, f.named("acme", "handbook"))
}

// What cannot be is refused, and changes nothing.
func testGenerationsRefused(t *testing.T, f *fixture) {
	id := f.collection("acme", "handbook")
	one := f.commit(id, version("one", "text one", 2))
	c := f.begin(id, "new/1")
	building, _ := c.Generation(store.Building)
	before := f.epoch()
	for what, change := range map[string]func([]store.Generation) []store.Generation{
		"none":            func([]store.Generation) []store.Generation { return nil },
		"nothing serving": func(live []store.Generation) []store.Generation { return live[1:] },
		"two serving":     func(live []store.Generation) []store.Generation { live[1].Role = store.Serving; return live },
		"two building": func(live []store.Generation) []store.Generation {
			return append(live, store.Generation{Role: store.Building, Chunker: "c"})
		},
		"no chunker": func(live []store.Generation) []store.Generation {
			return append(live[:1], store.Generation{Role: store.Building})
		},
		"new and previous": func(live []store.Generation) []store.Generation {
			return append(live[:1], store.Generation{Role: store.Previous, Chunker: "c"})
		},
		"another chunker": func(live []store.Generation) []store.Generation { live[1].Chunker = "other"; return live },
		"another model":   func(live []store.Generation) []store.Generation { live[1].Model = "other"; return live },
		"unknown":         func(live []store.Generation) []store.Generation { live[1].ID = 99; return live },
		"no role":         func(live []store.Generation) []store.Generation { live[1].Role = 0; return live },
	} {
		_, err := f.SetGenerations(f.ctx, id, func(live []store.Generation) ([]store.Generation, error) { return change(live), nil })
		require.ErrorIs(t, err, store.ErrInvalid, what)
	}
	_, err := f.SetGenerations(f.ctx, 99, func(live []store.Generation) ([]store.Generation, error) { return live, nil })
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = f.Commit(f.ctx, building.ID, version("one", "text one", 2))
	require.ErrorIs(t, err, store.ErrNotFound, "a generation is no collection")

	mixed := buildOf(building, "text one", 2)
	mixed.Chunker = "old/1"
	_, err = f.Build(f.ctx, id, one.Record, mixed)
	require.ErrorIs(t, err, store.ErrInvalid)
	v := f.versionFor(c, "two", "text two", 2)
	v.Builds[0].Model = "m1"
	_, err = f.Commit(f.ctx, id, v)
	require.ErrorIs(t, err, store.ErrInvalid)
	v = f.versionFor(c, "two", "text two", 2)
	v.Builds[0].Vectors, v.Builds[0].Dimensions = nil, 0
	_, err = f.Commit(f.ctx, id, v)
	require.ErrorIs(t, err, store.ErrVectorsNeeded)
	bad := buildOf(building, "a longer text than it has", 2)
	_, err = f.Build(f.ctx, id, one.Record, bad)
	require.ErrorIs(t, err, store.ErrInvalid)

	stale := one.Record
	stale.Identity = sha256.Sum256([]byte("before"))
	built, err := f.Build(f.ctx, id, stale, buildOf(building, "text one", 2))
	require.NoError(t, err)
	require.False(t, built)
	require.Equal(t, before, f.epoch())
}

func testQueries(t *testing.T, f *fixture) {
	id := f.collection("acme", "handbook")
	none, err := f.Queries(f.ctx, id)
	require.NoError(t, err)
	require.Empty(t, none)
	before := f.epoch()
	require.NoError(t, f.SetQueries(f.ctx, id, []byte("first")))
	require.NoError(t, f.SetQueries(f.ctx, id, []byte("second")))
	f.reopen()
	got, err := f.Queries(f.ctx, id)
	require.NoError(t, err)
	require.Equal(t, "second", string(got))
	require.Equal(t, before, f.epoch())
	require.ErrorIs(t, f.SetQueries(f.ctx, 99, nil), store.ErrNotFound)
	_, err = f.Queries(f.ctx, 99)
	require.ErrorIs(t, err, store.ErrNotFound)
}

func testEmbeddings(t *testing.T, f *fixture) {
	key := func(i int) store.EmbeddingKey { return sha256.Sum256([]byte{byte(i)}) }
	var kept []store.Embedding
	for i := range 5 {
		kept = append(kept, store.Embedding{Key: key(i), Value: bytes.Repeat([]byte{byte(i)}, i)})
	}
	require.NoError(t, f.KeepEmbeddings(f.ctx, kept))
	require.NoError(t, f.KeepEmbeddings(f.ctx, kept[:2]), "again")
	f.reopen()
	var at []int
	keys := []store.EmbeddingKey{key(3), key(77), key(0), key(3)}
	require.NoError(t, f.Embeddings(f.ctx, keys, func(i int, value []byte) {
		at = append(at, i)
		require.Len(t, value, []int{3, -1, 0, 3}[i])
	}))
	require.Equal(t, []int{0, 2, 3}, at)
	size, err := f.CacheSize(f.ctx)
	require.NoError(t, err)
	equal(t, store.CacheSize{Entries: 5, Bytes: 5*32 + 10}, size)
	require.Zero(t, f.epoch())

	removed, err := f.PruneEmbeddings(f.ctx, time.Now().Add(-time.Hour))
	require.NoError(t, err)
	equal(t, store.CacheSize{}, removed)
	removed, err = f.PruneEmbeddings(f.ctx, time.Now().Add(time.Hour))
	require.NoError(t, err)
	equal(t, size, removed)
	size, err = f.CacheSize(f.ctx)
	require.NoError(t, err)
	equal(t, store.CacheSize{}, size)
}

// A change of access that a new generation comes in between of reaches that too.
func testSetAccessOverGenerations(t *testing.T, f *fixture) {
	id := f.collection("acme", "handbook")
	one := f.commit(id, version("one", "text one", 2))
	var building store.Generation
	var once sync.Once
	_, err := f.SetAccess(f.ctx, id, "one", func(filter.Access) (filter.Access, error) {
		once.Do(func() {
			building, _ = f.begin(id, "new/1").Generation(store.Building)
			_, err := f.Build(f.ctx, id, one.Record, buildOf(building, "text one", 4))
			require.NoError(t, err)
		})
		return readableBy("bob"), nil
	})
	require.NoError(t, err)
	for _, generation := range []uint32{id, building.ID} {
		r, err := f.Lookup(f.ctx, generation, "one")
		require.NoError(t, err)
		require.Equal(t, readableBy("bob").Readers, r.Access.Readers)
	}
	f.reshape(id, switched)
	f.reshape(id, servingOnly)
	_, err = f.SetAccess(f.ctx, id, "one", func(filter.Access) (filter.Access, error) { return readableBy("cyd"), nil })
	require.NoError(t, err)
	r, err := f.Lookup(f.ctx, building.ID, "one")
	require.NoError(t, err)
	require.Equal(t, readableBy("cyd").Readers, r.Access.Readers)
}

// generationModel is what the generations of one collection should hold: the
// text of each document, and which of them have been built.
type generationModel struct {
	f       *fixture
	id      uint32
	texts   map[string]string
	readers map[string]filter.Access
	built   map[string]bool
	numbers map[uint32]bool
}

// testGenerationsModel runs random writes, builds, switches and drops beside a model.
func testGenerationsModel(t *testing.T, home Home) {
	rapid.Check(t, func(t *rapid.T) {
		m := &generationModel{f: newFixture(t, home()), texts: map[string]string{}, readers: map[string]filter.Access{}, built: map[string]bool{}, numbers: map[uint32]bool{}}
		defer func() { _ = m.f.Close() }()
		m.id = m.f.collection("acme", "c")
		m.f.collection("acme", "d")
		t.Repeat(map[string]func(*rapid.T){
			"":       m.compare,
			"Commit": m.commit, "SetAccess": m.setAccess, "Delete": m.delete,
			"Begin": m.begin, "Build": m.build, "Switch": m.switchOver,
			"Rollback": func(t *rapid.T) { m.turn(t, store.Previous, rolledBack) },
			"Drop":     func(t *rapid.T) { m.turn(t, store.Previous, servingAndBuilding) },
			"Cancel":   func(t *rapid.T) { m.turn(t, store.Building, servingAndPrevious) },
			"Reopen":   func(t *rapid.T) { m.f.t = t; m.f.reopen() },
		})
		m.f.t = t
		m.f.verify()
	})
}

func servingAndBuilding(r store.Role) store.Role {
	return map[store.Role]store.Role{store.Serving: r, store.Building: r}[r]
}

func servingAndPrevious(r store.Role) store.Role {
	return map[store.Role]store.Role{store.Serving: r, store.Previous: r}[r]
}

func (m *generationModel) collection(t *rapid.T) store.Collection {
	m.f.t = t
	return m.f.named("acme", "c")
}

func (m *generationModel) commit(t *rapid.T) {
	c := m.collection(t)
	key, text := names.Draw(t, "key"), texts.Draw(t, "text")
	v := m.f.versionFor(c, key, text, rapid.IntRange(0, 2).Draw(t, "chunks"))
	v.Access = drawAccess(t)
	r := m.f.commit(m.id, v)
	if old, there := m.texts[key]; !there || old != text {
		m.built[key] = true
	}
	m.texts[key], m.readers[key] = text, r.Access
}

func (m *generationModel) setAccess(t *rapid.T) {
	m.collection(t)
	key := names.Draw(t, "key")
	if _, there := m.texts[key]; !there {
		t.Skip("no such document")
	}
	r, err := m.f.SetAccess(m.f.ctx, m.id, key, func(filter.Access) (filter.Access, error) { return drawAccess(t), nil })
	require.NoError(t, err)
	m.readers[key] = r.Access
}

func (m *generationModel) delete(t *rapid.T) {
	m.collection(t)
	key := names.Draw(t, "key")
	if _, there := m.texts[key]; !there {
		t.Skip("no such document")
	}
	m.f.delete(m.id, key)
	delete(m.texts, key)
	delete(m.readers, key)
	delete(m.built, key)
}

func (m *generationModel) begin(t *rapid.T) {
	c := m.collection(t)
	if _, there := c.Generation(store.Building); there {
		t.Skip("under way")
	}
	c = m.f.begin(m.id, "new"+tags.Draw(t, "chunker"))
	g, _ := c.Generation(store.Building)
	require.False(t, m.numbers[g.ID], "used again")
	m.numbers[g.ID] = true
	m.built = map[string]bool{}
}

func (m *generationModel) build(t *rapid.T) {
	c := m.collection(t)
	g, there := c.Generation(store.Building)
	key := names.Draw(t, "key")
	text, exists := m.texts[key]
	if !there || !exists {
		t.Skip("nothing to build")
	}
	r, err := m.f.Lookup(m.f.ctx, c.Serving().ID, key)
	require.NoError(t, err)
	built, err := m.f.Build(m.f.ctx, m.id, r, buildOf(g, text, 1))
	require.NoError(t, err)
	require.True(t, built)
	m.built[key] = true
}

// switchOver drops what is previous, and switches once all is built.
func (m *generationModel) switchOver(t *rapid.T) {
	if len(m.built) < len(m.texts) {
		t.Skip("not all is built")
	}
	m.turn(t, store.Building, switched)
}

func (m *generationModel) turn(t *rapid.T, needs store.Role, role func(store.Role) store.Role) {
	c := m.collection(t)
	_, there := c.Generation(needs)
	_, building := c.Generation(store.Building)
	if !there || needs == store.Previous && building && role(store.Building) == 0 {
		t.Skip("no such generation")
	}
	m.f.reshape(m.id, role)
}

// compare reads every generation.
func (m *generationModel) compare(t *rapid.T) {
	c := m.collection(t)
	for _, g := range c.Live() {
		want := m.texts
		if g.Role == store.Building {
			want = map[string]string{}
			for key := range m.built {
				want[key] = m.texts[key]
			}
		}
		got := map[string]string{}
		for _, r := range m.f.scan(g.ID, 0) {
			content := m.f.content(g.ID, r.Ordinal)
			got[r.Key] = content.Text
			equal(t, m.readers[r.Key], r.Access)
			if g.Chunker != "" {
				require.Equal(t, g.Chunker+" "+g.Model, r.Chunker+" "+r.Model)
			}
			serving, err := m.f.Lookup(m.f.ctx, c.Serving().ID, r.Key)
			require.NoError(t, err)
			require.Equal(t, [2]uint32{serving.Ordinal, serving.Version}, [2]uint32{r.Ordinal, r.Version})
		}
		require.Equal(t, fmt.Sprint(want), fmt.Sprint(got), "%v", g.Role)
	}
	require.True(t, slices.IsSortedFunc(c.Live(), func(a, b store.Generation) int { return int(a.Role) - int(b.Role) }))
}
