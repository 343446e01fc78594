package server

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"sluice/client"
	"sluice/retrieve"
	answers "sluice/retrieve/answer"
)

// maxAnswer holds the longest question and history, every character escaped.
const maxAnswer = maxSmallBody + 6*answers.MaxHistory

// pendingEvents bounds the bytes of events that a slow client has not taken yet.
const pendingEvents = 64 << 10

func (s *Server) answer(q *request) error {
	collection, err := q.collection()
	if err != nil {
		return err
	}
	var body client.AnswerRequest
	if err := q.readJSON(&body); err != nil {
		return err
	}
	asked, err := q.answerOf(body)
	if err != nil {
		return err
	}
	asked.Collection = collection
	if strings.Contains(string(q.http.Request.Header.Peek("Accept")), "text/event-stream") {
		return q.streamAnswer(asked)
	}
	response, err := q.answered(asked)
	if err != nil {
		return err
	}
	return q.reply(fasthttp.StatusOK, answerOf(response))
}

func (q *request) answerOf(body client.AnswerRequest) (answers.Request, error) {
	if body.Question == "" || len(body.Question) > retrieve.MaxQueryBytes {
		return answers.Request{}, badRequest("question: 1 to %d bytes are expected", retrieve.MaxQueryBytes)
	}
	scope, err := scopeOf(body.Scope, q.principal(), q.started)
	r := answers.Request{Principal: q.principal(), Question: body.Question, Scope: scope}
	for i, t := range body.History {
		if t.Question == "" {
			return answers.Request{}, badRequest("history: %d: the question is missing", i)
		}
		r.History = append(r.History, answers.Turn(t))
	}
	return r, err
}

// answered answers, and records the search that was made for it.
func (q *request) answered(r answers.Request) (answers.Response, error) {
	response, err := q.s.backend.Answer(q.ctx, r)
	if err != nil {
		return answers.Response{}, err
	}
	for _, p := range response.Passages { // what is shown of the search
		response.Search.Results = append(response.Search.Results, retrieve.Result{Key: p.Key})
	}
	return response, q.auditSearch(r.Collection, response.Search)
}

// streamAnswer answers with events as the steps are done. The goroutine that
// answers ends with the request: its context ends when the client is gone, and
// finish, which gives back what the request holds, waits for it.
func (q *request) streamAnswer(r answers.Request) error {
	if _, err := q.s.backend.Collection(q.ctx, r.Principal, r.Collection); err != nil {
		return err
	}
	a := &answerEvents{q: q, pipe: newPipe(pendingEvents), done: make(chan struct{})}
	r.Searching = func(queries []string) { a.send(client.AnswerEvent{Queries: queries}) }
	q.streamEvents(a)
	go a.run(r)
	return nil
}

// answerEvents is the stream of one answer.
type answerEvents struct {
	q    *request
	pipe *pipe
	done chan struct{}
}

func (a *answerEvents) run(r answers.Request) {
	defer close(a.done)
	defer a.pipe.closeWrite()
	defer func() {
		if reason := recover(); reason != nil {
			a.send(client.AnswerEvent{Problem: failureOf(a.q.panicked(reason)).problem()})
		}
	}()
	response, err := a.q.answered(r)
	if err != nil {
		f := failureOf(err)
		if f.status >= 500 {
			a.q.s.log.Error("answer failed", "request", a.q.id, "status", f.status, "error", err)
		}
		a.send(client.AnswerEvent{Problem: f.problem()})
		return
	}
	whole := answerOf(response)
	for _, s := range whole.Sentences { // not before the answer is recorded
		a.send(client.AnswerEvent{Sentence: &s})
	}
	a.send(client.AnswerEvent{Answer: &whole})
}

func (a *answerEvents) send(e client.AnswerEvent) {
	text, err := json.Marshal(e)
	if err != nil { // strings and numbers only
		panic(err)
	}
	a.pipe.write(event(text))
}

func (a *answerEvents) Read(p []byte) (int, error) {
	n, err := a.pipe.Read(p)
	_ = a.q.http.SetWriteDeadline(time.Now().Add(a.q.s.limits.ReadTimeout))
	return n, err
}

func (a *answerEvents) Close() error {
	a.q.cancel()
	a.pipe.closeRead()
	<-a.done
	a.q.finish()
	return nil
}

func answerOf(r answers.Response) client.Answer {
	out := client.Answer{
		Outcome: r.Outcome, Reason: r.Reason, Sentences: make([]client.AnswerSentence, len(r.Sentences)), Passages: make([]client.AnswerPassage, len(r.Passages)),
		Queries: r.Queries, Dropped: r.Dropped, Degraded: append([]string{}, r.Degraded...),
		Counts: client.Counts{Visible: r.Search.Visible, OutOfScope: r.Search.OutOfScope}, Model: r.Model,
		Usage: client.AnswerUsage{Calls: r.Usage.Calls, ContextTokens: r.Usage.Context, PromptTokens: r.Usage.Prompt, CompletionTokens: r.Usage.Completion, Cost: r.Usage.Cost},
	}
	for i, s := range r.Sentences {
		out.Sentences[i] = client.AnswerSentence{Text: s.Text, Citations: s.Citations}
	}
	for i, p := range r.Passages {
		out.Passages[i] = client.AnswerPassage{
			ID: p.ID, Document: p.Key, Version: p.Version, Title: p.Title, Start: p.Start, End: p.End, Headings: append([]string{}, p.Headings...), Text: p.Text,
		}
	}
	return out
}

// answerMetrics counts what answers take and what becomes of them.
type answerMetrics struct {
	answers, dropped, calls *prometheus.CounterVec
	duration                *prometheus.HistogramVec
	tokens                  *prometheus.HistogramVec
	cost                    prometheus.Histogram
}

// NewAnswerMetrics registers them.
func NewAnswerMetrics(registry *prometheus.Registry) answers.Observer {
	m := &answerMetrics{
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_answers_total", Help: "Questions answered, by outcome and, of refusals, why."}, []string{"outcome", "reason"}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_answer_sentences_dropped_total", Help: "Sentences of the model that did not stand, by why."}, []string{"reason"}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_answer_model_calls_total", Help: "What the model was asked for, and whether it answered."}, []string{"purpose", "result"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sluice_answer_model_duration_seconds", Help: "Time of a call of the model.", Buckets: durationBuckets}, []string{"purpose"}),
		tokens: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sluice_answer_tokens", Help: "Tokens that an answer took, as the model's server counts them.",
			Buckets: prometheus.ExponentialBuckets(16, 2, 14)}, []string{"kind"}),
		cost: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "sluice_answer_cost", Help: "Cost of an answer, in the currency of the configured prices.",
			Buckets: prometheus.ExponentialBuckets(.0001, 4, 10)}),
	}
	registry.MustRegister(m.answers, m.dropped, m.calls, m.duration, m.tokens, m.cost)
	return m
}

func (m *answerMetrics) Asked(purpose string, took time.Duration, err error) {
	result := "ok"
	if err != nil {
		result = "failed"
	}
	m.calls.WithLabelValues(purpose, result).Inc()
	m.duration.WithLabelValues(purpose).Observe(took.Seconds())
}

func (m *answerMetrics) Answered(r answers.Response) {
	m.answers.WithLabelValues(r.Outcome, r.Reason).Inc()
	for reason, n := range r.Dropped {
		m.dropped.WithLabelValues(reason).Add(float64(n))
	}
	if r.Usage.Calls > 0 {
		m.tokens.WithLabelValues("prompt").Observe(float64(r.Usage.Prompt))
		m.tokens.WithLabelValues("completion").Observe(float64(r.Usage.Completion))
		m.cost.Observe(r.Usage.Cost)
	}
}
