package filter_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/filter"
	"sluice/filter/lru"
)

const modelSchema = `
entity Group;
entity User in [Group] { tenant: String, subject: String, groups: Set<String>, level?: Long, team?: String, tags?: Set<String> };
entity Document { tenant: String, level?: Long, team?: String, tags?: Set<String>, secret?: Bool };
action any;
action read in [any] appliesTo { principal: User, resource: Document };
`

// modelPolicies are policy sets that differ in every way that matters:
// permits, forbids, forbids that fail, groups, the action hierarchy.
var modelPolicies = []string{
	``,
	`permit (principal, action, resource);`,
	`permit (principal, action == Action::"read", resource)
	 when { resource has level && principal has level && principal.level >= resource.level };`,
	`permit (principal, action, resource);
	 forbid (principal, action in Action::"any", resource) when { resource has secret && resource.secret }
	 unless { principal in Group::"g1" };`,
	`permit (principal, action, resource);
	 forbid (principal, action, resource) when { resource has level && resource.level * 4611686018427387904 < 0 };`,
	`permit (principal in Group::"g0", action, resource);
	 permit (principal, action, resource) when { resource has tags && principal has tags && resource.tags.containsAny(principal.tags) };
	 permit (principal, action, resource) when { resource has level && resource.level + 9223372036854775807 > 0 };
	 forbid (principal, action, resource) when { resource has team && !(principal has team && principal.team == resource.team) };`,
	`permit (principal, action, resource) when { resource has team && principal.groups.contains(resource.team) };
	 permit (principal == User::"u1", action, resource) when { !(resource has team) };`,
}

func mustParse(t require.TestingT, schema, policies string) *filter.Policies {
	p, err := filter.ParsePolicies(schema, map[string]string{"test.cedar": policies})
	require.NoError(t, err)
	return p
}

var (
	genName   = rapid.SampledFrom([]string{"g0", "g1", "g2"})
	genTags   = rapid.SliceOfN(genName, 0, 3)
	genDay    = rapid.Map(rapid.IntRange(0, 6), func(day int) time.Time { return epoch.AddDate(0, 0, day) })
	genRegion = rapid.SampledFrom([]string{"EU", "US", "JP", ""})
	epoch     = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// genAttributes sometimes gives a null, and sometimes a type that the schema does not declare.
var genAttributes = rapid.Custom(func(t *rapid.T) filter.Attributes {
	decoded := map[string]any{}
	for _, key := range []string{"level", "team", "tags", "secret", "undeclared"} {
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0, 1, 2, 3, 4:
			decoded[key] = genFitting(t, key)
		case 5:
			decoded[key] = nil
		case 6:
			if rapid.IntRange(0, 4).Draw(t, "unfit") == 0 {
				decoded[key] = genFitting(t, "tags")
			}
		}
	}
	attributes, err := filter.ParseAttributes(decoded)
	require.NoError(t, err)
	return attributes
})

func genFitting(t *rapid.T, key string) any {
	switch key {
	case "level":
		return rapid.Int64Range(0, 3).Draw(t, key)
	case "tags":
		return genTags.Draw(t, key)
	case "secret":
		return rapid.Bool().Draw(t, key)
	}
	return genName.Draw(t, key)
}

var genReaders = rapid.Custom(func(t *rapid.T) filter.Readers {
	if rapid.IntRange(0, 2).Draw(t, "undeclared") == 0 {
		return filter.Readers{Undeclared: true}
	}
	list := rapid.SliceOfN(rapid.SampledFrom([]string{"public", "user:u0", "user:u1", "group:g0", "group:g1", "user:g0", "group:u0"}), 0, 4)
	readers, err := filter.ParseReaders(list.Draw(t, "readers"))
	require.NoError(t, err)
	return readers
})

var genApplicability = rapid.Custom(func(t *rapid.T) filter.Applicability {
	a := filter.Applicability{Regions: rapid.SliceOfN(genRegion, 0, 2).Draw(t, "regions")}
	if rapid.Bool().Draw(t, "from") {
		a.ValidFrom = genDay.Draw(t, "from")
	}
	if rapid.Bool().Draw(t, "until") {
		a.ValidUntil = genDay.Draw(t, "until")
	}
	return a
})

var genScope = rapid.Custom(func(t *rapid.T) filter.Scope {
	return filter.Scope{
		Region:    rapid.SampledFrom([]string{"", "EU", "US", "AQ"}).Draw(t, "region"),
		AnyRegion: rapid.Bool().Draw(t, "anyRegion"),
		AsOf:      genDay.Draw(t, "asOf"),
		AnyTime:   rapid.IntRange(0, 3).Draw(t, "anyTime") == 0,
	}
})

var genPrincipal = rapid.Custom(func(t *rapid.T) filter.Principal {
	return filter.Principal{
		Tenant:     rapid.SampledFrom([]string{"acme", "acme", "acme", "other", ""}).Draw(t, "tenant"),
		Subject:    rapid.SampledFrom([]string{"u0", "u1", "u2", ""}).Draw(t, "subject"),
		Groups:     rapid.SliceOfN(genName, 0, 3).Draw(t, "groups"),
		Attributes: genAttributes.Draw(t, "attributes"),
	}
})

// genChanges spreads ordinals over pages and roaring containers.
var genChanges = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) filter.Change {
	return filter.Change{
		Ordinal: rapid.SampledFrom([]uint32{0, 1, 2, 3, 255, 256, 65535, 65536, 200_000}).Draw(t, "ordinal"),
		Deleted: rapid.IntRange(0, 3).Draw(t, "deleted") == 0,
		Access: filter.Access{
			Readers:       genReaders.Draw(t, "readers"),
			Attributes:    genAttributes.Draw(t, "attributes"),
			Applicability: genApplicability.Draw(t, "applicability"),
		},
	}
}), 1, 6)

// state is a View beside what it ought to be.
type state struct {
	view     *filter.View
	policies *filter.Policies
	rows     map[uint32]filter.Access
}

func (s state) apply(changes []filter.Change) state {
	rows := maps.Clone(s.rows)
	for _, change := range changes {
		delete(rows, change.Ordinal)
		if !change.Deleted {
			rows[change.Ordinal] = change.Access
		}
	}
	return state{s.view.Apply(changes), s.policies, rows}
}

// check compares the View, and a Judge of it, with Admits and Applies,
// document by document.
func (s state) check(t *rapid.T, p filter.Principal, scope filter.Scope) {
	var admitted, applying []uint32
	judge, unfit := s.view.Judge(s.policies, p)
	for ordinal, a := range s.rows {
		ok, err := s.policies.Admits(p, a)
		if err != nil && ok {
			t.Fatalf("admitted in spite of %v", err)
		}
		if unfit != nil {
			require.ErrorIs(t, unfit, filter.ErrPrincipal)
			require.False(t, ok)
		} else {
			require.Equal(t, ok && p.Tenant == "acme", judge.Admits(a), "%+v, %+v", p, a)
		}
		if ok && p.Tenant == "acme" {
			admitted = append(admitted, ordinal)
			if filter.Applies(a.Applicability, scope) {
				applying = append(applying, ordinal)
			}
		}
	}
	visible, applicable := filter.SetOf(admitted...), filter.SetOf(applying...)
	resolved, err := s.view.Resolve(p)
	if err != nil {
		require.ErrorIs(t, err, filter.ErrPrincipal)
	}
	require.Equal(t, ordinals(visible), ordinals(resolved), "%+v", p)
	require.Equal(t, ordinals(applicable), ordinals(s.view.Within(resolved, scope)), "%+v", scope)
	require.Equal(t, len(s.rows), s.view.Len())
}

func ordinals(s filter.Set) []uint32 { return slices.Collect(s.Each) }

// TestViewModel applies random changes and policies and compares every View
// that ever was with the naive decision, at every step: later changes never
// reach an earlier View.
func TestViewModel(t *testing.T) {
	policies := []*filter.Policies{nil}
	for _, text := range modelPolicies {
		policies = append(policies, mustParse(t, modelSchema, text))
	}
	genPolicies := rapid.SampledFrom(policies)
	rapid.Check(t, func(t *rapid.T) {
		principals := rapid.SliceOfN(genPrincipal, 2, 4).Draw(t, "principals")
		first := genPolicies.Draw(t, "policies")
		history := []state{{filter.NewView("acme", first), first, map[uint32]filter.Access{}}}
		for range rapid.IntRange(3, 12).Draw(t, "steps") {
			from := rapid.SampledFrom(history).Draw(t, "from") // branches, too
			next := from.apply(genChanges.Draw(t, "changes"))
			if rapid.IntRange(0, 2).Draw(t, "newPolicies") == 0 {
				next.policies = genPolicies.Draw(t, "policies")
				next.view = next.view.WithPolicies(next.policies)
			}
			history = append(history, next)
			scope := genScope.Draw(t, "scope")
			for _, s := range history {
				for _, p := range principals {
					s.check(t, p, scope)
				}
			}
		}
	})
}

// TestViewConcurrent resolves old Views while new ones are made from them.
func TestViewConcurrent(t *testing.T) {
	view := filter.NewView("acme", mustParse(t, modelSchema, modelPolicies[3]))
	principal := filter.Principal{Tenant: "acme", Subject: "u0"}
	scope := filter.Scope{AsOf: epoch}
	var searches sync.WaitGroup
	for i := range uint32(200) {
		next := view.Apply([]filter.Change{{Ordinal: i, Access: filter.Access{
			Readers:       filter.Readers{List: []filter.Reader{filter.Public}},
			Attributes:    filter.Attributes{"level": int64(i % 10)},
			Applicability: filter.Applicability{ValidFrom: epoch},
		}}})
		for range 2 {
			searches.Go(func() {
				set, err := next.Resolve(principal)
				if err != nil || set.Len() != int(i)+1 || next.Within(set, scope).Len() != int(i)+1 {
					t.Errorf("after %d changes: %d documents, %v", i+1, set.Len(), err)
				}
			})
		}
		view = next
	}
	searches.Wait()
}

// TestFullContainers has bitmaps whose containers are full, which roaring stores differently.
func TestFullContainers(t *testing.T) {
	const documents = 1<<16 + 10
	changes := make([]filter.Change, documents)
	for i := range changes {
		changes[i] = filter.Change{Ordinal: uint32(i), Access: filter.Access{Readers: filter.Readers{List: []filter.Reader{filter.Group("all")}}}}
	}
	view := filter.NewView("acme", starter(t)).Apply(changes)
	everyone := filter.Principal{Tenant: "acme", Subject: "u0", Groups: []string{"all"}}
	for range 2 {
		set, err := view.Resolve(everyone)
		require.NoError(t, err)
		require.Equal(t, documents, set.Len())
		less, err := view.Apply([]filter.Change{{Ordinal: 7, Deleted: true}}).Resolve(everyone)
		require.NoError(t, err)
		require.Equal(t, documents-1, less.Len())
		require.False(t, less.Contains(7))
		nothing, err := view.Resolve(filter.Principal{Tenant: "acme", Subject: "u1"})
		require.NoError(t, err)
		require.True(t, nothing.IsEmpty())
	}
}

// A scope that excludes nothing leaves the Set itself: indexes remember Sets.
func TestScopesThatExcludeNothing(t *testing.T) {
	view := filter.NewView("acme", starter(t)).Apply([]filter.Change{{Access: readersOf(filter.User("u0"))}, {Ordinal: 1, Access: filter.Access{
		Readers:       filter.Readers{List: []filter.Reader{filter.User("u0")}},
		Applicability: filter.Applicability{ValidUntil: epoch},
	}}})
	set, err := view.Resolve(filter.Principal{Tenant: "acme", Subject: "u0"})
	require.NoError(t, err)
	again, err := view.Resolve(filter.Principal{Tenant: "acme", Subject: "u0"})
	require.NoError(t, err)
	before := filter.Scope{AsOf: epoch.Add(-time.Hour)}
	require.True(t, view.Within(set, before) == view.Within(again, before))
	require.Equal(t, 1, view.Within(set, filter.Scope{AsOf: epoch}).Len())
}

// TestCallerKeepsSlices changes the access row after Apply: the View has its own.
func TestCallerKeepsSlices(t *testing.T) {
	readers := []filter.Reader{filter.User("u0")}
	regions := []string{"EU"}
	change := filter.Change{Access: filter.Access{
		Readers:       filter.Readers{List: readers},
		Applicability: filter.Applicability{Regions: regions},
	}}
	view := filter.NewView("acme", starter(t)).Apply([]filter.Change{change})
	readers[0], regions[0] = filter.User("u1"), "US"
	view = view.Apply([]filter.Change{{Access: filter.Access{}}}) // now nobody's
	set, err := view.Resolve(filter.Principal{Tenant: "acme", Subject: "u0"})
	require.NoError(t, err)
	require.True(t, set.IsEmpty(), "the former reader still reads it")
}

// TestClassChurn lets classes come and go until the ids of classes start anew:
// decisions made before must not be taken for those of new classes, and the
// ids of readers go on, or a revocation would be another reader's.
func TestClassChurn(t *testing.T) {
	policies := mustParse(t, modelSchema, `permit (principal, action, resource) when { resource has team && resource.team like "even*" };`)
	principal := filter.Principal{Tenant: "acme", Subject: "u0"}
	const first, second = 5000, 5001
	listed := func(ordinal uint32, reader string) []filter.Change {
		a := readersOf(filter.User(reader))
		a.Attributes = filter.Attributes{"team": "even"}
		return []filter.Change{{Ordinal: ordinal, Access: a}}
	}
	view := filter.NewView("acme", policies).Apply(listed(first, "a"))
	for batch := range 70 {
		changes := make([]filter.Change, 1000)
		for i := range changes {
			team := fmt.Sprintf("%s-%d-%d", []string{"even", "odd"}[(i+batch)%2], batch, i)
			changes[i] = filter.Change{Ordinal: uint32(i), Access: filter.Access{
				Readers:    filter.Readers{Undeclared: true},
				Attributes: filter.Attributes{"team": team},
			}}
		}
		view = view.Apply(changes)
		set, err := view.Resolve(principal)
		require.NoError(t, err)
		require.Equal(t, 500, set.Len())
		require.Equal(t, batch%2 == 0, set.Contains(0))
	}
	view = view.Apply(listed(second, "b")).Apply(listed(first, "c"))
	for name, want := range map[string]bool{"a": false, "b": false, "c": true} {
		set, err := view.Resolve(filter.Principal{Tenant: "acme", Subject: name})
		require.NoError(t, err)
		require.Equal(t, want, set.Contains(first), name)
		require.Equal(t, name == "b", set.Contains(second), name)
	}
}

// TestSetsOfLongAgo asks again after more changes than a View remembers.
func TestSetsOfLongAgo(t *testing.T) {
	principal := filter.Principal{Tenant: "acme", Subject: "u0"}
	for n, changes := range []int{511, 512, 513, 514, 515, 700} {
		view := filter.NewView("acme", starter(t))
		for i := range changes {
			if i == n%2*3 {
				set, err := view.Resolve(principal)
				require.NoError(t, err)
				require.Equal(t, i, set.Len())
			}
			view = view.Apply([]filter.Change{{Ordinal: uint32(i), Access: readersOf(filter.User("u0"))}})
		}
		set, err := view.Resolve(principal)
		require.NoError(t, err)
		require.Equal(t, changes, set.Len())
	}
}

func TestWithPolicies(t *testing.T) {
	view := filter.NewView("acme", starter(t)).Apply([]filter.Change{
		{Ordinal: 4, Access: filter.Access{Readers: filter.Readers{Undeclared: true}}},
	})
	principal := filter.Principal{Tenant: "acme", Subject: "u0"}
	before, err := view.Resolve(principal)
	require.NoError(t, err)
	require.Equal(t, []uint32{4}, ordinals(before))
	after, err := view.WithPolicies(nil).Resolve(principal)
	require.NoError(t, err)
	require.True(t, after.IsEmpty())
}

func TestSetZeroValue(t *testing.T) {
	var zero filter.Set
	require.True(t, zero.IsEmpty())
	require.Zero(t, zero.Len())
	require.False(t, zero.Contains(0))
	require.True(t, zero.Equal(filter.SetOf()))
	require.False(t, zero.Equal(filter.SetOf(1)))
	require.True(t, zero.And(filter.SetOf(1)).IsEmpty())
	require.True(t, filter.SetOf(1).And(zero).IsEmpty())
	require.True(t, zero.AndNot(filter.SetOf(1)).IsEmpty())
	require.Equal(t, []uint32{1}, ordinals(filter.SetOf(1).AndNot(zero)))
	require.Zero(t, zero.IntersectionLen(filter.SetOf(1).Bitmap()))
	require.Zero(t, zero.Many().NextMany(make([]uint32, 4)))
	require.Empty(t, ordinals(zero))
}

func TestSetBitmapIsACopy(t *testing.T) {
	set := filter.SetOf(1, 2)
	set.Bitmap().Add(3)
	require.Equal(t, []uint32{1, 2}, ordinals(set))
	require.Equal(t, 1, set.IntersectionLen(filter.SetOf(2, 3).Bitmap()))
}

// ending is a context that ends when it is asked for its error too often.
type ending struct {
	context.Context
	left, late atomic.Int64 // late: asked after its end
}

func (e *ending) Err() error {
	if e.left.Add(-1) >= 0 {
		return nil
	}
	e.late.Add(1)
	return context.Canceled
}

// TestResolveContextEnds: deciding stops where the context does, both from
// nothing and from an earlier Set, and what was not decided is not taken for it.
func TestResolveContextEnds(t *testing.T) {
	const documents = 3000
	changes := func(offset int) (all []filter.Change) {
		for i := range documents {
			a := filter.Access{Readers: filter.Readers{Undeclared: true}, Attributes: filter.Attributes{"level": int64(offset + i)}}
			all = append(all, filter.Change{Ordinal: uint32(i), Access: a})
		}
		return all
	}
	policies := mustParse(t, modelSchema, `permit (principal, action, resource) when { resource has level && resource.level >= 10 };`)
	p := filter.Principal{Tenant: "t", Subject: "u"}
	view := filter.NewView("t", policies)
	for round, want := range []int{documents - 10, documents} {
		view = view.Apply(changes(round * documents)[:documents-round]) // the second time the last stays as it is
		ctx := &ending{Context: t.Context()}
		ctx.left.Store(100)
		set, err := view.ResolveContext(ctx, p)
		require.ErrorIs(t, err, context.Canceled)
		require.True(t, set.IsEmpty())
		require.LessOrEqual(t, ctx.late.Load(), int64(documents/512+2), "each worker notices once")
		set, err = view.Resolve(p)
		require.NoError(t, err)
		require.Equal(t, want, set.Len())
	}
}

// As many cores decide as a View was told, and those made from it.
func TestDecidedOn(t *testing.T) {
	var changes []filter.Change
	for i := range 4000 {
		a := filter.Access{Readers: filter.Readers{Undeclared: true}, Attributes: filter.Attributes{"level": int64(i)}}
		changes = append(changes, filter.Change{Ordinal: uint32(i), Access: a})
	}
	policies := mustParse(t, modelSchema, `permit (principal, action, resource) when { resource has level && resource.level >= 10 };`)
	for _, cores := range []int{1, 2, 5} {
		view := filter.NewView("t", policies).DecidedOn(cores).Apply(changes)
		for _, v := range []*filter.View{view, view.Fork(), view.WithPolicies(policies)} {
			ctx := &ending{Context: t.Context()}
			ctx.left.Store(100)
			_, err := v.ResolveContext(ctx, filter.Principal{Tenant: "t", Subject: "u"})
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, int64(cores+1), ctx.late.Load(), "each worker notices once, and who waits for them")
		}
	}
}

// A Set that is kept is a hit until something changes; what suppositions ask is
// not counted.
func TestLookups(t *testing.T) {
	var lookups lru.Lookups
	p := filter.Principal{Tenant: "acme", Subject: "u1"}
	document := []filter.Change{{Ordinal: 1, Access: filter.Access{Readers: filter.Readers{Undeclared: true}}}}
	view := filter.NewView("acme", mustParse(t, modelSchema, modelPolicies[1])).CountedBy(&lookups).Apply(document)
	ask := func(v *filter.View) (hits, misses uint64) {
		_, err := v.Resolve(p)
		require.NoError(t, err)
		return lookups.Count()
	}
	for i, want := range [][2]uint64{{0, 1}, {1, 1}, {2, 1}} {
		hits, misses := ask(view)
		require.Equal(t, want, [2]uint64{hits, misses}, i)
	}
	hits, misses := ask(view.Apply([]filter.Change{{Ordinal: 1, Deleted: true}}))
	require.Equal(t, [2]uint64{2, 2}, [2]uint64{hits, misses}, "brought forward")
	hits, misses = ask(view.Fork())
	require.Equal(t, [2]uint64{2, 2}, [2]uint64{hits, misses})
}
