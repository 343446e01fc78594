package conformance

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/filter"
	"sluice/store"
)

// model is what a store should hold, kept as simply as possible.
type model struct {
	f           *fixture
	collections []store.Collection
	documents   map[place]*store.Content
	versions    map[place]store.Version
	feed        []store.Change
	trimmed     uint64
	policies    store.PolicySource
	ordinals    map[[2]uint32]bool // every one ever used, by collection
	rows        map[[2]uint32]bool
}

type place struct {
	collection uint32
	key        string
}

// testModel runs random operations on a store and the model, side by side.
func testModel(t *testing.T, home Home) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{
			f: newFixture(t, home()), documents: map[place]*store.Content{}, versions: map[place]store.Version{},
			ordinals: map[[2]uint32]bool{}, rows: map[[2]uint32]bool{},
		}
		defer func() { _ = m.f.Close() }()
		t.Repeat(map[string]func(*rapid.T){
			"":                 m.compare,
			"CreateCollection": m.createCollection,
			"Commit":           m.commit,
			"CommitAgain":      m.commitAgain,
			"SetAccess":        m.setAccess,
			"Delete":           m.delete,
			"SetPolicies":      m.setPolicies,
			"Trim":             m.trim,
			"Reopen":           func(t *rapid.T) { m.f.t = t; m.f.reopen() },
		})
		m.f.t = t
		m.f.verify()
	})
}

var (
	names    = rapid.SampledFrom([]string{"", "a", "ab", "b", "\x00", "\xff"})
	texts    = rapid.SampledFrom([]string{"", "one", "one two", "one two three"})
	tags     = rapid.SampledFrom([]string{"/1", "/2"})
	settings = rapid.SampledFrom([]store.Settings{
		{Analyzer: "a"}, {Analyzer: "b"}, {Analyzer: "a", CodeBits: 1}, {CodeBits: 8}, {Own: store.Own{Dense: 3}},
		{CodeBits: 8, Own: store.Own{Dense: 3, Multi: 2}}, {CodeBits: 1, Own: store.Own{Multi: 3}},
	})
	readers = rapid.SampledFrom([]filter.Reader{filter.Public, filter.User("a"), filter.Group("a"), filter.Group("b")})
)

func drawAccess(t *rapid.T) filter.Access {
	a := filter.Access{Readers: filter.Readers{Undeclared: rapid.Bool().Draw(t, "undeclared"), List: rapid.SliceOfN(readers, 0, 3).Draw(t, "readers")}}
	if rapid.Bool().Draw(t, "attributes") {
		a.Attributes = filter.Attributes{"class": names.Draw(t, "class"), "level": int64(rapid.IntRange(0, 2).Draw(t, "level"))}
	}
	a.Applicability.Regions = rapid.SliceOfN(names, 0, 2).Draw(t, "regions")
	return a
}

func (m *model) drawVersion(t *rapid.T) store.Version {
	v := version(names.Draw(t, "key"), texts.Draw(t, "text"), rapid.IntRange(0, 3).Draw(t, "chunks"))
	v.Chunker, v.Model, v.Access = "c"+tags.Draw(t, "chunker"), "m"+tags.Draw(t, "model"), drawAccess(t)
	v.Keeps = filter.AccessFields(rapid.IntRange(0, 1<<5-1).Draw(t, "keeps"))
	if rapid.Bool().Draw(t, "no codes") {
		v.Codes = nil
	}
	return v
}

// drawCollection returns a collection, now and then one that does not exist.
func (m *model) drawCollection(t *rapid.T) (id uint32, exists bool) {
	i := rapid.IntRange(0, len(m.collections)).Draw(t, "collection")
	if i == len(m.collections) {
		return 1 << 20, false
	}
	return m.collections[i].ID, true
}

func (m *model) changed(kind store.ChangeKind, collection, ordinal uint32) uint64 {
	epoch := m.trimmed + uint64(len(m.feed)) + 1
	m.feed = append(m.feed, store.Change{Epoch: epoch, Kind: kind, Collection: collection, Ordinal: ordinal})
	return epoch
}

func (m *model) createCollection(t *rapid.T) {
	tenant, name := names.Draw(t, "tenant"), names.Draw(t, "name")
	settings := settings.Draw(t, "settings")
	got, created, err := m.f.CreateCollection(m.f.ctx, tenant, name, settings)
	i := slices.IndexFunc(m.collections, func(c store.Collection) bool { return c.Tenant == tenant && c.Name == name })
	switch {
	case i < 0:
		require.NoError(t, err)
		require.True(t, created)
		for _, c := range m.collections {
			require.Less(t, c.ID, got.ID)
		}
		m.collections = append(m.collections, store.Collection{ID: got.ID, Tenant: tenant, Name: name, Settings: settings, Created: got.Created})
		m.changed(store.CollectionCreated, got.ID, 0)
	case m.collections[i].Settings != settings:
		require.ErrorIs(t, err, store.ErrSettingsDiffer)
	default:
		require.NoError(t, err)
		require.False(t, created)
	}
}

func (m *model) commit(t *rapid.T) { m.commitVersion(t, m.drawVersion(t)) }

// commitAgain commits what is there already, or that with another access.
func (m *model) commitAgain(t *rapid.T) {
	if len(m.versions) == 0 {
		t.Skip("no documents")
	}
	keys := slices.SortedFunc(maps.Keys(m.versions), func(a, b place) int {
		return slices.Compare([]string{fmt.Sprint(a.collection), a.key}, []string{fmt.Sprint(b.collection), b.key})
	})
	v := m.versions[rapid.SampledFrom(keys).Draw(t, "document")]
	if rapid.Bool().Draw(t, "other access") {
		v.Access = drawAccess(t)
	}
	m.commitVersion(t, v)
}

func (m *model) commitVersion(t *rapid.T, v store.Version) {
	collection, exists := m.drawCollection(t)
	got, err := m.f.Commit(m.f.ctx, collection, v)
	if !exists {
		require.ErrorIs(t, err, store.ErrNotFound)
		return
	}
	require.NoError(t, err)
	m.committed(t, place{collection, v.Key}, v, got)
}

// committed applies a commit to the model and compares the receipt.
func (m *model) committed(t *rapid.T, at place, v store.Version, got store.Receipt) {
	access, err := store.NormalAccess(v.Access)
	require.NoError(t, err)
	old := m.documents[at]
	if old != nil {
		access = access.Keeping(v.Keeps, old.Access)
	}
	if old != nil && old.Identity == v.Identity && old.Chunker == v.Chunker && old.Model == v.Model {
		m.accessed(t, at, access, got)
		return
	}
	r := store.Record{
		Collection: at.collection, Key: at.key, Ordinal: got.Ordinal, Version: 1,
		Title: v.Title, Format: v.Format, Chunker: v.Chunker, Model: v.Model, Identity: v.Identity,
		FirstRow: got.FirstRow, Rows: uint32(len(v.Chunks)), Coded: v.Codes != nil, Access: access, Updated: got.Updated,
	}
	if got.Class != 0 { // a store need not keep it
		r.Class = access.Class()
	}
	if old == nil {
		m.useOnce(t, m.ordinals, at.collection, got.Ordinal)
	} else {
		r.Ordinal, r.Version = old.Ordinal, old.Version
		if old.Identity != v.Identity {
			r.Version++
		}
	}
	for row := range r.Rows {
		m.useOnce(t, m.rows, at.collection, got.FirstRow+row)
	}
	r.Epoch = m.changed(store.DocumentChanged, at.collection, r.Ordinal)
	content := contentOf(r, v)
	m.documents[at], m.versions[at] = &content, v
	equal(t, store.Receipt{Record: r, Created: old == nil}, got)
}

func (m *model) useOnce(t *rapid.T, used map[[2]uint32]bool, collection, number uint32) {
	require.False(t, used[[2]uint32{collection, number}], "%d is used again", number)
	used[[2]uint32{collection, number}] = true
}

// accessed applies a normal access row to a document of the model and compares the receipt.
func (m *model) accessed(t *rapid.T, at place, access filter.Access, got store.Receipt) {
	d := m.documents[at]
	unchanged := fmt.Sprintf("%#v", d.Access) == fmt.Sprintf("%#v", access)
	if !unchanged {
		d.Access, d.Updated = access, got.Updated
		d.Epoch = m.changed(store.DocumentChanged, at.collection, d.Ordinal)
	}
	equal(t, store.Receipt{Record: d.Record, Unchanged: unchanged, AccessOnly: !unchanged}, got)
}

func (m *model) setAccess(t *rapid.T) {
	collection, _ := m.drawCollection(t)
	at := place{collection, names.Draw(t, "key")}
	access := drawAccess(t)
	got, err := m.f.SetAccess(m.f.ctx, collection, at.key, func(present filter.Access) (filter.Access, error) {
		equal(t, m.documents[at].Access, present)
		return access, nil
	})
	if m.documents[at] == nil {
		require.ErrorIs(t, err, store.ErrNotFound)
		return
	}
	require.NoError(t, err)
	access, err = store.NormalAccess(access)
	require.NoError(t, err)
	m.accessed(t, at, access, got)
}

func (m *model) delete(t *rapid.T) {
	collection, _ := m.drawCollection(t)
	at := place{collection, names.Draw(t, "key")}
	got, err := m.f.Delete(m.f.ctx, collection, at.key)
	d := m.documents[at]
	if d == nil {
		require.ErrorIs(t, err, store.ErrNotFound)
		return
	}
	require.NoError(t, err)
	d.Epoch = m.changed(store.DocumentChanged, collection, d.Ordinal)
	equal(t, store.Receipt{Record: d.Record}, got)
	delete(m.documents, at)
}

func (m *model) setPolicies(t *rapid.T) {
	p := store.PolicySource{Schema: texts.Draw(t, "schema")}
	if text := texts.Draw(t, "policy"); text != "" {
		p.Policies = map[string]string{names.Draw(t, "file"): text}
	}
	_, changed, err := m.f.SetPolicies(m.f.ctx, p)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(m.policies) != fmt.Sprint(p), changed)
	if changed {
		m.policies = p
		m.changed(store.PoliciesChanged, 0, 0)
	}
}

func (m *model) trim(t *rapid.T) {
	upTo := m.trimmed + rapid.Uint64Range(0, 5).Draw(t, "epochs")
	require.NoError(t, m.f.Trim(m.f.ctx, upTo))
	n := min(upTo-m.trimmed, uint64(len(m.feed)))
	m.feed, m.trimmed = m.feed[n:], m.trimmed+n
}

// compare reads all of the store and compares it with the model.
func (m *model) compare(t *rapid.T) {
	m.f.t = t
	collections, err := m.f.Collections(m.f.ctx)
	require.NoError(t, err)
	equal(t, len(m.collections), len(collections))
	for i, c := range m.collections {
		equal(t, c, collections[i])
	}
	require.EqualValues(t, m.trimmed+uint64(len(m.feed)), m.f.epoch())
	require.True(t, slices.Equal(m.feed, m.f.changes(m.trimmed)))
	p, err := m.f.Policies(m.f.ctx)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(m.policies), fmt.Sprint(p))
	found := 0
	for _, c := range m.collections {
		for _, r := range m.f.scan(c.ID, 0) {
			d := m.documents[place{c.ID, r.Key}]
			require.NotNil(t, d, "document %q should not be there", r.Key)
			equal(t, *d, m.f.content(c.ID, r.Ordinal))
			equal(t, m.versions[place{c.ID, r.Key}].Codes, m.f.codes(r))
			equal(t, d.Record, r)
			byKey, err := m.f.Lookup(m.f.ctx, c.ID, r.Key)
			require.NoError(t, err)
			equal(t, r, byKey)
			found++
		}
	}
	require.Len(t, m.documents, found)
	m.compareAbsent(t)
}

func (m *model) compareAbsent(t *rapid.T) {
	for at := range m.versions {
		if m.documents[at] == nil {
			_, err := m.f.Lookup(m.f.ctx, at.collection, at.key)
			require.True(t, errors.Is(err, store.ErrNotFound), "%v", err)
		}
	}
}
