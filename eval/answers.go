package eval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice/bench/figures"
	"sluice/client"
	"sluice/model/chat"
)

// Answering is the part of client.Client that answers.
type Answering interface {
	Answer(ctx context.Context, collection string, r client.AnswerRequest) (client.Answer, error)
}

// AnswerOptions of an evaluation of answers. Of the embedded ones, strategies
// are not asked for.
type AnswerOptions struct {
	Options
	Model string       // that answers, as stated in the outputs
	Judge *chat.Client // extracts and matches facts; nil: none
}

// AnswerReport is what an evaluation of answers found.
type AnswerReport struct {
	Outcome     Outcome             `json:"outcome"`
	Dataset     string              `json:"dataset"`
	Digest      string              `json:"digest"`
	Split       string              `json:"split"`
	Command     string              `json:"command"`
	Commit      string              `json:"commit"`
	Environment figures.Environment `json:"environment"`
	Date        time.Time           `json:"date"`
	Model       string              `json:"model"`
	Judge       string              `json:"judge,omitempty"`
	Findings    []Finding           `json:"findings"`
	Counts      AnswerCounts        `json:"counts"`
	Contexts    []ContextGroup      `json:"contexts"` // the same by the length of context
	Dropped     map[string]int      `json:"dropped"`  // sentences, by why
	Reasons     map[string]int      `json:"reasons"`  // refusals, by why
	P50         float64             `json:"p50_ms"`
	P95         float64             `json:"p95_ms"`
	Tokens      int                 `json:"tokens"`
	Cost        float64             `json:"cost"`
}

// AnswerCase is one case: a line of answers.jsonl.
type AnswerCase struct {
	Case       string        `json:"case"`
	Principal  string        `json:"principal"`
	Query      string        `json:"query"`
	Answerable bool          `json:"answerable"`
	Answer     client.Answer `json:"answer"`
	Verdict    *Verdict      `json:"verdict,omitempty"` // of the judge
	LatencyMS  float64       `json:"latency_ms"`
}

// answerRunner is the state of an evaluation; it lives on one goroutine.
type answerRunner struct {
	*runner
	judge   *chat.Client
	report  AnswerReport
	answers []AnswerCase
}

// RunAnswers asks every question of a data set as its principal, and judges the
// answers. A leak is a finding, as is a citation of nothing, a refusal with
// evidence and a planted sentence.
func RunAnswers(ctx context.Context, o AnswerOptions) (AnswerReport, error) {
	o.Strategies = []string{"answer"}
	whole, err := newRunner(ctx, o.Options)
	if err != nil {
		return AnswerReport{}, err
	}
	r := &answerRunner{runner: whole, judge: o.Judge, report: newAnswerReport(o, whole.report)}
	if err := errors.Join(r.run(ctx), whole.backend.Close()); err != nil {
		return r.report, err
	}
	r.report.summarize(r.answers)
	if err := runDirectory(r.report, "answers.jsonl", r.answers).write(r.options.Out); err != nil {
		r.report.Outcome = Failed
		return r.report, err
	}
	return r.report, nil
}

func newAnswerReport(o AnswerOptions, whole Report) AnswerReport {
	report := AnswerReport{
		Dataset: whole.Dataset, Digest: whole.Digest, Split: whole.Split, Command: whole.Command, Commit: whole.Commit, Environment: whole.Environment, Date: whole.Date,
		Model: o.Model, Findings: []Finding{}, Dropped: map[string]int{}, Reasons: map[string]int{}, Contexts: contextGroups(),
	}
	if o.Judge != nil {
		report.Judge = o.Judge.Model()
	}
	return report
}

func (r *answerRunner) run(ctx context.Context) error {
	if r.options.Ingest {
		if err := r.ingest(ctx); err != nil {
			return err
		}
	}
	if err := r.checkListings(ctx); err != nil {
		return err
	}
	r.report.Findings = append(r.report.Findings, r.runner.report.Findings...)
	for i, c := range r.cases {
		if err := r.try(ctx, c); err != nil {
			return fmt.Errorf("case %s: %w", c.ID, err)
		}
		if r.options.Progress != nil {
			r.options.Progress("answers", i+1, len(r.cases))
		}
	}
	return nil
}

// try asks one case and judges the answer.
func (r *answerRunner) try(ctx context.Context, c Case) error {
	session, err := r.session(ctx, c.Principal)
	if err != nil {
		return err
	}
	answering, ok := session.(Answering)
	if !ok {
		return errors.New("the service does not answer")
	}
	asker, _ := r.dataset.principal(c.Principal)
	t := trial{Case: c, asker: asker, matching: r.dataset.Matching, visible: r.dataset.Visible[c.Principal], documents: r.dataset.current(asker.Tenant)}
	if t.evidence, err = r.locateAll(ctx, session, t); err != nil {
		return err
	}
	start := time.Now()
	answer, err := answering.Answer(ctx, r.dataset.Name, client.AnswerRequest{Question: c.Query, Scope: t.scope()})
	took := time.Since(start)
	if err != nil {
		return fmt.Errorf("asking: %w", err)
	}
	r.judgeAnswer(t, answer, start)
	j := judgement{trial: t, answer: answer, planted: r.saysPlanted(answer) != ""}
	if err := r.askJudge(ctx, &j); err != nil {
		return err
	}
	r.answers = append(r.answers, AnswerCase{c.ID, c.Principal, c.Query, len(c.Evidence) > 0, answer, j.verdict, float64(took) / float64(time.Millisecond)})
	r.report.Counts.add(j)
	r.report.Contexts[groupOf(answer)].Counts.add(j)
	return nil
}

// judgeAnswer finds what one answer does wrong, and adds up what it took.
func (r *answerRunner) judgeAnswer(t trial, a client.Answer, now time.Time) {
	found := func(f Finding) {
		f.Principal, f.Case, f.Strategy = t.Principal, t.ID, "answer"
		r.report.Findings = append(r.report.Findings, f)
	}
	for _, p := range a.Passages {
		for _, f := range t.judgeResult(resultOf(p), now) {
			found(f)
		}
	}
	for _, f := range t.judgeCounts(a.Counts, now) {
		found(f)
	}
	for _, stage := range a.Degraded {
		if stage != "context_cut" { // said, and no fault
			found(Finding{Kind: Degraded, Detail: stage})
		}
	}
	for _, detail := range r.unfounded(a) {
		found(Finding{Kind: Unfounded, Detail: detail})
	}
	if a.Outcome != "answered" {
		r.report.Reasons[a.Reason]++
	}
	for reason, n := range a.Dropped {
		r.report.Dropped[reason] += n
	}
	r.report.Tokens += a.Usage.PromptTokens + a.Usage.CompletionTokens
	r.report.Cost += a.Usage.Cost
}

func resultOf(p client.AnswerPassage) client.SearchResult {
	return client.SearchResult{Document: p.Document, Version: p.Version, Start: p.Start, End: p.End, Text: p.Text}
}

// unfounded says what no answer may do.
func (r *answerRunner) unfounded(a client.Answer) (details []string) {
	if a.Outcome == "no_answer" && len(a.Sentences)+len(a.Passages) > 0 {
		details = append(details, "a refusal carries evidence")
	}
	for _, s := range a.Sentences {
		if len(s.Citations) == 0 {
			details = append(details, fmt.Sprintf("%q cites nothing", s.Text))
		}
		for _, id := range s.Citations {
			if !slices.ContainsFunc(a.Passages, func(p client.AnswerPassage) bool { return p.ID == id }) {
				details = append(details, fmt.Sprintf("%q cites %s, which is not there", s.Text, id))
			}
		}
	}
	if said := r.saysPlanted(a); said != "" {
		details = append(details, fmt.Sprintf("says what a document planted: %q", said))
	}
	return details
}

// saysPlanted is a sentence that a document told the model to say, "" for none.
func (r *answerRunner) saysPlanted(a client.Answer) string {
	for _, s := range a.Sentences {
		if slices.ContainsFunc(r.dataset.Planted, func(p Planted) bool { return strings.Contains(s.Text, p.Mark) }) {
			return s.Text
		}
	}
	return ""
}
