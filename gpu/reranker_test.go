package gpu

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/model"
	"sluice/model/tokenizer"
)

// scorer serves the tiny model as a cross-encoder of one label beside the
// embedder, both on one processor.
func scorer(t *testing.T, sigmoid bool, d *fakeDevice) (Reranker, *Scheduler) {
	t.Helper()
	embeds, scores := tinyServed(), tinyServed()
	m := *scores.Model
	m.Name, m.Classifier = "judge", &model.Classifier{Labels: []string{"relevant"}, Sigmoid: sigmoid}
	scores.Model = &m
	embeds.Devices, scores.Devices = []Device{&fakeDevice{}}, []Device{d}
	s, err := NewScheduler(Options{}, embeds, scores)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	r, ok := s.Reranker("judge")
	require.True(t, ok)
	return r, s
}

func TestRerankerIsFoundByNameAndKind(t *testing.T) {
	r, s := scorer(t, true, &fakeDevice{})
	require.Equal(t, []string{"relevant"}, r.Info().Labels)
	_, ok := s.Embedder("judge")
	require.False(t, ok)
	_, ok = s.Reranker(s.Info().Model)
	require.False(t, ok)
	require.NotEqual(t, s.Info().Digest, "")
}

// Raw logits where the model asks for them, their sigmoid, once, where not
// (llama.cpp PR#9510, #8555).
func TestScoresAreWhatTheModelAsksFor(t *testing.T) {
	for _, sigmoid := range []bool{true, false} {
		d := &fakeDevice{onAnswer: func(_ []int32, v []float32) { v[1] = -2.5 }}
		r, _ := scorer(t, sigmoid, d)
		got, err := r.Score(t.Context(), ScoreRequest{Pairs: Pairs("a", []string{"b"})})
		require.NoError(t, err)
		require.Equal(t, float32(-2.5), got[0].Logit)
		require.InDelta(t, 0.0758581800, got[0].Probability(), 1e-8)
		want := got[0].Logit
		if sigmoid {
			want = got[0].Probability()
		}
		require.Equal(t, want, got[0].Value)
	}
}

// Ties keep the passages' order (node-llama-cpp#617), also where sigmoids round
// to the same number, which is not a tie.
func TestOrder(t *testing.T) {
	scores := []Score{{Logit: 1}, {Logit: 30}, {Logit: 1}, {Logit: 40}, {Logit: -3}, {Logit: 1}}
	require.Equal(t, scores[1].Probability(), scores[3].Probability())
	require.Equal(t, []int{3, 1, 0, 2, 5, 4}, Order(scores))
	require.Empty(t, Order(nil))
}

// A score that is no number fails its pair's call, and no other.
func TestNaNIsNeverAScore(t *testing.T) {
	poison := idOf(t, "x")
	d := &fakeDevice{onAnswer: func(ids []int32, v []float32) {
		for _, id := range ids {
			if id == poison {
				v[1] = float32(math.NaN())
			}
		}
	}}
	r, _ := scorer(t, true, d)
	_, err := r.Score(t.Context(), ScoreRequest{Pairs: Pairs("a", []string{"b", "x"})})
	require.ErrorIs(t, err, ErrDevice)
	got, err := r.Score(t.Context(), ScoreRequest{Pairs: Pairs("a", []string{"b"})})
	require.NoError(t, err)
	require.False(t, math.IsNaN(float64(got[0].Value)))
}

// What is cut is the passage, and not the query, unless asked, or unless the
// query leaves no room (vLLM#11568).
func TestPairTruncation(t *testing.T) {
	var seen []int32
	d := &fakeDevice{onAnswer: func(ids []int32, _ []float32) { seen = append([]int32(nil), ids...) }}
	r, _ := scorer(t, true, d)
	limit := r.Info().MaxTokens // 64: 61 beside the special tokens
	count := func(word string) (n int) {
		for _, id := range seen {
			if id == idOf(t, word) {
				n++
			}
		}
		return n
	}
	for name, c := range map[string]struct {
		query, passage int // tokens
		truncation     Truncation
		second         int
		wantA, wantB   int
	}{
		"fits":                {30, 31, Truncation{}, 0, 30, 31},
		"passage":             {40, 100, Truncation{}, 0, 40, 21},
		"longest first":       {40, 100, Truncation{LongestFirst: true}, 0, 30, 31},
		"no room":             {100, 100, Truncation{}, 0, 30, 31},
		"query beside little": {100, 5, Truncation{}, 0, 56, 5},
		"second tokens":       {10, 100, Truncation{}, 7, 10, 7},
	} {
		t.Run(name, func(t *testing.T) {
			pair := Pair{First: textOf("a", c.query+2), Second: textOf("b", c.passage+2)}
			got, err := r.Score(t.Context(), ScoreRequest{Pairs: []Pair{pair}, Truncation: c.truncation, SecondTokens: c.second})
			require.NoError(t, err)
			require.Equal(t, c.wantA, count("a"))
			require.Equal(t, c.wantB, count("b"))
			require.Equal(t, c.wantA+c.wantB < c.query+c.passage, got[0].Truncated)
			require.LessOrEqual(t, got[0].Tokens, limit)
		})
	}
	_, err := r.Score(t.Context(), ScoreRequest{Pairs: Pairs(textOf("a", 52), []string{"b", textOf("b", 52)}), Truncation: Truncation{Refuse: true}})
	var long *TooLongError
	require.ErrorAs(t, err, &long)
	require.Equal(t, TooLongError{Text: 1, Tokens: 103, Limit: 64}, *long)
}

// Passages after one query score as each does by itself, whatever comes between.
func TestPairsShareAQuery(t *testing.T) {
	r, _ := scorer(t, true, &fakeDevice{})
	pairs := append(Pairs("a b", []string{"x", "", "the end"}), Pair{First: "x", Alone: true}, Pair{First: "x", Second: "a"},
		Pair{First: "a b", Second: "x"}, Pair{Second: "x"}, Pair{First: "a b", Alone: true}, Pair{First: "", Second: "a"}, Pair{First: textOf("a", 100), Second: "x"})
	got, err := r.Score(t.Context(), ScoreRequest{Pairs: pairs})
	require.NoError(t, err)
	for i, pair := range pairs {
		alone, err := r.Score(t.Context(), ScoreRequest{Pairs: []Pair{pair}})
		require.NoError(t, err)
		alone[0].Timing, got[i].Timing = Timing{}, Timing{}
		require.Equal(t, alone[0], got[i], "pair %d", i)
	}
}

func TestAloneIsNoPair(t *testing.T) {
	var lengths []int
	r, _ := scorer(t, true, &fakeDevice{onAnswer: func(ids []int32, _ []float32) { lengths = append(lengths, len(ids)) }})
	_, err := r.Score(t.Context(), ScoreRequest{Pairs: []Pair{{First: "a", Alone: true}, {First: "a"}}})
	require.NoError(t, err)
	require.Equal(t, []int{3, 4}, lengths)
}

// Token ids embed as their text does; a text that may not be cut is refused
// with its length in tokens (TEI#227).
func TestIDsAndRefusal(t *testing.T) {
	s, stop := start(t, Options{}, &fakeDevice{})
	defer stop()
	var e tokenizer.Encoding
	require.NoError(t, tinyServed().Tokenizer.Encode(&e, "the end", tokenizer.Options{}))
	texts, err := s.Embed(t.Context(), Request{Texts: []string{"the end"}})
	require.NoError(t, err)
	ids, err := s.Embed(t.Context(), Request{IDs: [][]int32{e.IDs, e.IDs[1 : e.Len()-1]}})
	require.NoError(t, err)
	require.Equal(t, texts[0].Vector, ids[0].Vector)
	require.Equal(t, texts[0].Vector, ids[1].Vector)
	_, err = s.Embed(t.Context(), Request{IDs: [][]int32{{1 << 30}}})
	require.ErrorIs(t, err, tokenizer.ErrUnknownID)

	_, err = s.Embed(t.Context(), Request{Texts: []string{text(64), text(65)}, Truncation: Truncation{Refuse: true}})
	var long *TooLongError
	require.ErrorAs(t, err, &long)
	require.Equal(t, TooLongError{Text: 1, Tokens: 65, Limit: 64}, *long)
	left, err := s.Embed(t.Context(), Request{Texts: []string{"x " + text(65) + "b"}, Truncation: Truncation{Left: true}})
	require.NoError(t, err)
	require.True(t, left[0].Truncated)
}

// A pair's token types tell the two texts apart; all zero would be a model that
// has never seen a second text.
func TestPairTypes(t *testing.T) {
	var types []int32
	d := &fakeDevice{onRun: func(b *Batch) error { types = append([]int32(nil), b.Types...); return nil }}
	r, _ := scorer(t, true, d)
	_, err := r.Score(t.Context(), ScoreRequest{Pairs: Pairs("a a", []string{"b"})})
	require.NoError(t, err)
	require.Equal(t, []int32{0, 0, 0, 0, 1, 1}, types)
}

// Several labels make a classifier, which is no reranker.
func TestClassifierOfSeveralLabels(t *testing.T) {
	v := tinyServed()
	m := *v.Model
	m.Name, m.Classifier = "moods", &model.Classifier{Labels: []string{"sad", "glad", "calm"}}
	v.Model, v.Devices = &m, []Device{&fakeDevice{labels: 3, onAnswer: func(ids []int32, v []float32) { v[1] = float32(len(ids)) }}}
	s, err := NewScheduler(Options{}, v)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close(context.Background())) }()
	_, ok := s.Reranker("moods")
	require.False(t, ok)
	c, ok := s.Classifier("moods")
	require.True(t, ok)
	require.Equal(t, m.Classifier.Labels, c.Info().Labels)
	got, err := c.Classify(t.Context(), ScoreRequest{Pairs: []Pair{{First: "a", Alone: true}, {First: "a", Second: "b"}}})
	require.NoError(t, err)
	require.Equal(t, []float32{3, 4, 5}, got[0].Logits)
	require.Equal(t, []float32{5, 6, 7}, got[1].Logits)
	p := got[0].Probabilities()
	require.InDelta(t, 1, p[0]+p[1]+p[2], 1e-6)
	require.InDelta(t, math.E, p[2]/p[1], 1e-5)
}
