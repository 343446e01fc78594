package gpu

import (
	"context"
	"errors"
	"math"
	"slices"

	"sluice/model/tokenizer"
)

// Pair is a query and a passage, or any two texts that a model judges together.
type Pair struct {
	First, Second string
	Alone         bool // there is no second text
}

// Pairs puts a query before each passage.
func Pairs(query string, passages []string) []Pair {
	pairs := make([]Pair, len(passages))
	for i, passage := range passages {
		pairs[i] = Pair{First: query, Second: passage}
	}
	return pairs
}

// ScoreRequest is pairs to score.
type ScoreRequest struct {
	Pairs        []Pair
	SecondTokens int // second texts are cut to so many tokens before all else; 0: they are not
	Truncation   Truncation
	Priority     Priority
}

// Score is what a model makes of a pair. Logit decides the order: it is never
// NaN, and differs where sigmoids round to the same number. Value is the score
// that the model's own config asks for, the logit or its sigmoid.
type Score struct {
	Logit     float32
	Value     float32
	Tokens    int
	Truncated bool
	Timing    Timing
}

// Probability is the logit's sigmoid, from 0 to 1.
func (s Score) Probability() float32 {
	return float32(1 / (1 + math.Exp(-float64(s.Logit))))
}

// Reranker scores pairs with a cross-encoder of one label. A pair's score does
// not depend on what it is batched with. Safe for concurrent use.
type Reranker interface {
	Score(ctx context.Context, r ScoreRequest) ([]Score, error)
	Info() Info
}

// Order lists scores' places, best first; ties stay in the order they came in.
func Order(scores []Score) []int {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case scores[a].Logit > scores[b].Logit:
			return -1
		case scores[a].Logit < scores[b].Logit:
			return 1
		}
		return 0
	})
	return order
}

// Reranker returns that of the model with this name, if it has one label.
func (s *Scheduler) Reranker(name string) (Reranker, bool) {
	if l := s.lane(name, true); l != nil && l.width == 1 {
		return l, true
	}
	return nil, false
}

// Score implements Reranker. Errors are those of Embed.
func (l *lane) Score(ctx context.Context, r ScoreRequest) ([]Score, error) {
	answers, err := l.judge(ctx, r)
	if err != nil {
		return nil, err
	}
	scores := make([]Score, len(answers))
	for i, a := range answers {
		scores[i] = Score{Logit: a.Vector[0], Value: l.head.Score(a.Vector[0]), Tokens: a.Tokens, Truncated: a.Truncated, Timing: a.Timing}
	}
	return scores, nil
}

// judge has pairs run; their vectors are logits. A query is tokenized once for
// all passages that follow it.
func (l *lane) judge(ctx context.Context, r ScoreRequest) ([]Embedding, error) {
	o := l.options(r.Truncation)
	var first tokenizer.Text
	of := -1 // whose first text it is
	return l.run(ctx, len(r.Pairs), Request{Priority: r.Priority, Truncation: r.Truncation}, func(e *tokenizer.Encoding, i int) error {
		p := r.Pairs[i]
		if p.Alone {
			return l.tokenizer.Encode(e, p.First, o)
		}
		if of < 0 || r.Pairs[of].First != p.First {
			if err := l.tokenizer.Tokenize(&first, p.First, o); err != nil {
				return err
			}
			of = i
		}
		return l.encodePair(e, r, &first, p.Second, o)
	})
}

// encodePair cuts the second text, or where the first leaves no room for that,
// the longer one.
func (l *lane) encodePair(e *tokenizer.Encoding, r ScoreRequest, first *tokenizer.Text, second string, o tokenizer.Options) error {
	second, cut, err := l.shortened(e, second, r.SecondTokens)
	if err != nil {
		return err
	}
	if !r.Truncation.LongestFirst {
		o.Strategy = tokenizer.OnlySecond
	}
	err = l.tokenizer.EncodePairOf(e, first, second, o)
	if errors.Is(err, tokenizer.ErrCannotTruncate) {
		o.Strategy = tokenizer.LongestFirst
		err = l.tokenizer.EncodePairOf(e, first, second, o)
	}
	e.Cut += cut
	return err
}

// shortened returns a text's first tokens, as text, and how many others it had.
func (l *lane) shortened(e *tokenizer.Encoding, text string, tokens int) (string, int, error) {
	if tokens == 0 {
		return text, 0, nil
	}
	o := tokenizer.Options{NoSpecialTokens: true, MaxLength: tokens, Room: l.scheduler.options.Room}
	if err := l.tokenizer.Encode(e, text, o); err != nil || e.Cut == 0 {
		return text, 0, err
	}
	return text[:e.Offsets[e.Len()-1].End], e.Cut, nil
}
