package server

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/model/chat"
	"sluice/retrieve"
	answers "sluice/retrieve/answer"
	"sluice/store"
)

// answering is a daemon whose backend answers so.
func answering(t *testing.T, answer func(ctx context.Context, r answers.Request) (answers.Response, error)) *daemon {
	d := start(t, func(s *setup) { s.backend = func(f *fake) { f.onAnswer = answer } })
	d.collection(client.Document{Key: "k", Format: "text", Text: "text"})
	return d
}

var answered = answers.Response{
	Outcome: answers.Answered, Sentences: []answers.Sentence{{Text: "It is so.", Citations: []string{"S1"}}},
	Passages: []answers.Passage{{ID: "S1", Key: "k", Version: 2, Title: "T", Start: 3, End: 7, Headings: []string{"H"}, Text: "text"}},
	Queries:  []string{"rewritten", "asked"}, Dropped: map[string]int{"number": 2}, Degraded: []string{"context_cut"}, Model: "m",
	Usage: answers.Usage{Calls: 2, Context: 90, Usage: chat.Usage{Prompt: 100, Completion: 10}, Cost: .5}, Search: retrieve.Response{Visible: 3, OutOfScope: 1, Epoch: 7},
}

var answeredWire = client.Answer{
	Outcome: "answered", Sentences: []client.AnswerSentence{{Text: "It is so.", Citations: []string{"S1"}}},
	Passages: []client.AnswerPassage{{ID: "S1", Document: "k", Version: 2, Title: "T", Start: 3, End: 7, Headings: []string{"H"}, Text: "text"}},
	Queries:  []string{"rewritten", "asked"}, Dropped: map[string]int{"number": 2}, Degraded: []string{"context_cut"}, Model: "m",
	Counts: client.Counts{Visible: 3, OutOfScope: 1}, Usage: client.AnswerUsage{Calls: 2, ContextTokens: 90, PromptTokens: 100, CompletionTokens: 10, Cost: .5},
}

func TestAnswer(t *testing.T) {
	d := answering(t, func(context.Context, answers.Request) (answers.Response, error) { return answered, nil })
	region := "US"
	got, err := d.as("alice").Answer(t.Context(), "c", client.AnswerRequest{
		Question: "asked", History: []client.Turn{{Question: "before", Answer: "so"}}, Scope: &client.Scope{Region: &region},
	})
	require.NoError(t, err)
	require.Equal(t, answeredWire, got)
	asked := d.fake.asked[0]
	require.Equal(t, "alice", asked.Principal.Subject)
	require.Equal(t, "c", asked.Collection)
	require.Equal(t, []answers.Turn{{Question: "before", Answer: "so"}}, asked.History)
	require.Equal(t, "US", asked.Scope.Region)
}

// A refusal is an answer: its lists are there, and empty.
func TestAnswerThatIsNone(t *testing.T) {
	d := answering(t, func(context.Context, answers.Request) (answers.Response, error) {
		return answers.Response{Outcome: answers.NoAnswer, Reason: answers.Declined, Queries: []string{"q"}, Dropped: map[string]int{}}, nil
	})
	a := d.send("POST", "/v1/collections/c/answer", `{"question": "q"}`, "Authorization", bearer("alice"))
	require.Equal(t, 200, a.status, a.body)
	require.JSONEq(t, `{"outcome": "no_answer", "reason": "declined", "sentences": [], "passages": [], "queries": ["q"], "dropped": {}, "degraded": [],
		"counts": {"visible": 0, "out_of_scope": 0}, "usage": {"calls": 0, "context_tokens": 0, "prompt_tokens": 0, "completion_tokens": 0, "cost": 0}}`, a.body)
}

func TestAnswerRequestsThatAreRefused(t *testing.T) {
	d := answering(t, nil)
	long, _ := strings.CutSuffix(strings.Repeat("x", 9<<10), "y")
	for body, want := range map[string]int{
		`{}`: 400, `{"question": ""}`: 400, `{"question": "` + long + `"}`: 400, `{"question": "q", "model": "x"}`: 400, `{"question": 3}`: 400, `[]`: 400,
		`{"question": "q", "history": [{"answer": "a"}]}`: 400, `{"question": "q", "history": [null]}`: 400,
		`{"question": "` + strings.Repeat("x", 400<<10) + `"}`: 413,
	} {
		require.Equal(t, want, d.send("POST", "/v1/collections/c/answer", body, "Authorization", bearer("alice")).status, "%.40s", body)
		require.Equal(t, want, d.send("POST", "/v1/collections/c/answer", body, "Authorization", bearer("alice"), "Accept", "text/event-stream").status, "%.40s", body)
	}
	require.Equal(t, 401, d.send("POST", "/v1/collections/c/answer", `{"question": "q"}`).status)
	for _, accept := range []string{"application/json", "text/event-stream"} {
		require.Equal(t, 404, d.send("POST", "/v1/collections/none/answer", `{"question": "q"}`, "Authorization", bearer("alice"), "Accept", accept).status)
	}
}

func TestStreamedAnswer(t *testing.T) {
	d := answering(t, func(_ context.Context, r answers.Request) (answers.Response, error) {
		r.Searching(answered.Queries)
		return answered, nil
	})
	var events []client.AnswerEvent
	got, err := d.as("alice").StreamAnswer(t.Context(), "c", client.AnswerRequest{Question: "asked"}, func(e client.AnswerEvent) error {
		events = append(events, e)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, answeredWire, got)
	require.Equal(t, []client.AnswerEvent{{Queries: answered.Queries}, {Sentence: &answeredWire.Sentences[0]}, {Answer: &answeredWire}}, events)
	a := d.send("POST", "/v1/collections/c/answer", `{"question": "q"}`, "Authorization", bearer("alice"), "Accept", "text/event-stream")
	require.Equal(t, "text/event-stream", a.header.Get("Content-Type"))
	require.True(t, strings.HasPrefix(a.body, `data: {"queries":`) && strings.HasSuffix(a.body, "}\n\n"), a.body)
}

// What goes wrong after the stream began is its last event, and says no more
// than an answer would.
func TestStreamedAnswersThatFail(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status int
	}{
		"invalid": {store.ErrInvalid, 400}, "fault": {errors.New("secret"), 500}, "panic": {nil, 500},
	} {
		d := answering(t, func(context.Context, answers.Request) (answers.Response, error) {
			if c.err == nil {
				panic("secret")
			}
			return answers.Response{}, c.err
		})
		_, err := d.as("alice").StreamAnswer(t.Context(), "c", client.AnswerRequest{Question: "q"}, func(client.AnswerEvent) error { return nil })
		var p *client.Problem
		require.ErrorAs(t, err, &p, name)
		require.Equal(t, c.status, p.Status, name)
		require.NotContains(t, p.Detail, "secret", name)
	}
}

// A client that goes ends the answer.
func TestClientsThatLeaveAnAnswer(t *testing.T) {
	ended := make(chan error, 1)
	began := make(chan struct{})
	d := answering(t, func(ctx context.Context, r answers.Request) (answers.Response, error) {
		close(began)
		for ctx.Err() == nil { // until a write finds out
			r.Searching([]string{strings.Repeat("x", 32<<10)})
		}
		ended <- ctx.Err()
		return answers.Response{}, ctx.Err()
	})
	stopped := errors.New("enough")
	_, err := d.as("alice").StreamAnswer(t.Context(), "c", client.AnswerRequest{Question: "q"}, func(client.AnswerEvent) error { return stopped })
	require.ErrorIs(t, err, stopped)
	<-began
	require.ErrorIs(t, <-ended, context.Canceled)
}

func TestAnswerMetrics(t *testing.T) {
	d := start(t)
	m := NewAnswerMetrics(d.registry)
	m.Asked("answer", time.Second, nil)
	m.Asked("answer", time.Second, errors.New("no"))
	m.Answered(answered)
	m.Answered(answers.Response{Outcome: answers.NoAnswer, Reason: answers.Declined})
	text := d.send("GET", "/metrics", "", "Authorization", bearer("root")).body
	for _, line := range []string{
		`sluice_answers_total{outcome="answered",reason=""} 1`,
		`sluice_answers_total{outcome="no_answer",reason="declined"} 1`,
		`sluice_answer_sentences_dropped_total{reason="number"} 2`,
		`sluice_answer_model_calls_total{purpose="answer",result="failed"} 1`,
		`sluice_answer_model_calls_total{purpose="answer",result="ok"} 1`,
		`sluice_answer_model_duration_seconds_sum{purpose="answer"} 2`,
		`sluice_answer_tokens_sum{kind="prompt"} 100`,
		`sluice_answer_tokens_count{kind="completion"} 1`, // without a model, none
		`sluice_answer_cost_sum 0.5`,
	} {
		require.Contains(t, text, line+"\n")
	}
}
