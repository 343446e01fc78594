package retrieve

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/filter"
	"sluice/store"
)

const previewSchema = `
entity Group;
entity User in [Group] { tenant: String, subject: String, level?: Long };
entity Document { tenant: String, level?: Long };
action read appliesTo { principal: User, resource: Document };
`

func leveled(t *testing.T, policies string) *filter.Policies {
	t.Helper()
	p, err := filter.ParsePolicies(previewSchema, map[string]string{"a.cedar": policies})
	require.NoError(t, err)
	return p
}

// A preview says what then really happens, and nothing happens by itself.
func TestPreviewsComeTrue(t *testing.T) {
	const seed = 3
	random := rand.New(rand.NewPCG(seed, 0))
	h := newHouse(t)
	before := leveled(t, `permit (principal, action, resource);`)
	after := leveled(t, `permit (principal, action, resource);
		forbid (principal, action, resource) when { resource has level && resource.level > 1 };`)
	h.setPolicies(before)
	access := func() filter.Access {
		a := readable()
		for _, reader := range []filter.Reader{"user:a", "user:b", "group:g", "group:h", filter.Public} {
			if random.IntN(4) == 0 {
				a.Readers = filter.Readers{List: append(a.Readers.List, reader)}
			}
		}
		a.Attributes = filter.Attributes{"level": int64(random.IntN(4))}
		return a
	}
	for i := range maxDocuments {
		h.put(fmt.Sprint("d", i), access(), "harbour")
	}
	h.awaitAll()
	people := []Previewed{
		{"a", person("a", "g")}, {"b", person("b")}, {"c", person("c", "h", "g")}, {"d", person("d")},
	}
	lists := func() (all [][]string) {
		for _, p := range people {
			all = append(all, h.list(p.Principal, 50))
		}
		return all
	}
	for round := range 20 {
		var s Supposition
		rows := map[string]filter.Access{}
		for range random.IntN(12) {
			key, row := fmt.Sprint("d", random.IntN(maxDocuments+4)), access() // some do not exist
			rows[key] = row
			s.Changes = append(s.Changes, AccessChange{key, func(filter.Access) (filter.Access, error) { return row, nil }})
		}
		s.Changes = append(s.Changes, AccessChange{"d0", func(filter.Access) (filter.Access, error) { return filter.Access{}, errInjected }})
		policies := []*filter.Policies{before, after}[random.IntN(2)]
		s.Policies = policies
		now := lists()
		p, err := h.engine.Preview(t.Context(), tenant, library, s, people)
		require.NoError(t, err)
		require.Equal(t, now, lists(), "nothing changed")
		require.ErrorIs(t, p.Failed[len(s.Changes)-1], errInjected)

		for key, row := range rows {
			if _, err := h.store.Lookup(t.Context(), h.id, key); err == nil {
				h.setAccess(key, row)
			}
		}
		h.setPolicies(policies)
		h.awaitAll()
		told := map[string]Difference{}
		for _, d := range p.Differences {
			told[d.Name] = d
		}
		gained, lost := 0, 0
		for i, then := range lists() {
			d := told[people[i].Name]
			require.ElementsMatch(t, without(then, now[i]), d.Gained, "seed %d, round %d, %s gains", seed, round, people[i].Name)
			require.ElementsMatch(t, without(now[i], then), d.Lost, "seed %d, round %d, %s loses", seed, round, people[i].Name)
			require.Equal(t, []int{len(d.Gained), len(d.Lost)}, []int{d.Gains, d.Loses})
			gained, lost = gained+d.Gains, lost+d.Loses
		}
		require.Equal(t, []int{4, len(p.Differences), gained, lost}, []int{p.Compared, p.Changed, p.Gained, p.Lost})
	}
}

func without(list, others []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(others, s) })
}

// Without principals those whom readers name are compared; what is told is bounded.
func TestPreviewOfWhomReadersName(t *testing.T) {
	h := newHouse(t)
	h.setPolicies(leveled(t, `permit (principal, action, resource);`))
	var changes []AccessChange
	for i := range 30 {
		key := fmt.Sprint("d", i)
		h.put(key, readable("user:a", "group:g"), "harbour")
		var readers []filter.Reader
		for n := range 150 {
			readers = append(readers, filter.User(fmt.Sprint("new ", n)))
		}
		row := readable(append(readers, "group:g")...)
		changes = append(changes, AccessChange{key, func(filter.Access) (filter.Access, error) { return row, nil }})
	}
	h.awaitAll()
	p, err := h.engine.Preview(t.Context(), tenant, library, Supposition{Changes: changes}, nil)
	require.NoError(t, err)
	require.Equal(t, 153, p.Compared, "a, g, 150 new ones, and the public")
	require.Equal(t, []int{151, 150 * 30, 30}, []int{p.Changed, p.Gained, p.Lost})
	require.Len(t, p.Differences, maxDifferences)
	for _, d := range p.Differences {
		require.Len(t, append(d.Gained, d.Lost...), maxDocuments)
	}

	none := leveled(t, `permit (principal, action, resource) when { principal has level };`)
	p, err = h.engine.Preview(t.Context(), tenant, library, Supposition{Policies: none}, nil)
	require.NoError(t, err)
	require.Equal(t, []int{3, 2, 0, 60}, []int{p.Compared, p.Changed, p.Gained, p.Lost})
	require.Equal(t, []string{"group:g", "user:a"}, []string{p.Differences[0].Name, p.Differences[1].Name})

	required, err := filter.ParsePolicies(`entity User { level: Long }; entity Document; action read appliesTo { principal: User, resource: Document };`,
		map[string]string{"a.cedar": `permit (principal, action, resource);`})
	require.NoError(t, err)
	p, err = h.engine.Preview(t.Context(), tenant, library, Supposition{Policies: required}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"group:g", "public", "user:a"}, p.Unfit)
	require.Equal(t, 60, p.Lost)

	_, err = h.engine.Preview(t.Context(), "globex", library, Supposition{}, nil)
	require.ErrorIs(t, err, store.ErrNotFound)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = h.engine.Preview(ctx, tenant, library, Supposition{}, nil)
	require.ErrorIs(t, err, context.Canceled)
}

// endsAt is a context that ends when it is asked for its error so many times.
type endsAt struct {
	context.Context
	left atomic.Int64
}

func (e *endsAt) Err() error {
	if e.left.Add(-1) >= 0 {
		return nil
	}
	return context.Canceled
}

// A preview does not wait for all that is to be decided about one principal.
func TestPreviewEndsWithinAPrincipal(t *testing.T) {
	h := newHouse(t)
	h.setPolicies(leveled(t, `permit (principal, action, resource);`))
	for i := range 30 {
		a := readable()
		a.Attributes = filter.Attributes{"level": int64(i)}
		h.put(fmt.Sprint("d", i), a, "harbour")
	}
	h.awaitAll()
	ctx := &endsAt{Context: t.Context()}
	ctx.left.Store(20) // of the 60 decisions
	none := leveled(t, `permit (principal, action, resource) when { principal has level };`)
	_, err := h.engine.Preview(ctx, tenant, library, Supposition{Policies: none}, []Previewed{{"a", person("a")}})
	require.ErrorIs(t, err, context.Canceled)
}

// An explanation decides as a listing does.
func TestExplanationsAgreeWithWhatIsListed(t *testing.T) {
	h := newHouse(t)
	h.setPolicies(leveled(t, `permit (principal, action, resource) when { resource has level };
forbid (principal, action, resource) when { resource has level && resource.level * 9223372036854775807 > 5 };
forbid (principal, action, resource) when { resource has level && resource.level == -1 };`))
	rows := map[string]filter.Access{}
	for name, level := range map[string]any{"permitted": int64(0), "forbidden": int64(-1), "failing": int64(3), "unasked": nil} {
		for _, readers := range [][]filter.Reader{nil, {"user:a", "group:g"}, {"user:b"}} {
			a := readable(readers...)
			if level != nil {
				a.Attributes = filter.Attributes{"level": level}
			}
			rows[fmt.Sprint(name, " ", readers)] = a
		}
	}
	for key, a := range rows {
		h.put(key, a, "harbour")
	}
	h.awaitAll()
	p := person("a", "g")
	listed := h.list(p, 50)
	require.Len(t, listed, 2)
	for key := range rows {
		record, why, err := h.engine.Explain(t.Context(), p, library, key)
		require.NoError(t, err)
		require.Equal(t, key, record.Key)
		require.Equal(t, slices.Contains(listed, key), why.Admitted(), key)
	}
	explain := func(key string) filter.Explanation {
		_, why, err := h.engine.Explain(t.Context(), p, library, key)
		require.NoError(t, err)
		return why
	}
	require.Equal(t, filter.Explanation{
		Readers: []filter.Reader{"group:g", "user:a"}, Permitted: true, Decisive: []string{"a.cedar:1:1"},
	}, explain("permitted [user:a group:g]"))
	require.Equal(t, filter.Explanation{Undeclared: true, Forbidden: true, Decisive: []string{"a.cedar:3:1"}}, explain("forbidden []"))
	require.Equal(t, filter.Explanation{}, explain("unasked [user:b]"))
	failing := explain("failing []")
	require.False(t, failing.Permitted)
	require.Contains(t, failing.Errors[0], "a.cedar:2:1: forbid failed")

	count, _ := h.serving.PolicyFaults()
	again := explain("failing []")
	require.Equal(t, failing, again)
	same, _ := h.serving.PolicyFaults()
	require.Equal(t, count, same, "an explanation is no decision")
	_, _, err := h.engine.Explain(t.Context(), p, library, "missing")
	require.True(t, errors.Is(err, store.ErrNotFound))
}

// A preview compares so many principals that it ends: fewer where there are many
// access classes and policies, and at least one. It says how many it left out.
func TestPreviewsAreBounded(t *testing.T) {
	h := newHouse(t)
	h.write("a", readable("user:p0"), "harbour")
	people := make([]Previewed, maxPreviewed+3)
	for i := range people {
		name := fmt.Sprint("p", i)
		people[i] = Previewed{name, person(name)}
	}
	nobodys := Supposition{Changes: []AccessChange{{"a", func(filter.Access) (filter.Access, error) { return readable("user:nobody"), nil }}}}
	p, err := h.engine.Preview(t.Context(), tenant, library, nobodys, people)
	require.NoError(t, err)
	require.Equal(t, [4]int{maxPreviewed, 3, 1, 1}, [4]int{p.Compared, p.LeftOut, p.Changed, p.Lost})

	permits := func(n int) *filter.Policies {
		return leveled(t, strings.Repeat("permit (principal, action, resource);\n", n))
	}
	view := filter.NewView(tenant, permits(1))
	changes := make([]filter.Change, 7000)
	for i := range changes {
		a := readable()
		a.Attributes = filter.Attributes{"level": int64(i)}
		changes[i] = filter.Change{Ordinal: uint32(i), Access: a}
	}
	view = view.Apply(changes)
	require.Equal(t, int(maxEvaluations)/(1+2*7000), previewable(view, view))
	require.Equal(t, int(maxEvaluations)/(1+7000*(1+20)), previewable(view, view.WithPolicies(permits(20))))
	many := view.WithPolicies(permits(4000))
	require.Equal(t, 1, previewable(many, many))
}
