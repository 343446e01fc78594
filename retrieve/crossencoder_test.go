package retrieve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/chunk"
	"sluice/filter"
	"sluice/gpu"
)

// judge scores a passage by where its key word stands in a list, best first;
// what is not there ties at 0. It remembers the pairs it saw.
type judge struct {
	words []string
	err   error
	slow  time.Duration

	mu    sync.Mutex
	pairs []gpu.Pair
}

func (j *judge) Info() gpu.Info {
	return gpu.Info{Model: "judge", Digest: "judge/1", Labels: []string{"relevant"}}
}

func (j *judge) Score(ctx context.Context, r gpu.ScoreRequest) ([]gpu.Score, error) {
	j.mu.Lock()
	j.pairs = append(j.pairs, r.Pairs...)
	j.mu.Unlock()
	if j.slow > 0 {
		select {
		case <-time.After(j.slow):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	scores := make([]gpu.Score, len(r.Pairs))
	for i, p := range r.Pairs {
		at := slices.IndexFunc(j.words, func(w string) bool { return strings.Contains(p.Second, w) })
		if at >= 0 {
			scores[i].Logit = float32(len(j.words) - at)
		}
		scores[i].Value = scores[i].Logit / 10
	}
	return scores, j.err
}

func (j *judge) seen() (passages []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range j.pairs {
		passages = append(passages, p.Second)
	}
	return passages
}

func rerankHouse(t *testing.T, j *judge) *house {
	h := newHouse(t)
	for i, word := range []string{"tide", "rope", "mast", "keel"} {
		h.write(fmt.Sprintf("d%d", i), readable(), "harbour "+strings.Repeat("harbour ", 3-i)+word)
	}
	if j != nil {
		h.engine.RerankWith(j, time.Second)
	}
	return h
}

func TestHybridRerankRanksByTheCrossEncoder(t *testing.T) {
	j := &judge{words: []string{"keel", "rope"}}
	h := rerankHouse(t, j)
	fused := keysOf(h.search(person("me"), Hybrid, "harbour", 4))
	got := h.search(person("me"), HybridRerank, "harbour", 4)
	require.Equal(t, []string{"d3", "d1"}, keysOf(got)[:2])
	rest := slices.DeleteFunc(slices.Clone(fused), func(k string) bool { return k == "d3" || k == "d1" })
	require.Equal(t, rest, keysOf(got)[2:], "ties keep the fused order")
	require.Empty(t, got.Degraded)
	require.Equal(t, LegRank{Rank: 1, Score: got.Results[0].Score}, got.Results[0].Legs["rerank"])
	require.InDelta(t, .2, got.Results[0].Score, 1e-7)
	require.Contains(t, got.Results[0].Legs, "dense")
}

// The pool is bounded, has the heading paths, and nothing that may not be read.
func TestHybridRerankPassages(t *testing.T) {
	j := &judge{words: []string{"harbour"}}
	h := newHouse(t)
	h.engine.RerankWith(j, time.Second)
	h.write("secret", readable(filter.User("boss")), "harbour of the boss")
	v := version("guide", readable(), "harbour in the guide")
	v.Chunks[0].Headings = []string{"Ports", "North"}
	r, err := h.store.Commit(t.Context(), h.id, v)
	require.NoError(t, err)
	h.await(r.Epoch)
	for i := range 40 {
		h.write(fmt.Sprintf("d%02d", i), readable(), fmt.Sprintf("harbour %d", i))
	}
	h.search(person("me"), HybridRerank, "harbour guide", 5)
	require.Len(t, j.seen(), 30)
	require.Contains(t, j.seen(), chunk.EmbedText(v.Text, v.Chunks[0]))
	require.Contains(t, chunk.EmbedText(v.Text, v.Chunks[0]), "North")
	for _, passage := range j.seen() {
		require.NotContains(t, passage, "boss")
	}
}

// A document that is revoked while the search is under way is not reranked.
func TestHybridRerankAfterRevocation(t *testing.T) {
	j := &judge{words: []string{"tide"}}
	h := rerankHouse(t, j)
	m := &meddler{Store: h.store}
	h.engine = NewEngine(m, h.serving, h.embedder)
	h.engine.RerankWith(j, time.Second)
	m.beforeRecords = func() { h.setAccess("d0", readable(filter.User("boss"))) }
	m.beforeContent = func() { h.setAccess("d1", readable(filter.User("boss"))) }
	got := h.search(person("me"), HybridRerank, "harbour", 4)
	require.ElementsMatch(t, []string{"d2", "d3"}, keysOf(got))
	for _, passage := range j.seen() {
		require.NotContains(t, passage, "tide")
		require.NotContains(t, passage, "rope")
	}
}

func TestHybridRerankDegrades(t *testing.T) {
	for name, j := range map[string]*judge{
		"absent": nil, "failed": {err: errInjected}, "overloaded": {err: &gpu.OverloadedError{}},
	} {
		t.Run(name, func(t *testing.T) {
			h := rerankHouse(t, j)
			fused := keysOf(h.search(person("me"), Hybrid, "harbour", 4))
			got := h.search(person("me"), HybridRerank, "harbour", 4)
			require.Equal(t, []string{"rerank_unavailable"}, got.Degraded)
			require.Equal(t, fused, keysOf(got))
			require.NotContains(t, got.Results[0].Legs, "rerank")
		})
	}
}

// Its own deadline passes: the answer is degraded. The search's passes: an error.
func TestHybridRerankDeadlines(t *testing.T) {
	h := rerankHouse(t, nil)
	q := func(j *judge) *query {
		h.engine.RerankWith(j, 3*time.Second)
		return &query{engine: h.engine, request: Request{Query: "harbour"}}
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := q(&judge{slow: time.Minute}).scores(context.Background(), []string{"a"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 3*time.Second, time.Since(began))
		_, err = q(&judge{slow: time.Second}).scores(context.Background(), []string{"a"})
		require.NoError(t, err)
	})
	h.engine.RerankWith(&judge{slow: time.Hour}, time.Millisecond)
	got := h.search(person("me"), HybridRerank, "harbour", 4)
	require.Equal(t, []string{"rerank_unavailable"}, got.Degraded)

	ctx, cancel := context.WithCancelCause(t.Context())
	h.engine.RerankWith(&cancelling{judge{}, cancel}, time.Hour)
	_, err := h.engine.Search(ctx, h.request(person("me"), HybridRerank, "harbour", 4))
	require.ErrorIs(t, err, context.Canceled)
}

// cancelling ends the search while it is being reranked.
type cancelling struct {
	judge
	cancel context.CancelCauseFunc
}

func (c *cancelling) Score(ctx context.Context, _ gpu.ScoreRequest) ([]gpu.Score, error) {
	c.cancel(errors.New("the client left"))
	return nil, ctx.Err()
}

func TestHybridRerankPlanNamesTheReranker(t *testing.T) {
	h := rerankHouse(t, nil)
	without := h.search(person("me"), HybridRerank, "harbour", 4).PlanHash
	h.engine.RerankWith(&judge{}, time.Second)
	require.NotEqual(t, without, h.search(person("me"), HybridRerank, "harbour", 4).PlanHash)
}

// A document that is replaced while the search is under way is not there: its
// old rows are nobody's.
func TestHybridRerankAfterReplacement(t *testing.T) {
	j := &judge{words: []string{"tide"}}
	h := rerankHouse(t, j)
	m := &meddler{Store: h.store}
	h.engine = NewEngine(m, h.serving, h.embedder)
	h.engine.RerankWith(j, time.Second)
	m.beforeContent = func() {
		for i := range 4 {
			h.put(fmt.Sprintf("d%d", i), readable(), "harbour anew")
		}
	}
	got := h.search(person("me"), HybridRerank, "harbour", 4)
	require.Empty(t, got.Results)
	require.Empty(t, j.seen())
}
