package filter_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/filter"
)

// rule is a policy text beside what it means, said by hand.
type rule struct {
	text   string
	admits func(p filter.Principal, a filter.Attributes) bool
}

var stepRules = []rule{
	{``, func(filter.Principal, filter.Attributes) bool { return false }},
	{`permit (principal, action, resource);`, func(filter.Principal, filter.Attributes) bool { return true }},
	{`permit (principal, action == Action::"read", resource)
	  when { resource has level && principal has level && principal.level >= resource.level };`,
		func(p filter.Principal, a filter.Attributes) bool {
			has, known := p.Attributes["level"].(int64)
			needs, asks := a["level"].(int64)
			return known && asks && has >= needs
		}},
	{`permit (principal, action, resource);
	  forbid (principal, action in Action::"any", resource) when { resource has secret && resource.secret }
	  unless { principal in Group::"g1" };`,
		func(p filter.Principal, a filter.Attributes) bool {
			return a["secret"] != true || slices.Contains(p.Groups, "g1")
		}},
	{`permit (principal, action, resource) when { resource has team && principal.groups.contains(resource.team) };
	  permit (principal == User::"u1", action, resource) when { !(resource has team) };`,
		func(p filter.Principal, a filter.Attributes) bool {
			team, owned := a["team"].(string)
			return owned && slices.Contains(p.Groups, team) || !owned && p.Subject == "u1"
		}},
	{`permit (principal, action, resource);
	  forbid (principal, action, resource) when { resource has level && resource.level * 4611686018427387904 < 0 };`,
		func(_ filter.Principal, a filter.Attributes) bool { // an overflow denies
			level, _ := a["level"].(int64)
			return level < 2
		}},
}

// world is the View under test beside all that it should know.
type world struct {
	random *rand.Rand
	parsed []*filter.Policies
	rule   int
	view   *filter.View
	rows   map[uint32]filter.Access
	people []filter.Principal
	shown  chan *picture
}

// picture is a View with what everybody may read in it.
type picture struct {
	view   *filter.View
	people []filter.Principal
	wants  []filter.Set
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{random: rand.New(rand.NewPCG(seed, 0)), rows: map[uint32]filter.Access{}, shown: make(chan *picture, 1)}
	for _, r := range stepRules {
		w.parsed = append(w.parsed, mustParse(t, modelSchema, r.text))
	}
	for i := range 6 {
		p := filter.Principal{Tenant: "acme", Subject: fmt.Sprint("u", i), Groups: w.some("g", 4)}
		if i%3 != 0 {
			p.Attributes = filter.Attributes{"level": int64(i % 4)}
		}
		w.people = append(w.people, p)
	}
	w.restart()
	return w
}

// some returns up to three of n names.
func (w *world) some(prefix string, n int) []string {
	names := make([]string, w.random.IntN(4))
	for i := range names {
		names[i] = fmt.Sprint(prefix, w.random.IntN(n))
	}
	return names
}

func (w *world) restart() {
	w.view = filter.NewView("acme", w.parsed[w.rule])
	for ordinal, a := range w.rows {
		w.view = w.view.Apply([]filter.Change{{Ordinal: ordinal, Access: a}})
	}
}

func (w *world) ordinal() uint32 {
	return []uint32{0, 250, 65530, 1 << 20}[w.random.IntN(4)] + uint32(w.random.IntN(12))
}

func (w *world) access() filter.Access {
	a := filter.Access{Readers: w.readers(), Attributes: filter.Attributes{}}
	if w.random.IntN(2) == 0 {
		a.Attributes["level"] = int64(w.random.IntN(4))
	}
	if w.random.IntN(3) == 0 {
		a.Attributes["team"] = fmt.Sprint("g", w.random.IntN(4))
	}
	if w.random.IntN(3) == 0 {
		a.Attributes["secret"] = w.random.IntN(2) == 0
	}
	return a
}

func (w *world) readers() filter.Readers {
	if w.random.IntN(4) == 0 {
		return filter.Readers{Undeclared: true}
	}
	var list []filter.Reader
	for _, name := range w.some("u", 6) {
		list = append(list, filter.User(name))
	}
	for _, name := range w.some("g", 4) {
		list = append(list, filter.Group(name))
	}
	if w.random.IntN(8) == 0 {
		list = append(list, filter.Public)
	}
	return filter.Readers{List: list}
}

// step changes something, and returns whose Set is to be looked at.
func (w *world) step() filter.Principal {
	p := w.random.IntN(len(w.people))
	switch action := w.random.IntN(200); {
	case action == 0:
		w.restart()
	case action < 5:
		w.rule = w.random.IntN(len(stepRules))
		w.view = w.view.WithPolicies(w.parsed[w.rule])
	case action < 15: // a principal moves between groups; its older Sets are not its own any more
		w.people[p].Groups = w.some("g", 4)
	case action < 150:
		w.change(w.random.IntN(8) / 7 * w.random.IntN(40))
	} // else only look
	return w.people[p]
}

// change puts, deletes, grants or revokes 1 + more documents at once.
func (w *world) change(more int) {
	var changes []filter.Change
	for range 1 + more {
		c := filter.Change{Ordinal: w.ordinal()}
		present, exists := w.rows[c.Ordinal]
		switch kind := w.random.IntN(6); {
		case exists && kind == 0:
			c.Deleted = true
		case exists && kind < 3:
			c.Access = present
			c.Access.Readers = w.readers()
		case exists && kind == 3: // revoke all
			c.Access = present
			c.Access.Readers = filter.Readers{}
		default:
			c.Access = w.access()
		}
		delete(w.rows, c.Ordinal)
		if !c.Deleted {
			w.rows[c.Ordinal] = c.Access
		}
		changes = append(changes, c)
	}
	w.view = w.view.Apply(changes)
}

// readable is the naive decision: every document, one by one.
func (w *world) readable(p filter.Principal) filter.Set {
	var ordinals []uint32
	for ordinal, a := range w.rows {
		listed := a.Readers.Undeclared && len(a.Readers.List) == 0
		for _, r := range a.Readers.List {
			listed = listed || r == "public" || r == filter.Reader("user:"+p.Subject)
			for _, group := range p.Groups {
				listed = listed || r == filter.Reader("group:"+group)
			}
		}
		if listed && stepRules[w.rule].admits(p, a.Attributes) {
			ordinals = append(ordinals, ordinal)
		}
	}
	return filter.SetOf(ordinals...)
}

// show gives the searches under way the present View to look at, if they are
// done with the one before.
func (w *world) show() {
	picture := &picture{view: w.view, people: slices.Clone(w.people)}
	for _, p := range w.people {
		picture.wants = append(picture.wants, w.readable(p))
	}
	select {
	case w.shown <- picture:
	default:
	}
}

// watch resolves what is shown while the world goes on.
func (w *world) watch(t *testing.T, seed uint64) (looks int) {
	random := rand.New(rand.NewPCG(seed, 1))
	for seen := range w.shown {
		for range 50 {
			i := random.IntN(len(seen.people))
			got, err := seen.view.Resolve(seen.people[i])
			if err != nil || !got.Equal(seen.wants[i]) {
				t.Errorf("seed %d: a search under way sees %v (%v), want %v", seed, ordinals(got), err, ordinals(seen.wants[i]))
			}
			looks++
		}
	}
	return looks
}

// TestManySteps takes a View through documents, grants, revocations, deletes,
// moves between groups, policies and restarts while searches are under way,
// and compares it at every step with the naive decision.
func TestManySteps(t *testing.T) {
	steps := 100_000
	if testing.Short() {
		steps = 2_000
	}
	const seed = 11
	w := newWorld(t, seed)
	var watching sync.WaitGroup
	visible, looks := 0, 0
	watching.Go(func() { looks = w.watch(t, seed) })
	for i := range steps {
		p := w.step()
		if i%16 == 0 {
			w.show()
		}
		got, err := w.view.Resolve(p)
		require.NoError(t, err)
		if want := w.readable(p); !want.Equal(got) {
			t.Errorf("seed %d, step %d: %+v reads %v, want %v", seed, i, p, ordinals(got), ordinals(want))
			break
		}
		visible += got.Len()
	}
	close(w.shown)
	watching.Wait()
	t.Logf("%d steps, %d documents seen, %d looks of searches under way", steps, visible, looks)
	require.Greater(t, visible, steps)
	require.Positive(t, looks)
}
