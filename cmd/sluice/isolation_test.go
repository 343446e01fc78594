package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sluice/client"
)

// holding is one document as acknowledged. Its counter is odd while a change is
// under way.
type holding struct {
	changes int
	exists  bool
	version uint32
	readers []string
}

// register is the holdings of one tenant, by key.
type register struct {
	mu       sync.Mutex
	holdings map[string]holding
}

func (r *register) change(key string, to func(*holding)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.holdings[key]
	to(&h)
	h.changes++
	r.holdings[key] = h
}

func (r *register) copy() map[string]holding {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[string]holding, len(r.holdings))
	for key, h := range r.holdings {
		out[key] = h
	}
	return out
}

// steward changes the documents of one tenant, one after the other.
type steward struct {
	t        *testing.T
	tenant   string
	client   *client.Client
	register *register
	random   *rand.Rand
	people   []string
}

func (s *steward) readers() []string {
	list := []string{}
	for _, name := range s.people {
		if s.random.IntN(2) == 0 {
			list = append(list, "user:"+name)
		}
	}
	return list
}

func (s *steward) step(ctx context.Context) error {
	key := fmt.Sprint("plan/", s.random.IntN(20))
	before, readers := s.register.copy()[key], s.readers()
	s.register.change(key, func(*holding) {}) // under way
	switch action := s.random.IntN(8); {
	case before.exists && action == 0:
		if err := s.client.Delete(ctx, "plans", key); err != nil {
			return err
		}
		s.register.change(key, func(h *holding) { *h = holding{changes: h.changes} })
	case before.exists && action < 6:
		if _, err := s.client.SetAccess(ctx, "plans", key, client.AccessPatch{Readers: jsonOf(readers)}); err != nil {
			return err
		}
		s.register.change(key, func(h *holding) { h.readers = readers })
	default:
		text := fmt.Sprintf("Harbour %s of %s, entry %d.", key, s.tenant, s.random.Uint32())
		result, err := s.client.Write(ctx, "plans", client.Document{Key: key, Format: "text", Text: text, Readers: &readers})
		if err != nil {
			return err
		}
		s.register.change(key, func(h *holding) { h.exists, h.version, h.readers = true, result.Version, readers })
	}
	return nil
}

// witness is one principal who asks and compares.
type witness struct {
	t        *testing.T
	name     string
	tenant   string
	client   *client.Client
	register *register
	asked    int
}

func (w *witness) ask(ctx context.Context) error {
	before := w.register.copy()
	strategy := []string{"sparse", "sparse", "sparse", "hybrid", "dense"}[w.asked%5]
	r, err := w.client.Search(ctx, "plans", client.SearchRequest{Query: "harbour", K: 100, Strategy: strategy})
	if err != nil {
		return err
	}
	after, seen := w.register.copy(), map[string]uint32{}
	for _, result := range r.Results {
		seen[result.Document] = result.Version
		assert.Contains(w.t, result.Text, " of "+w.tenant+",", "another tenant's text")
	}
	w.compare(before, after, seen, r.Counts.Visible)

	before = w.register.copy()
	page, err := w.client.List(ctx, "plans", "", 1000)
	if err != nil {
		return err
	}
	after, seen = w.register.copy(), map[string]uint32{}
	for _, d := range page.Documents {
		seen[d.Key] = d.Version
	}
	w.compare(before, after, seen, len(page.Documents))
	w.asked++
	return nil
}

// compare wants exactly the right documents among those that did not change
// while the answer was on its way.
func (w *witness) compare(before, after map[string]holding, seen map[string]uint32, visible int) {
	least, unsettled := 0, 0
	for key, now := range after {
		h := before[key]
		if now.changes != h.changes || h.changes%2 != 0 {
			unsettled++
			continue
		}
		version, found := seen[key]
		may := h.exists && slices.Contains(h.readers, "user:"+w.name)
		assert.Equal(w.t, may, found, "%s and %s", w.name, key)
		if may {
			least++
			assert.Equal(w.t, h.version, version, "%s and %s", w.name, key)
		}
	}
	assert.GreaterOrEqual(w.t, visible, least)
	assert.LessOrEqual(w.t, visible, least+unsettled)
}

// Two tenants with the same collection and the same keys, whose documents are
// granted, revoked, replaced and deleted while their people search and list:
// every answer that starts after an acknowledgement obeys it.
func TestAnswersObeyWhatIsAcknowledged(t *testing.T) {
	t.Parallel()
	const seed = 5
	t.Logf("seed %d", seed)
	changes := 600
	if testing.Short() {
		changes = 60
	}
	people := map[string]person{}
	names := map[string][]string{"acme": {"ann", "bob"}, "globex": {"eve", "fay"}}
	tenants := slices.Sorted(maps.Keys(names))
	for _, tenant := range tenants {
		people["admin of "+tenant] = person{tenant: tenant, roles: []string{"admin"}}
		for _, name := range names[tenant] {
			people[name] = person{tenant: tenant, roles: []string{"read"}}
		}
	}
	d := newHome(t, people).serve()
	ctx, done := context.WithCancel(t.Context())
	defer done()
	var changing, asking sync.WaitGroup
	var witnesses []*witness
	for _, tenant := range tenants {
		members, admin := names[tenant], "admin of "+tenant
		d.collection(admin, "plans")
		r := &register{holdings: map[string]holding{}}
		s := &steward{t, tenant, d.as(admin), r, rand.New(rand.NewPCG(seed, uint64(len(witnesses)))), members}
		changing.Go(func() {
			for i := 0; i < changes && !t.Failed(); i++ {
				assert.NoError(t, s.step(t.Context()))
			}
		})
		for _, name := range members {
			w := &witness{t: t, name: name, tenant: tenant, client: d.as(name), register: r}
			witnesses = append(witnesses, w)
			asking.Go(func() {
				for ctx.Err() == nil && !t.Failed() {
					assert.NoError(t, w.ask(t.Context()))
				}
			})
		}
	}
	changing.Wait()
	done()
	asking.Wait()
	require.False(t, t.Failed(), "seed %d", seed)
	for _, w := range witnesses {
		require.Positive(t, w.asked)
		t.Logf("%s asked %d times", w.name, w.asked)
	}
	d.stop()
}

// What another tenant has is as missing as what nobody has.
func TestOtherTenantsAreAsGoodAsAbsent(t *testing.T) {
	t.Parallel()
	d := newHome(t, map[string]person{
		"ann": {tenant: "acme", roles: []string{"admin"}},
		"eve": {tenant: "globex", roles: []string{"admin"}},
	}).serve()
	d.collection("ann", "plans")
	ann, eve := d.as("ann"), d.as("eve")
	_, err := ann.Write(t.Context(), "plans", note("secret", "The harbour is ours.", "public"))
	require.NoError(t, err)

	answers := func(c *client.Client, collection, key string) (all []string) {
		_, err := c.Collection(t.Context(), collection)
		all = append(all, fmt.Sprint(err))
		_, err = c.Search(t.Context(), collection, client.SearchRequest{Query: "harbour"})
		all = append(all, fmt.Sprint(err))
		_, err = c.List(t.Context(), collection, "", 10)
		all = append(all, fmt.Sprint(err))
		_, err = c.Document(t.Context(), collection, key)
		all = append(all, fmt.Sprint(err))
		_, err = c.SetAccess(t.Context(), collection, key, client.AccessPatch{Readers: jsonOf([]string{"public"})})
		all = append(all, fmt.Sprint(err))
		all = append(all, fmt.Sprint(c.Delete(t.Context(), collection, key)))
		_, err = c.Write(t.Context(), collection, note(key, "theirs"))
		return append(all, fmt.Sprint(err))
	}
	foreign, missing := answers(eve, "plans", "secret"), answers(eve, "nothing", "secret")
	require.Equal(t, missing, foreign)
	for _, text := range foreign {
		require.Contains(t, text, "there is no such collection or document")
	}

	d.collection("eve", "plans")
	require.Empty(t, found(t, eve, "plans", "harbour"))
	_, err = eve.Document(t.Context(), "plans", "secret")
	require.Equal(t, 404, refusal(t, err))
	require.NoError(t, ann.Delete(t.Context(), "plans", "secret"))
	require.False(t, strings.Contains(fmt.Sprint(foreign), "acme"))
	d.stop()
}
