package retrieve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/chunk"
	"sluice/filter"
	"sluice/gpu"
	"sluice/index/late"
	"sluice/model"
	"sluice/store"
)

// coded is version with token codes.
func coded(key string, access filter.Access, passages ...string) store.Version {
	v := version(key, access, passages...)
	coder := late.NewCoder(late.Kind{Dimensions: dimensions, Bits: 1})
	for _, c := range v.Chunks {
		v.Codes = append(v.Codes, coder.Encode(tokensOf(chunk.EmbedText(v.Text, c))))
	}
	return v
}

func (h *house) commit(v store.Version) {
	h.t.Helper()
	_, err := h.store.Commit(h.t.Context(), h.id, v)
	require.NoError(h.t, err)
}

// words for passages: a word's direction is its own.
var vocabulary = strings.Fields("harbour crane tide ferry ledger quay north south buoy pilot anchor berth rope mast keel hull dock")

func someWords(random *rand.Rand, n int) string {
	var out []string
	for range n {
		out = append(out, vocabulary[random.IntN(len(vocabulary))])
	}
	return strings.Join(out, " ")
}

// exactly is late interaction on the token vectors themselves.
func exactly(query, passage string) float64 {
	sum, words := 0.0, strings.Fields(query)
	for _, q := range words {
		best := -1.0
		for _, p := range strings.Fields(passage) {
			dot := 0.0
			for i, x := range vectorOf(q) {
				dot += float64(x) * float64(vectorOf(p)[i])
			}
			best = max(best, dot)
		}
		sum += best
	}
	return sum / float64(len(words))
}

func TestLateInteractionRanksByTheBestMatches(t *testing.T) {
	h := newHouse(t)
	random := rand.New(rand.NewPCG(3, 1))
	for i := range 25 {
		h.commit(coded(fmt.Sprint("d", i), readable(), someWords(random, 8)))
	}
	h.awaitAll()
	const query = "harbour pilot rope"

	r := h.search(person("me"), HybridLate, query, 25)

	require.Empty(t, r.Degraded)
	require.Len(t, r.Results, 25)
	late, lexical := make([]float64, 25), make([]float64, 25)
	for i, result := range r.Results {
		late[i], lexical[i] = result.Legs["late"].Score, result.Legs["lexical"].Score
		// A code of 64 dimensions is about 1/8 off a match, the mean of three less.
		require.InDelta(t, exactly(query, result.Text), late[i], 0.25, result.Text)
		better := func(r Result) bool { return r.Legs["late"].Score > late[i] }
		require.GreaterOrEqual(t, result.Legs["late"].Rank, 1+count(r.Results, better))
	}
	for i, result := range r.Results {
		require.InDelta(t, standardised(late, i)+0.4*standardised(lexical, i), result.Score, 1e-9)
	}
	require.True(t, slices.IsSortedFunc(r.Results, func(a, b Result) int { return cmp.Compare(b.Score, a.Score) }))
	all := strings.Fields(query)
	has := func(text string) (n int) {
		for _, word := range all {
			if slices.Contains(strings.Fields(text), word) {
				n++
			}
		}
		return n
	}
	require.Greater(t, has(r.Results[0].Text), has(r.Results[24].Text))
}

func count(results []Result, is func(Result) bool) (n int) {
	for _, r := range results {
		if is(r) {
			n++
		}
	}
	return n
}

// standardised is how many standard deviations xs[i] is above the mean.
func standardised(xs []float64, i int) float64 {
	mean, squares := 0.0, 0.0
	for _, x := range xs {
		mean += x / float64(len(xs))
	}
	for _, x := range xs {
		squares += (x - mean) * (x - mean)
	}
	return (xs[i] - mean) / math.Sqrt(squares/float64(len(xs)))
}

// Codes from the store, from the model and from the cache give the same answer, to the bit.
func TestPassagesWithoutCodesAreEncodedOnce(t *testing.T) {
	answers := map[string]bool{}
	for what, c := range map[string]struct {
		make  func(string, filter.Access, ...string) store.Version
		first int
	}{"stored": {coded, 1}, "none": {version, 1 + 6}} {
		h := newHouse(t)
		random := rand.New(rand.NewPCG(4, 1))
		for i := range 3 {
			h.commit(c.make(fmt.Sprint("d", i), readable(), someWords(random, 6), someWords(random, 6)))
		}
		h.awaitAll()
		h.embedder.taken()

		answers[bytesOf(t, h.search(person("me"), HybridLate, "harbour", 10))] = true
		require.Len(t, h.embedder.taken(), c.first, what)
		answers[bytesOf(t, h.search(person("me"), HybridLate, "harbour", 10))] = true
		require.Equal(t, []string{"harbour"}, h.embedder.taken(), "only the query is embedded again")
	}
	require.Len(t, answers, 1)
}

// The model's prompts go before the query and before passages that are encoded now.
func TestPrompts(t *testing.T) {
	h := newHouse(t)
	h.commit(version("d", readable(), "tide"))
	h.awaitAll()
	h.embedder.taken()
	h.embedder.prompts = model.Prompts{ByName: map[string]string{"query": "q: ", "document": "d: "}}
	h.search(person("me"), HybridLate, "harbour", 10)
	require.Equal(t, []string{"q: harbour", "d: tide"}, h.embedder.taken())
}

// Codes of another model, or of a format that is not known, are not used.
func TestForeignCodesAreNotUsed(t *testing.T) {
	for what, change := range map[string]func(*store.Version){
		"model":  func(v *store.Version) { v.Model = "bag/0" },
		"format": func(v *store.Version) { v.Codes[0] = []byte("9 another format") },
	} {
		h := newHouse(t)
		v := coded("a", readable(), "harbour and tide")
		change(&v)
		h.commit(v)
		h.awaitAll()

		r := h.search(person("me"), HybridLate, "tide", 5)
		require.InDelta(t, 1, r.Results[0].Legs["late"].Score, 0.25, what)
		require.Equal(t, []string{"tide", "harbour and tide"}, h.embedder.taken(), what)
	}
}

func TestLateInteractionDegrades(t *testing.T) {
	h := newHouse(t)
	h.commit(version("a", readable(), "harbour and tide"))
	h.commit(version("b", readable(), "harbour harbour"))
	h.awaitAll()
	for what, c := range map[string]struct {
		fails    func(gpu.Request) error
		degraded []string
	}{
		"query":    {func(gpu.Request) error { return errInjected }, []string{"dense_unavailable", "late_unavailable"}},
		"passages": {func(r gpu.Request) error { return map[bool]error{true: errInjected}[len(r.Texts) > 1] }, []string{"late_unavailable"}},
	} {
		h.embedder.fails = c.fails
		late := h.search(person("me"), HybridLate, "harbour", 5)
		require.Equal(t, c.degraded, late.Degraded, what)
		require.Equal(t, keysOf(h.search(person("me"), Hybrid, "harbour", 5)), keysOf(late), "%s: the fused order stays", what)
		require.NotContains(t, late.Results[0].Legs, "late", what)
	}
	h.embedder.fails = nil
	require.Empty(t, h.search(person("me"), HybridLate, "harbour", 5).Degraded)
}

// A document that is revoked while a search is under way is not reranked: its
// codes are not read, its text does not reach the model, and it does not move
// the others' scores.
func TestOnlyRecheckedPassagesAreReranked(t *testing.T) {
	for what, make := range map[string]func(string, filter.Access, ...string) store.Version{"stored": coded, "none": version} {
		for _, strategy := range []string{Hybrid, HybridLate} {
			h := newHouse(t)
			h.commit(make("a", readable("user:me"), "harbour one"))
			h.commit(make("b", readable("user:me"), "harbour tide one"))
			h.awaitAll()
			want := h.search(person("me"), strategy, "harbour tide", 5)
			h.commit(make("secret", readable("user:me"), "harbour tide secret"))
			h.awaitAll()
			record, err := h.store.Lookup(t.Context(), h.id, "secret")
			require.NoError(t, err)
			m := &meddler{Store: h.store}
			h.engine = NewEngine(m, h.serving, h.embedder)
			m.beforeRecords = func() { h.setAccess("secret", readable("user:other")) }
			h.embedder.taken()

			got := h.search(person("me"), strategy, "harbour tide", 5)

			require.Nil(t, m.beforeRecords)
			require.NotContains(t, keysOf(got), "secret", what)
			require.NotContains(t, m.coded, record.FirstRow, what)
			require.NotContains(t, strings.Join(h.embedder.taken(), "\n"), "secret", what)
			if strategy == HybridLate {
				for i := range got.Results {
					require.Equal(t, want.Results[i].Score, got.Results[i].Score, what)
				}
			}
		}
	}
}

// One that is revoked after the recheck is not shown, and not encoded.
func TestRevokedWhileReranking(t *testing.T) {
	h := newHouse(t)
	h.commit(version("a", readable("user:me"), "harbour one"))
	h.commit(version("secret", readable("user:me"), "harbour secret"))
	h.awaitAll()
	m := &meddler{Store: h.store}
	h.engine = NewEngine(m, h.serving, h.embedder)
	m.beforeCodes = func() { h.setAccess("secret", readable("user:other")) }
	h.embedder.taken()

	require.Equal(t, []string{"a"}, keysOf(h.search(person("me"), HybridLate, "harbour", 5)))
	require.NotContains(t, h.embedder.taken(), "harbour secret")
}

func TestAnUnreadableStoreIsNoDegradation(t *testing.T) {
	h := newHouse(t)
	h.commit(coded("a", readable(), "harbour"))
	h.awaitAll()
	h.engine = NewEngine(brokenCodes{h.store}, h.serving, h.embedder)
	_, err := h.engine.Search(t.Context(), h.request(person("me"), HybridLate, "harbour", 5))
	require.ErrorIs(t, err, errInjected)
}

type brokenCodes struct{ store.Store }

func (b brokenCodes) Codes(context.Context, uint32, []uint32, func(int, []byte)) error {
	return errors.Join(errInjected, store.ErrCorrupt)
}

// A query of no tokens matches nothing better than anything else.
func TestAQueryOfSpecialTokensOnly(t *testing.T) {
	h := newHouse(t)
	h.commit(coded("a", readable(), "harbour one"))
	h.commit(coded("b", readable(), "harbour two"))
	h.awaitAll()

	r := h.search(person("me"), HybridLate, noToken, 5)
	require.Equal(t, keysOf(h.search(person("me"), Hybrid, noToken, 5)), keysOf(r))
	require.Equal(t, -1.0, r.Results[0].Legs["late"].Score)
	require.Zero(t, r.Results[0].Score)
}

// A panic in a leg, on a goroutine of its own, fails its search and no other.
func TestALegThatPanics(t *testing.T) {
	h := newHouse(t)
	h.commit(version("d", readable(), "tide"))
	h.awaitAll()
	h.embedder.fails = func(gpu.Request) error { panic("injected") }
	_, err := h.engine.Search(t.Context(), Request{Principal: person("me"), Collection: library, Query: "tide"})
	require.ErrorContains(t, err, "injected")
	h.embedder.fails = nil
	require.Len(t, h.search(person("me"), HybridLate, "tide", 10).Results, 1)
}
