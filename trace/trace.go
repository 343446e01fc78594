// Package trace records the stages of one request, for whoever asked. Where
// nobody did, a nil Recorder takes everything and costs nothing.
package trace

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Span is one stage. Its name is all that is said of it: no span holds a text.
type Span struct {
	Name       string
	Start, End time.Time
}

// Took is how long the stage was.
func (s Span) Took() time.Duration { return s.End.Sub(s.Start) }

// maxSpans bounds what one request may record, as one of many documents.
const maxSpans = 256

// Recorder collects the spans of a request. It is safe for concurrent use.
type Recorder struct {
	mu    sync.Mutex
	spans []Span
	first [12]Span // of spans: as many as a search has
}

type key struct{}

// With returns a context whose stages are recorded.
func With(ctx context.Context, r *Recorder) context.Context { return context.WithValue(ctx, key{}, r) }

// From returns the recorder of a context, nil if there is none.
func From(ctx context.Context) *Recorder {
	r, _ := ctx.Value(key{}).(*Recorder)
	return r
}

// Now is when a stage begins, for Add; without a Recorder no clock is read.
func (r *Recorder) Now() time.Time {
	if r == nil {
		return time.Time{}
	}
	return time.Now()
}

// Add records a stage that began at start and ends now.
func (r *Recorder) Add(name string, start time.Time) {
	if r != nil {
		r.AddSpan(Span{name, start, time.Now()})
	}
}

// AddSpan records a stage that has ended.
func (r *Recorder) AddSpan(s Span) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.spans == nil {
		r.spans = r.first[:0]
	}
	if len(r.spans) < maxSpans {
		r.spans = append(r.spans, s)
	}
}

// Spans returns what was recorded so far, in the order in which it ended. It is
// to be read only.
func (r *Recorder) Spans() []Span {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clip(r.spans)
}
