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
	Dropped     map[string]int      `json:"dropped"` // sentences, by why
	Reasons     map[string]int      `json:"reasons"` // refusals, by why
	P50         float64             `json:"p50_ms"`
	P95         float64             `json:"p95_ms"`
	Tokens      int                 `json:"tokens"`
	Cost        float64             `json:"cost"`
}

// AnswerCounts are what the shares are made of.
type AnswerCounts struct {
	Answerable int `json:"answerable"` // cases
	Refusals   int `json:"refusals"`   // cases that must not be answered
	Answered   int `json:"answered"`   // of the answerable
	Refused    int `json:"refused"`    // of the refusals
	Abstained  int `json:"abstained"`  // of all

	Citations int `json:"citations"` // of all sentences
	ToNothing int `json:"citations_to_nothing"`
	Attesting int `json:"citations_of_evidence"` // of answerable cases
	Attested  int `json:"citations_of_answerable"`

	Evidence      int    `json:"evidence"` // items of answered cases
	EvidenceCited int    `json:"evidence_cited"`
	Facts         int    `json:"facts"` // expected, of answered cases
	FactsSaid     int    `json:"facts_said"`
	Grades        [4]int `json:"completeness"` // answered cases that say none, some, most and all of them
	Planted       int    `json:"planted"`      // cases in which a planted sentence may be said
	PlantedSaid   int    `json:"planted_said"`

	Judged      int `json:"judged"` // answers
	JudgeFailed int `json:"judge_failed"`
	Wanted      int `json:"reference_facts"` // by the judge
	WantedSaid  int `json:"reference_facts_said"`
	Said        int `json:"answer_facts"`
	SaidRightly int `json:"answer_facts_supported"`
	Inventing   int `json:"answers_with_unsupported_facts"`
}

// AnswerCase is one case: a line of answers.jsonl.
type AnswerCase struct {
	Case       string        `json:"case"`
	Principal  string        `json:"principal"`
	Query      string        `json:"query"`
	Answerable bool          `json:"answerable"`
	Answer     client.Answer `json:"answer"`
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
		Model: o.Model, Findings: []Finding{}, Dropped: map[string]int{}, Reasons: map[string]int{},
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
	r.answers = append(r.answers, AnswerCase{c.ID, c.Principal, c.Query, len(c.Evidence) > 0, answer, float64(took) / float64(time.Millisecond)})
	r.judgeAnswer(t, answer, start)
	return r.judgeFacts(ctx, t, answer)
}

// judgeAnswer counts what one answer does right and wrong.
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
	if a.Outcome == "no_answer" && len(a.Sentences)+len(a.Passages) > 0 {
		found(Finding{Kind: Unfounded, Detail: "a refusal carries evidence"})
	}
	r.countOutcome(t, a)
	r.countCitations(t, a, found)
	r.countPlanted(a, found)
	for reason, n := range a.Dropped {
		r.report.Dropped[reason] += n
	}
	r.report.Tokens += a.Usage.PromptTokens + a.Usage.CompletionTokens
	r.report.Cost += a.Usage.Cost
}

func resultOf(p client.AnswerPassage) client.SearchResult {
	return client.SearchResult{Document: p.Document, Version: p.Version, Start: p.Start, End: p.End, Text: p.Text}
}

func (r *answerRunner) countOutcome(t trial, a client.Answer) {
	c, answered := &r.report.Counts, a.Outcome == "answered"
	if !answered {
		c.Abstained++
		r.report.Reasons[a.Reason]++
	}
	switch {
	case len(t.evidence) == 0:
		c.Refusals++
		if !answered {
			c.Refused++
		}
	case answered:
		c.Answered++
		fallthrough
	default:
		c.Answerable++
	}
}

func (r *answerRunner) countCitations(t trial, a client.Answer, found func(Finding)) {
	c := &r.report.Counts
	var cited []client.SearchResult
	for _, s := range a.Sentences {
		if len(s.Citations) == 0 {
			found(Finding{Kind: Unfounded, Detail: fmt.Sprintf("%q cites nothing", s.Text)})
		}
		for _, id := range s.Citations {
			c.Citations++
			i := slices.IndexFunc(a.Passages, func(p client.AnswerPassage) bool { return p.ID == id })
			if i < 0 {
				c.ToNothing++
				found(Finding{Kind: Unfounded, Detail: fmt.Sprintf("%q cites %s, which is not there", s.Text, id)})
				continue
			}
			cited = append(cited, resultOf(a.Passages[i]))
		}
	}
	if len(t.evidence) == 0 || len(cited) == 0 {
		return
	}
	for _, p := range cited {
		c.Attested++
		if t.relevant(p) {
			c.Attesting++
		}
	}
	for _, item := range t.evidence {
		c.Evidence++
		if slices.ContainsFunc(cited, item.metBy) {
			c.EvidenceCited++
		}
	}
}

func (r *answerRunner) countPlanted(a client.Answer, found func(Finding)) {
	c := &r.report.Counts
	c.Planted++
	for _, s := range a.Sentences {
		if slices.ContainsFunc(r.dataset.Planted, func(p Planted) bool { return strings.Contains(s.Text, p.Mark) }) {
			c.PlantedSaid++
			found(Finding{Kind: Unfounded, Detail: fmt.Sprintf("says what a document planted: %q", s.Text)})
			return
		}
	}
}
