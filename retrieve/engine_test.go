package retrieve

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/chunk"
	"sluice/filter"
	"sluice/store"
	"sluice/trace"
)

func TestEveryVisiblePassageIsFoundAtEverySelectivity(t *testing.T) {
	h := newHouse(t)
	const documents = 400
	sizes := map[string]int{"none": 0, "one": 1, "few": 7, "tenth": 40, "half": 200, "all": documents}
	random := rand.New(rand.NewPCG(1, 1))
	members := map[string]map[int]bool{}
	for group, n := range sizes {
		members[group] = map[int]bool{}
		for _, i := range random.Perm(documents)[:n] {
			members[group][i] = true
		}
	}
	passages := map[string]int{}
	for i := range documents {
		readers := []filter.Reader{"user:nobody"}
		text := []string{fmt.Sprintf("harbour %d north", i)}
		if i%3 == 0 {
			text = append(text, fmt.Sprintf("harbour %d south", i))
		}
		for group := range sizes {
			if members[group][i] {
				readers = append(readers, filter.Group(group))
				passages[group] += len(text)
			}
		}
		h.put(fmt.Sprint("doc", i), readable(readers...), text...)
	}
	h.awaitAll()
	for group, n := range sizes {
		for _, strategy := range strategies {
			for _, k := range []int{1, 5, 50, 100} {
				r := h.search(person("reader", group), strategy, "harbour 3", k)
				require.Len(t, r.Results, min(k, passages[group]), "%s, %s, k = %d", group, strategy, k)
				require.Equal(t, n, r.Visible)
				for _, result := range r.Results {
					var i int
					_, err := fmt.Sscanf(result.Key, "doc%d", &i)
					require.NoError(t, err)
					require.True(t, members[group][i], "%s is not for %s", result.Key, group)
				}
			}
		}
	}
}

// What a principal may not see changes no byte of what it gets.
func TestForeignDocumentsChangeNothing(t *testing.T) {
	const seed = 7
	h := newHouse(t)
	random := rand.New(rand.NewPCG(seed, 1))
	mine, reader := readable("group:mine"), person("me", "mine")
	words := strings.Fields("harbour crane tide ferry ledger quay north south buoy pilot anchor berth")
	text := func() string {
		var out []string
		for range 3 + random.IntN(12) {
			out = append(out, words[random.IntN(len(words))])
		}
		return strings.Join(out, " ")
	}
	for i := range 40 {
		h.put(fmt.Sprint("mine", i), mine, text(), text())
	}
	h.awaitAll()
	ask := func() string {
		var all strings.Builder
		for _, strategy := range append([]string{"hybrid rrf"}, strategies...) {
			for _, query := range []string{"harbour crane", "tide at the northern quay", "buoy"} {
				all.WriteString(bytesOf(t, h.search(reader, strategy, query, 20)) + "\n")
			}
		}
		return all.String() + strings.Join(h.list(reader, 7), " ")
	}
	before := ask()
	foreign := []filter.Access{readable("group:others"), readable("user:other"), {}, readable("user:mine"), readable("group:min")}
	for step := range 120 {
		key, access := fmt.Sprint("foreign", random.IntN(30)), foreign[random.IntN(len(foreign))]
		_, err := h.store.Lookup(t.Context(), h.id, key)
		switch action := random.IntN(4); {
		case err == nil && action == 0:
			h.remove(key)
		case err == nil && action == 1:
			h.setAccess(key, access)
		default:
			h.put(key, access, text(), text()+" harbour harbour")
		}
		if step%10 == 9 {
			h.awaitAll()
			require.Equal(t, before, ask(), "seed %d, step %d", seed, step)
		}
	}
	h.reopen()
	require.Equal(t, before, ask(), "after a restart")
	require.Contains(t, before, `"Key":"mine`)
}

func TestTiesGoToTheEarlierRow(t *testing.T) {
	h := newHouse(t)
	for _, key := range []string{"c", "a", "b", "d"} {
		r := version(key, readable(), "harbour and tide")
		r.Title = "" // or the texts would differ
		_, err := h.store.Commit(t.Context(), h.id, r)
		require.NoError(t, err)
	}
	h.awaitAll()
	for _, strategy := range strategies {
		r := h.search(person("me"), strategy, "harbour", 3)
		require.Equal(t, []string{"c", "a", "b"}, keysOf(r), strategy)
	}
	h.reopen()
	require.Equal(t, []string{"c", "a", "b"}, keysOf(h.search(person("me"), Hybrid, "harbour", 3)))
}

// A search records where its time went, also within the legs.
func TestStages(t *testing.T) {
	h := newHouse(t)
	h.write("a", readable(), "harbour and tide")
	for strategy, want := range map[string][]string{
		HybridLate: {"resolve", "dense", "lexical", "legs", "fuse", "recheck", "rerank", "load"},
		Dense:      {"resolve", "dense", "legs", "fuse", "recheck", "load"},
		Sparse:     {"resolve", "lexical", "legs", "fuse", "recheck", "load"},
	} {
		var r trace.Recorder
		_, err := h.engine.Search(trace.With(t.Context(), &r), h.request(person("me"), strategy, "harbour", 3))
		require.NoError(t, err)
		took, names := map[string]time.Duration{}, []string{}
		for _, s := range r.Spans() {
			names, took[s.Name] = append(names, s.Name), s.Took()
		}
		if i := slices.Index(names, "lexical"); i >= 0 && strategy == HybridLate && names[i+1] == "dense" {
			names[i], names[i+1] = "dense", "lexical" // they run side by side
		}
		require.Equal(t, want, names, strategy)
		require.LessOrEqual(t, max(took["dense"], took["lexical"]), took["legs"], strategy)
	}
}

func TestCacheLookups(t *testing.T) {
	h := newHouse(t)
	h.write("a", readable(), "harbour and tide")
	before, _ := h.engine.SetLookups()
	for range 3 {
		h.search(person("somebody else"), Dense, "harbour", 3)
	}
	hits, misses := h.engine.SetLookups()
	require.Equal(t, uint64(2), hits-before)
	require.Positive(t, misses)
}

func TestWithoutAQueryVector(t *testing.T) {
	h := newHouse(t)
	h.write("a", readable(), "harbour and tide")
	h.embedder.failWith(errInjected)

	r := h.search(person("me"), Hybrid, "harbour", 5)
	require.Equal(t, []string{"dense_unavailable"}, r.Degraded)
	require.Equal(t, []string{"a"}, keysOf(r))
	require.NotContains(t, r.Results[0].Legs, "dense")

	_, err := h.engine.Search(t.Context(), h.request(person("me"), Dense, "harbour", 5))
	require.ErrorIs(t, err, errInjected)

	r = h.search(person("me"), Sparse, "harbour", 5)
	require.Empty(t, r.Degraded)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = h.engine.Search(ended, h.request(person("me"), Hybrid, "harbour", 5))
	require.ErrorIs(t, err, context.Canceled, "a search that was given up is not a degraded one")
}

// What happens between the snapshot and the recheck, or between the recheck and
// the loading of text, decides.
func TestRecheckObeysTheLatestState(t *testing.T) {
	yesterday := time.Now().Add(-24 * time.Hour)
	for what, change := range map[string]func(*house){
		"revoked":           func(h *house) { h.setAccess("b", readable("user:other")) },
		"deleted":           func(h *house) { h.remove("b") },
		"replaced":          func(h *house) { h.put("b", readable("user:me"), "another harbour text") },
		"deleted and again": func(h *house) { h.remove("b"); h.put("b", readable("user:me"), "harbour b") },
		"out of scope": func(h *house) {
			access := readable("user:me")
			access.Applicability.ValidUntil = yesterday
			h.setAccess("b", access)
		},
		"another region": func(h *house) {
			access := readable("user:me")
			access.Applicability.Regions = []string{"EU"}
			h.setAccess("b", access)
		},
	} {
		for _, strategy := range strategies {
			t.Run(what+", "+strategy, func(t *testing.T) {
				h := newHouse(t)
				for _, key := range []string{"a", "b", "c"} {
					h.write(key, readable("user:me"), "harbour "+key, "harbour again "+key)
				}
				require.Len(t, h.search(person("me"), strategy, "harbour", 10).Results, 6)
				m := &meddler{Store: h.store}
				h.engine = NewEngine(m, h.serving, h.embedder)
				m.beforeRecords = func() { change(h) }
				b, err := h.store.Lookup(t.Context(), h.id, "b")
				require.NoError(t, err)

				r := h.search(person("me"), strategy, "harbour", 10)

				require.Nil(t, m.beforeRecords)
				if what == "replaced" && strategy == Late {
					return // b's new text is as good an answer, if the index has it by now
				}
				require.Len(t, r.Results, 4)
				require.NotContains(t, keysOf(r), "b")
				require.NotContains(t, m.read, b.Ordinal, "the recheck comes before the text")
			})
		}
	}
}

func TestAssemblyObeysTheLatestState(t *testing.T) {
	for what, change := range map[string]func(*house){
		"revoked":  func(h *house) { h.setAccess("a", readable("user:other")) },
		"deleted":  func(h *house) { h.remove("a") },
		"replaced": func(h *house) { h.put("a", readable("user:me"), "secret of the harbour") },
	} {
		t.Run(what, func(t *testing.T) {
			h := newHouse(t)
			h.write("a", readable("user:me"), "harbour a")
			h.write("b", readable("user:me"), "harbour b")
			m := &meddler{Store: h.store, beforeContent: func() { change(h) }}
			h.engine = NewEngine(m, h.serving, h.embedder)

			require.Equal(t, []string{"b"}, keysOf(h.search(person("me"), Sparse, "harbour", 10)))
			require.Nil(t, m.beforeContent)
		})
	}
}

func TestPoliciesInForceAtTheRecheckDecide(t *testing.T) {
	nothing, err := filter.ParsePolicies("", nil)
	require.NoError(t, err)
	for _, when := range []string{"before the recheck", "before the text is read"} {
		h := newHouse(t)
		h.write("a", readable(), "harbour a")
		m := &meddler{Store: h.store}
		at := &m.beforeRecords
		if when != "before the recheck" {
			at = &m.beforeContent
		}
		*at = func() { h.setPolicies(nothing) }
		h.engine = NewEngine(m, h.serving, h.embedder)

		require.Empty(t, h.search(person("me"), Sparse, "harbour", 10).Results, when)
		require.Nil(t, *at)
	}
}

func TestScopeIsCountedApart(t *testing.T) {
	h := newHouse(t)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	h.engine.now = func() time.Time { return now }
	dated := func(from, until time.Time, regions ...string) filter.Access {
		access := readable("user:me")
		access.Applicability = filter.Applicability{ValidFrom: from, ValidUntil: until, Regions: regions}
		return access
	}
	h.write("always", dated(time.Time{}, time.Time{}), "harbour")
	h.write("past", dated(time.Time{}, now), "harbour")
	h.write("future", dated(now.Add(time.Second), time.Time{}), "harbour")
	h.write("now", dated(now, now.Add(time.Hour)), "harbour")
	h.write("eu", dated(time.Time{}, time.Time{}, "EU"), "harbour")
	h.write("foreign", readable("user:other"), "harbour")
	for _, c := range []struct {
		scope filter.Scope
		want  []string
		out   int
	}{
		{filter.Scope{}, []string{"always", "now"}, 3},
		{filter.Scope{Region: "EU"}, []string{"always", "now", "eu"}, 2},
		{filter.Scope{AnyRegion: true, AnyTime: true}, []string{"always", "past", "future", "now", "eu"}, 0},
		{filter.Scope{AsOf: now.Add(time.Hour)}, []string{"always", "future"}, 3},
		{filter.Scope{AsOf: now.Add(-time.Second)}, []string{"always", "past"}, 3},
	} {
		for _, strategy := range strategies {
			q := h.request(person("me"), strategy, "harbour", 10)
			q.Scope = c.scope
			r, err := h.engine.Search(t.Context(), q)
			require.NoError(t, err)
			require.ElementsMatch(t, c.want, keysOf(r), "%+v", c.scope)
			require.Equal(t, 5, r.Visible)
			require.Equal(t, c.out, r.OutOfScope)
		}
	}
}

func TestOverlappingRangesBecomeOneResult(t *testing.T) {
	h := newHouse(t)
	v := version("a", readable(), "harbour and tide and crane", "buoy")
	v.Chunks[1] = chunk.Chunk{Start: 8, End: len("harbour and tide and crane")}
	copy(v.Vectors[dimensions:], vectorOf(chunk.EmbedText(v.Text, v.Chunks[1])))
	_, err := h.store.Commit(t.Context(), h.id, v)
	require.NoError(t, err)
	h.put("b", readable(), "tide of another day altogether")
	h.awaitAll()

	r := h.search(person("me"), Sparse, "tide", 2)
	require.ElementsMatch(t, []string{"a", "b"}, keysOf(r), "the second place is not lost to a duplicate")
}

func TestResultsAreRangesOfTheText(t *testing.T) {
	h := newHouse(t)
	h.write("a", readable(), "the first passage", "harbour in the second passage")
	for _, strategy := range strategies {
		r := h.search(person("me"), strategy, "harbour second", 1)
		content, err := h.engine.Document(t.Context(), person("me"), library, "a")
		require.NoError(t, err)
		require.Equal(t, "harbour in the second passage", r.Results[0].Text)
		require.Equal(t, r.Results[0].Text, content.Text[r.Results[0].Start:r.Results[0].End])
		require.Equal(t, uint32(1), r.Results[0].Version)
		require.NotEmpty(t, r.Results[0].Legs)
		require.NotEmpty(t, r.PlanHash)
		if strategy != Auto {
			require.Equal(t, strategy, r.Strategy)
		}
	}
}

func TestRefusedSearches(t *testing.T) {
	h := newHouse(t)
	for what, change := range map[string]func(*Request){
		"empty query": func(r *Request) { r.Query = "" },
		"blank query": func(r *Request) { r.Query = " \n\t" },
		"long query":  func(r *Request) { r.Query = strings.Repeat("a", MaxQueryBytes+1) },
		"strategy":    func(r *Request) { r.Strategy = "magic" },
		"k":           func(r *Request) { r.K = -1 },
		"large k":     func(r *Request) { r.K = MaxK + 1 },
	} {
		r := h.request(person("me"), Hybrid, "harbour", 5)
		change(&r)
		_, err := h.engine.Search(t.Context(), r)
		require.ErrorIs(t, err, store.ErrInvalid, what)
	}
	for what, change := range map[string]func(*Request){
		"unknown collection": func(r *Request) { r.Collection = "nowhere" },
		"unknown tenant":     func(r *Request) { r.Principal.Tenant = "other" },
		"no tenant":          func(r *Request) { r.Principal.Tenant = "" },
	} {
		r := h.request(person("me"), Hybrid, "harbour", 5)
		change(&r)
		_, err := h.engine.Search(t.Context(), r)
		require.ErrorIs(t, err, store.ErrNotFound, what)
	}
}

func TestAnUnknownSubjectSeesNothing(t *testing.T) {
	h := newHouse(t)
	h.write("a", readable(filter.Public), "harbour")
	h.write("b", readable(), "harbour")
	for _, strategy := range strategies {
		require.Equal(t, []string{"a", "b"}, keysOf(h.search(person("me"), strategy, "harbour", 5)))
		r := h.search(person(""), strategy, "harbour", 5)
		require.Empty(t, r.Results)
		require.Zero(t, r.Visible)
	}
	require.Empty(t, h.list(person(""), 5))
}

func TestTenantsWithTheSameNamesNeverMix(t *testing.T) {
	h := newHouse(t)
	h.write("plan", readable(filter.Public), "harbour of acme")
	other := h.collection("globex", library)
	r, err := h.store.Commit(t.Context(), other, version("plan", readable(filter.Public), "harbour of globex"))
	require.NoError(t, err)
	h.await(r.Epoch)
	for _, name := range []string{"acme", "globex"} {
		p := filter.Principal{Tenant: name, Subject: "me"}
		for _, strategy := range strategies {
			r := h.search(p, strategy, "harbour acme globex", 10)
			require.Len(t, r.Results, 1)
			require.Equal(t, "harbour of "+name, r.Results[0].Text)
			require.Equal(t, 1, r.Visible)
		}
		content, err := h.engine.Document(t.Context(), p, library, "plan")
		require.NoError(t, err)
		require.Equal(t, "harbour of "+name, content.Text)
		require.Equal(t, []string{"plan"}, h.list(p, 10))
	}
}
