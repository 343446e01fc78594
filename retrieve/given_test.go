package retrieve

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/filter"
	"sluice/gpu"
	"sluice/index"
	"sluice/index/late"
	"sluice/kernels/ref"
	"sluice/store"
)

const (
	gallery  = "gallery" // a collection whose documents bring token vectors
	ownMulti = 24
)

var ownTokens = store.Settings{Analyzer: "english", CodeBits: 8, Own: store.Own{Multi: ownMulti}}

// galleryHouse has a gallery, and puts documents there.
func galleryHouse(t testing.TB, settings store.Settings) *house {
	h := newHouse(t)
	c, _, err := h.store.CreateCollection(t.Context(), tenant, gallery, settings)
	require.NoError(t, err)
	h.id = c.ID
	h.awaitAll()
	return h
}

// picture is a document of one passage a matrix of token vectors.
func picture(key string, access filter.Access, settings store.Settings, matrices ...[]float32) store.Version {
	v := version(key, access, slices.Repeat([]string{"a picture"}, len(matrices))...)
	coder := late.NewCoder(late.Kind{Dimensions: settings.Own.Multi, Bits: settings.CodeBits})
	v.Identity[0]++
	v.Model, v.Dimensions, v.Vectors = settings.Model(""), settings.Dimensions(0), nil
	for _, m := range matrices {
		unit, err := index.Unit(m, settings.Own.Multi)
		if err != nil {
			panic(err)
		}
		v.Vectors = append(v.Vectors, index.Mean(unit, settings.Own.Multi)...)
		v.Codes = append(v.Codes, coder.Encode(unit, make([]bool, len(m)/settings.Own.Multi)))
	}
	return v
}

func (h *house) look(p filter.Principal, q Request) Response {
	h.t.Helper()
	q.Principal, q.Collection, q.Explain = p, gallery, true
	r, err := h.engine.Search(context.Background(), q)
	require.NoError(h.t, err)
	return r
}

// tokensQuery is a request with token vectors alone.
func tokensQuery(vectors []float32, k int) Request {
	return Request{Vectors: vectors, Columns: ownMulti, K: k}
}

// maxSim is late interaction, written down.
func maxSim(query, passage []float32, dims int) (sum float64) {
	for i := 0; i < len(query); i += dims {
		best := -1.0
		for j := 0; j < len(passage); j += dims {
			q, p := slices.Clone(query[i:i+dims]), slices.Clone(passage[j:j+dims])
			ref.Normalize(q)
			ref.Normalize(p)
			best = max(best, float64(ref.Dot(q, p)))
		}
		sum += best / float64(len(query)/dims)
	}
	return sum
}

// What late finds is what the definition says, of what one may read; no model is
// asked, and what others own decides nothing.
func TestLateFindsTheBestOfAllOneMayRead(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		random := rand.New(rand.NewPCG(seed, 9))
		h := galleryHouse(t, ownTokens)
		query := normals(random, 5*ownMulti)
		var mine []string
		scores := map[string]float64{}
		for i := range 40 {
			matrix := normals(random, (1+random.IntN(9))*ownMulti)
			key, readers := fmt.Sprint("d", i), filter.Reader("user:me")
			if i%3 == 0 {
				readers = "user:other"
			} else {
				mine = append(mine, key)
				scores[key] = maxSim(query, matrix, ownMulti)
			}
			h.commit(picture(key, readable(readers), ownTokens, matrix))
		}
		h.awaitAll()
		h.embedder.taken()
		slices.SortFunc(mine, func(a, b string) int { return cmp.Compare(scores[b], scores[a]) })

		r := h.look(person("me"), tokensQuery(query, 100))

		require.Equal(t, Late, r.Strategy)
		require.Empty(t, r.Degraded)
		require.Equal(t, len(mine), r.Visible)
		require.Len(t, r.Results, len(mine))
		for i, result := range r.Results {
			require.InDelta(t, scores[result.Key], result.Score, 0.01, "seed %d", seed)
			require.InDelta(t, scores[mine[i]], result.Score, 0.01, "seed %d, rank %d", seed, i+1)
			require.Equal(t, LegRank{Rank: i + 1, Score: result.Score}, result.Legs["late"])
		}
		require.Empty(t, h.embedder.taken())
		require.Equal(t, keysOf(r)[:7], keysOf(h.look(person("me"), tokensQuery(query, 7))))

		before := bytesOf(t, r)
		h.commit(picture("foreign", readable("user:other"), ownTokens, query))
		h.awaitAll()
		require.Equal(t, before, bytesOf(t, h.look(person("me"), tokensQuery(query, 100))))
		h.reopen()
		require.Equal(t, before, bytesOf(t, h.look(person("me"), tokensQuery(query, 100))))
	}
}

// The dense leg of a collection of token vectors works on their means, on both sides.
func TestMeansAreTheDenseVectorsOfTokenVectors(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 9))
	h := galleryHouse(t, ownTokens)
	query, matrix := normals(random, 3*ownMulti), normals(random, 4*ownMulti)
	h.commit(picture("a", readable(), ownTokens, matrix))
	h.awaitAll()
	q := tokensQuery(query, 1)
	q.Strategy = Dense
	mean := func(x []float32) []float32 {
		unit, err := index.Unit(x, ownMulti)
		require.NoError(t, err)
		return index.Mean(unit, ownMulti)
	}
	require.InDelta(t, ref.Dot(mean(query), mean(matrix)), h.look(person("me"), q).Results[0].Score, 1e-6)
}

// A picture that is revoked, deleted or replaced while the search is under way
// is not shown, and where the recheck saw it, its codes were not read.
func TestAScanObeysTheLatestState(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 9))
	query := normals(random, 2*ownMulti)
	for what, change := range map[string]func(*house){
		"revoked": func(h *house) { h.setAccess("b", readable("user:other")) },
		"deleted": func(h *house) { h.remove("b") },
	} {
		for _, before := range []string{"recheck", "codes", "text"} {
			h := galleryHouse(t, ownTokens)
			for _, key := range []string{"a", "b", "c"} {
				h.commit(picture(key, readable("user:me"), ownTokens, query, normals(random, 3*ownMulti)))
			}
			h.awaitAll()
			record, err := h.store.Lookup(t.Context(), h.id, "b")
			require.NoError(t, err)
			m := &meddler{Store: h.store}
			h.engine = NewEngine(m, h.serving, h.embedder)
			hooks := map[string]*func(){"recheck": &m.beforeRecords, "codes": &m.beforeCodes, "text": &m.beforeContent}
			*hooks[before] = func() { change(h) }

			r := h.look(person("me"), tokensQuery(query, 10))

			require.Nil(t, *hooks[before])
			require.NotContains(t, keysOf(r), "b", "%s before %s", what, before)
			require.Len(t, r.Results, 4, "%s before %s", what, before)
			if before == "recheck" {
				require.NotContains(t, m.coded, record.FirstRow, what)
			}
		}
	}
}

// Where there is too much to scan, the legs bring what is scored, and the
// answer says so; where there is no leg, the request is refused.
func TestTooMuchToScan(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 9))
	settings := ownTokens
	settings.Own.Dense = 3
	for _, s := range []store.Settings{ownTokens, settings} {
		h := galleryHouse(t, s)
		query := normals(random, 2*ownMulti)
		best := slices.Concat(query, normals(random, ownMulti))
		tiny := make([][]float32, 500)
		for i := range tiny {
			tiny[i] = normals(random, ownMulti)
		}
		commit := func(key string, matrices ...[]float32) {
			v := picture(key, readable(), ownTokens, matrices...)
			if s.Own.Dense > 0 {
				v.Dimensions, v.Vectors = 3, slices.Repeat([]float32{0, 0, 1}, len(matrices))
			}
			h.commit(v)
		}
		for i := range scanRows / len(tiny) {
			commit(fmt.Sprint("many", i), tiny...)
		}
		h.awaitAll()
		require.Empty(t, h.look(person("me"), tokensQuery(query, 1)).Degraded, "exactly as many as are scanned")
		commit("best", best)
		h.awaitAll()
		q := tokensQuery(query, 1)
		if s.Own.Dense == 0 {
			r := h.look(person("me"), q)
			require.Equal(t, []string{"late_scan"}, r.Degraded)
			require.Equal(t, []string{"best"}, keysOf(r))
			require.InDelta(t, 1, r.Results[0].Score, 0.01)
			continue
		}
		q.Principal, q.Collection = person("me"), gallery
		_, err := h.engine.Search(t.Context(), q)
		require.ErrorIs(t, err, store.ErrInvalid)
		require.ErrorContains(t, err, "bring vector or query")
		q.Query = "picture"
		require.Equal(t, []string{"late_scan"}, h.look(person("me"), q).Degraded)
	}
}

func TestWhatARequestCanFeed(t *testing.T) {
	dense := store.Settings{Analyzer: "english", Own: store.Own{Dense: 3}}
	both := store.Settings{Analyzer: "english", CodeBits: 1, Own: store.Own{Dense: 3, Multi: ownMulti}}
	model := store.Settings{Analyzer: "english", CodeBits: 1}
	one, three, tokens := make([]float32, dimensions), []float32{1, 2, 2}, make([]float32, 2*ownMulti)
	one[0], tokens[0], tokens[ownMulti] = 1, 1, 1
	type request = Request
	for i, c := range []struct {
		settings store.Settings
		request  Request
		want     string
	}{
		{model, request{Query: "q"}, HybridLate},
		{model, request{Vector: one}, Dense},
		{model, request{Vectors: one, Columns: dimensions}, Late},
		{model, request{Query: "q", Vector: one, Vectors: one, Columns: dimensions}, HybridLate},
		{dense, request{Query: "q"}, Sparse},
		{dense, request{Vector: three}, Dense},
		{dense, request{Vector: three, Query: "q"}, Hybrid},
		{ownTokens, request{Query: "q"}, Sparse},
		{ownTokens, request{Vectors: tokens, Columns: ownMulti}, Late},
		{ownTokens, request{Vectors: tokens, Columns: ownMulti, Query: "q"}, HybridLate},
		{both, request{Vectors: tokens, Columns: ownMulti, Query: "q"}, Late},
		{both, request{Vectors: tokens, Columns: ownMulti, Query: "q", Vector: three}, HybridLate},
	} {
		g, err := (&Engine{embedder: &bagOfWords{}}).givenBy(c.request, c.settings)
		require.NoError(t, err, i)
		require.Equal(t, c.want, g.strategy(), i)
		for _, strategy := range strategies {
			c.request.Strategy = strategy
			_, err := newPlan(c.request, g, models{codes: late.Kind{Bits: 8}}, c.settings)
			if strategy == c.want {
				require.NoError(t, err, i)
			}
			if err != nil {
				require.ErrorIs(t, err, store.ErrInvalid)
			}
		}
	}
}

func TestRequestsWithVectorsThatAreRefused(t *testing.T) {
	nan := float32(math.NaN())
	both := store.Settings{CodeBits: 1, Own: store.Own{Dense: 2, Multi: 3}}
	dense := store.Settings{Own: store.Own{Dense: 2}}
	many := slices.Repeat([]float32{1}, MaxQueryNumbers+3)
	for says, c := range map[string]struct {
		settings store.Settings
		request  Request
	}{
		"the query is empty":            {both, Request{}},
		"query is empty":                {both, Request{Query: " ", Vector: []float32{1, 1}}},
		"vector: 3 numbers":             {both, Request{Vector: []float32{1, 2, 3}}},
		"vector: vector 1 of 1":         {both, Request{Vector: []float32{1, nan}}},
		"vectors: 2 numbers each":       {both, Request{Vectors: []float32{1, 2}, Columns: 2}},
		"vectors: vector 2 of 2":        {both, Request{Vectors: []float32{1, 2, 3, 0, 0, 0}, Columns: 3}},
		"at most 87381 of 3 numbers":    {both, Request{Vectors: many, Columns: 3}},
		"vectors: the collection has":   {dense, Request{Vectors: []float32{1, 2}, Columns: 2}},
		"token vectors only":            {ownTokens, Request{Vector: []float32{1, 2}}},
		"hybrid needs query":            {both, Request{Vector: []float32{1, 2}, Strategy: Hybrid}},
		"dense needs vector":            {both, Request{Query: "q", Strategy: Dense}},
		"hybrid-late needs vectors":     {both, Request{Query: "q", Vector: []float32{1, 2}, Strategy: HybridLate}},
		"keeps no token codes; the str": {dense, Request{Query: "q", Vector: []float32{1, 2}, Strategy: HybridLate}},
		"the strategy late needs them":  {store.Settings{}, Request{Query: "q", Strategy: Late}},
	} {
		g, err := (&Engine{embedder: &bagOfWords{}}).givenBy(c.request, c.settings)
		if err == nil {
			_, err = newPlan(c.request, g, models{codes: late.Kind{Bits: 1}}, c.settings)
		}
		require.ErrorIs(t, err, store.ErrInvalid, says)
		require.ErrorContains(t, err, says)
	}
}

// In a collection of the model, vectors that are given are those that are used:
// those that the model makes give the same answer, without the model.
func TestGivenVectorsAreInPlaceOfTheModels(t *testing.T) {
	h := newHouse(t)
	for i, text := range []string{"harbour and tide", "crane and quay", "north mast"} {
		h.commit(coded(fmt.Sprint(i), readable(), text))
	}
	h.awaitAll()
	tokens, special := tokensOf("tide quay")
	var kept []float32
	for i, skip := range special {
		if !skip {
			kept = append(kept, tokens[i*dimensions:(i+1)*dimensions]...)
		}
	}
	for _, strategy := range []string{Dense, Hybrid, HybridLate, Late} {
		want := h.search(person("me"), strategy, "tide quay", 5)
		h.embedder.taken()
		request := h.request(person("me"), strategy, "tide quay", 5)
		request.Vector, request.Vectors, request.Columns = vectorOf("tide quay"), kept, dimensions
		got, err := h.engine.Search(t.Context(), request)
		require.NoError(t, err)
		require.Empty(t, h.embedder.taken(), strategy)
		require.Equal(t, keysOf(want), keysOf(got), strategy)
		for i := range got.Results {
			require.InDelta(t, want.Results[i].Score, got.Results[i].Score, 1e-5, strategy)
		}
	}

	h.embedder.fails = func(gpu.Request) error { return errInjected }
	request := h.request(person("me"), HybridLate, "tide quay", 5)
	request.Vector = vectorOf("tide quay")
	r, err := h.engine.Search(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, []string{"late_unavailable"}, r.Degraded, "the dense leg has its vector")
	require.Contains(t, r.Results[0].Legs, "dense")
}

// A store of documents with vectors of their own is served whatever the model is.
func TestAnotherModelServesOwnVectors(t *testing.T) {
	h := galleryHouse(t, ownTokens)
	query := normals(rand.New(rand.NewPCG(7, 9)), ownMulti)
	h.commit(picture("a", readable(), ownTokens, query))
	h.awaitAll()
	h.close()
	var err error
	h.serving, err = NewServing(t.Context(), h.store, "another/1", h.openIndex, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	h.engine = NewEngine(h.store, h.serving, h.embedder)
	require.Equal(t, []string{"a"}, keysOf(h.look(person("me"), tokensQuery(query, 1))))
}

// A version that the feed has not brought to the index yet may not be durable:
// a scan does not show it.
func TestAScanShowsWhatTheIndexHolds(t *testing.T) {
	h, f := flakyHouse(t)
	h.write("a", readable(), "harbour one")
	h.write("b", readable(), "harbour two")
	f.applies.Store(true)
	h.put("a", readable(), "harbour of another version")
	require.Eventually(t, func() bool { return h.serving.Ready() != nil }, patience, time.Millisecond) // or recovered sees no failure yet
	require.Equal(t, []string{"b"}, keysOf(h.search(person("me"), Late, "harbour", 5)))
	f.applies.Store(false)
	h.recovered()
	h.awaitAll()
	require.Equal(t, []string{"b", "a"}, keysOf(h.search(person("me"), Late, "harbour two", 5)))
}
