package trace

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRecorder(t *testing.T) {
	r := &Recorder{}
	ctx := With(context.Background(), r)
	var all sync.WaitGroup
	for range 2 * maxSpans {
		all.Go(func() { From(ctx).Add("stage", From(ctx).Now()) })
	}
	all.Wait()
	require.Len(t, r.Spans(), maxSpans)
	for _, s := range r.Spans() {
		require.Equal(t, "stage", s.Name)
		require.False(t, s.End.Before(s.Start))
	}
}

func TestNothingIsRecordedForFree(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		r := From(ctx)
		began := r.Now()
		r.Add("stage", began)
		r.AddSpan(Span{"stage", began, began})
	}))
	require.Empty(t, From(ctx).Spans())
}

// What a search records costs no allocation beside that of the Recorder.
func TestFewSpansAllocateNothing(t *testing.T) {
	r := &Recorder{}
	require.Zero(t, testing.AllocsPerRun(10, func() {
		r.spans = nil
		for range len(r.first) {
			r.AddSpan(Span{Name: "stage"})
		}
	}))
	require.Len(t, r.Spans(), len(r.first))
}
