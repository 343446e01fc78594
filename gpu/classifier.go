package gpu

import (
	"context"

	"sluice/kernels/ref"
)

// Classification is what a model makes of a text or pair: a logit for each of
// its labels.
type Classification struct {
	Logits    []float32
	Tokens    int
	Truncated bool
	Timing    Timing
}

// Probabilities sum to 1, the softmax of several logits; that of a single one is
// its sigmoid.
func (c Classification) Probabilities() []float32 {
	if len(c.Logits) == 1 {
		return []float32{Score{Logit: c.Logits[0]}.Probability()}
	}
	p := append([]float32(nil), c.Logits...)
	ref.Softmax(p, 1)
	return p
}

// Classifier gives texts and pairs a logit for each label of its Info. They do
// not depend on what is batched together. Safe for concurrent use.
type Classifier interface {
	Classify(ctx context.Context, r ScoreRequest) ([]Classification, error)
	Info() Info
}

// Classifier returns that of the model with this name, if it has labels.
func (s *Scheduler) Classifier(name string) (Classifier, bool) {
	if l := s.lane(name, true); l != nil {
		return l, true
	}
	return nil, false
}

// Classify implements Classifier. Errors are those of Embed.
func (l *lane) Classify(ctx context.Context, r ScoreRequest) ([]Classification, error) {
	answers, err := l.judge(ctx, r)
	if err != nil {
		return nil, err
	}
	all := make([]Classification, len(answers))
	for i, a := range answers {
		all[i] = Classification{Logits: a.Vector, Tokens: a.Tokens, Truncated: a.Truncated, Timing: a.Timing}
	}
	return all, nil
}
