// Package answer makes cited answers out of what a principal may read. The
// language model sees passages that the search let pass, and nothing it says is
// believed: a sentence stands if the passages that it cites say it too. The
// package trusts neither the model nor the text of documents.
package answer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice/filter"
	"sluice/gpu"
	"sluice/index/text"
	"sluice/model/chat"
	"sluice/retrieve"
	"sluice/retrieve/answer/ground"
	"sluice/store"
	"sluice/trace"
)

// Outcomes.
const (
	Answered = "answered"
	NoAnswer = "no_answer" // nothing stands; it carries no evidence
	Evidence = "evidence"  // there is no model, or it could not be asked
)

// Reasons of a NoAnswer.
const (
	NothingFound = "nothing_found" // that the principal may read
	NotMentioned = "not_mentioned" // no passage has what the question names
	Declined     = "declined"      // by the model
	Unsupported  = "unsupported"   // no sentence stood the checks
)

// Bounds of a request.
const (
	MaxTurns   = 32
	MaxHistory = 32 << 10 // bytes
)

// DefaultTokens is what the passages of an answer have by default.
const DefaultTokens = 4000

// Searcher finds what principals may read: retrieve.Engine.
type Searcher interface {
	Search(ctx context.Context, r retrieve.Request) (retrieve.Response, error)
	Document(ctx context.Context, p filter.Principal, collection, key string) (store.Content, error)
}

// Options of an Answerer.
type Options struct {
	Searcher   Searcher
	Embedder   gpu.Embedder   // tells which names mean the same
	Entailment gpu.Classifier // with a label "entailment"; nil: none
	Chat       *chat.Client   // nil: answers are evidence alone
	Timeout    time.Duration  // of all that the model is asked for one answer
	Tokens     int            // of the passages that the model is shown
	Relevance  float64        // that a cited passage must have to the question, in late interaction; 0: any
	Rerank     bool           // the model orders the passages first
	Prices     Prices
	Observer   Observer
}

// Prices are for a million tokens, in whatever currency.
type Prices struct{ Prompt, Completion float64 }

// Observer hears of what is to be counted. Its methods must not block.
type Observer interface {
	// Asked: the model was asked once, for purpose (rewrite, rerank or answer).
	Asked(purpose string, took time.Duration, err error)
	Answered(r Response)
}

// Answerer answers questions. It is safe for concurrent use.
type Answerer struct{ Options }

// New returns an Answerer.
func New(o Options) *Answerer { return &Answerer{o} }

// Request is one question of one principal.
type Request struct {
	Principal  filter.Principal
	Collection string
	Question   string
	History    []Turn // of the conversation, oldest first
	Scope      filter.Scope
	Searching  func(queries []string) // hears what will be searched; nil: nobody does
}

// Turn is what one side said before.
type Turn struct{ Question, Answer string }

// Response answers it.
type Response struct {
	Outcome   string
	Reason    string // of a NoAnswer
	Sentences []Sentence
	Passages  []Passage // that are cited; of an Evidence, all
	Queries   []string  // that were searched, the question last
	Dropped   map[string]int
	Degraded  []string
	Model     string
	Usage     Usage
	Search    retrieve.Response // of the first query, without results
}

// Sentence is one of an answer, with the ids of the passages that say it.
type Sentence struct {
	Text      string   `json:"text"`
	Citations []string `json:"citations"`
}

// Usage is what the model took for an answer.
type Usage struct {
	Calls   int
	Context int // tokens of the passages that it was shown, as the budget counts them
	chat.Usage
	Cost float64
}

// answering is one answer under way.
type answering struct {
	*Answerer
	request  Request
	language *ground.Language
	context  []Passage
	gone     map[string]bool           // ids of passages that were taken away since the model saw them
	sources  map[string]*ground.Source // by id of the passage
	beside   map[string]string         // by id: why the passage says nothing that is asked for; "" if it may
	words    ground.Context            // that sentences are judged in
	subjects []string                  // names that are asked about, and those like them
	response Response
	trace    *trace.Recorder
	began    time.Time // when the last stage ended
}

// Answer answers a request. An unknown collection is store.ErrNotFound, a bad
// request store.ErrInvalid.
func (a *Answerer) Answer(ctx context.Context, r Request) (Response, error) {
	if err := r.check(); err != nil {
		return Response{}, err
	}
	q := &answering{Answerer: a, request: r, trace: trace.From(ctx), began: time.Now(), gone: map[string]bool{}, sources: map[string]*ground.Source{}, response: Response{Dropped: map[string]int{}}}
	model, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	if err := q.run(ctx, model); err != nil {
		return Response{}, err
	}
	q.response.Usage.Cost = (float64(q.response.Usage.Prompt)*a.Prices.Prompt + float64(q.response.Usage.Completion)*a.Prices.Completion) / 1e6
	a.Observer.Answered(q.response)
	return q.response, nil
}

func (r Request) check() error {
	bytes := 0
	for _, t := range r.History {
		bytes += len(t.Question) + len(t.Answer)
	}
	switch {
	case strings.TrimSpace(r.Question) == "":
		return fmt.Errorf("%w: the question is empty", store.ErrInvalid)
	case len(r.Question) > retrieve.MaxQueryBytes:
		return fmt.Errorf("%w: the question has %d bytes; at most %d are allowed", store.ErrInvalid, len(r.Question), retrieve.MaxQueryBytes)
	case len(r.History) > MaxTurns || bytes > MaxHistory:
		return fmt.Errorf("%w: the history is longer than %d turns or %d bytes; leave out the oldest", store.ErrInvalid, MaxTurns, MaxHistory)
	}
	return nil
}

// run does all steps. What is asked of the model ends with its own context; then
// the evidence is still sent.
func (q *answering) run(ctx, model context.Context) error {
	if err := q.retrieve(ctx, model); err != nil {
		return err
	}
	if q.Chat == nil {
		return q.evidence(ctx)
	}
	if reason := q.lacking(ctx); reason != "" {
		return q.refuse(reason)
	}
	q.ended("mention")
	if q.Rerank {
		reason, err := q.rerank(ctx, model)
		if err != nil {
			return err
		}
		if reason != "" {
			return q.refuse(reason)
		}
	}
	said, err := q.ask(model)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		q.degraded("answer_unavailable")
		return q.evidence(ctx)
	}
	return q.settle(ctx, said)
}

// lacking is why there is no answer in the context as it is, "" if there may be one.
func (q *answering) lacking(ctx context.Context) string {
	q.subjects = nil
	switch {
	case len(q.context) == 0:
		return NothingFound
	case q.unmentioned(ctx):
		return NotMentioned
	}
	return ""
}

// settle checks what the model says, and keeps what stands: by passages that the
// principal may read until the last sentence is judged. The others count in nothing.
func (q *answering) settle(ctx context.Context, said []Sentence) error {
	_, err := q.refresh(ctx)
	var standing []Sentence
	var reason string
	for gone := true; gone && err == nil; {
		if standing, reason, err = q.judged(ctx, said); err == nil {
			gone, err = q.refresh(ctx)
		}
	}
	if err != nil {
		return err
	}
	q.ended("check")
	if reason != "" {
		return q.refuse(reason)
	}
	q.response.Outcome, q.response.Sentences = Answered, standing
	for _, p := range q.context {
		if slices.ContainsFunc(standing, func(s Sentence) bool { return slices.Contains(s.Citations, p.ID) }) {
			q.response.Passages = append(q.response.Passages, p)
		}
	}
	return nil
}

// judged are the sentences that stand on the context as it is, or why there is no
// answer. What was taken away is as if it had never been there.
func (q *answering) judged(ctx context.Context, said []Sentence) (standing []Sentence, reason string, err error) {
	clear(q.response.Dropped)
	if len(q.gone) > 0 {
		if reason = q.lacking(ctx); reason != "" {
			return nil, reason, nil
		}
	}
	if len(said) == 0 {
		return nil, Declined, nil
	}
	q.words, q.beside = q.groundContext(), q.besideTheQuestion()
	if standing, err = q.checked(ctx, said); len(standing) == 0 {
		reason = Unsupported
	}
	return standing, reason, err
}

// refuse says why there is no answer, and nothing else.
func (q *answering) refuse(reason string) error {
	q.response.Outcome, q.response.Reason = NoAnswer, reason
	return nil
}

// evidence answers with the passages that may still be read.
func (q *answering) evidence(ctx context.Context) error {
	_, err := q.refresh(ctx)
	if err == nil {
		q.response.Outcome, q.response.Passages = Evidence, q.context
	}
	return err
}

// refresh decides again, by the store's present rows, which passages of the context
// the principal may read, and takes out the others: the model took its time.
func (q *answering) refresh(ctx context.Context) (gone bool, err error) {
	present := map[string]uint32{} // versions, 0 of none
	kept := q.context[:0:0]
	for _, p := range q.context {
		version, known := present[p.Key]
		if !known {
			content, err := q.Searcher.Document(ctx, q.request.Principal, q.request.Collection, p.Key)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return false, err
			}
			version = content.Version
			present[p.Key] = version
		}
		if version == p.Version {
			kept = append(kept, p)
		} else {
			q.gone[p.ID], gone = true, true
		}
	}
	q.context = kept
	return gone, nil
}

func (q *answering) degraded(stages ...string) {
	for _, stage := range stages {
		if !slices.Contains(q.response.Degraded, stage) {
			q.response.Degraded = append(q.response.Degraded, stage)
		}
	}
}

func (q *answering) ended(stage string) {
	now := time.Now()
	q.trace.AddSpan(trace.Span{Name: stage, Start: q.began, End: now})
	q.began = now
}

// speak sets the language of the collection's texts.
func (q *answering) speak(analyzer string) error {
	a, err := text.New(analyzer)
	q.language = ground.NewLanguage(a.Terms, analyzer == "german")
	return err
}
