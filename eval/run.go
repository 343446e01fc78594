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
)

// Options of a run.
type Options struct {
	Dataset    string         // directory
	Split      string         // "" for all cases
	Strategies []string       // at least one
	Fusion     string         // of all searches; "": the service's choice
	Ranking    client.Ranking // likewise, where it is 0
	Ingest     bool           // write the data set first
	Chunker    string         // of the collection it is written to; "": by format
	CodeBits   int            // of the collection it is written to; 0: the service's choice
	Connect    Connector
	Probes     bool   // ask for every document as those who may not see it; Connect is called once more for every principal, for a service of its own
	Out        string // directory for run.json, cases.jsonl and report.md; "" for none
	Command    string // as stated in the outputs
	Kernels    string // kernel set in use, as stated in the outputs
	// Progress hears how many of a stage's steps are done: "ingest" (documents),
	// "listings" (principals), "search" (cases × strategies), "probes" and "worlds" (probes). It may be nil.
	Progress func(stage string, done, total int)
}

// ErrDisagreement means that the labels say more is visible than the service
// shows: one of the two is wrong, and no figure would mean anything.
var ErrDisagreement = errors.New("the labels and the service disagree")

// Run carries out the gate and writes its outputs. The report's Outcome is also
// the process's exit code. The error is nil unless the outcome is Failed; a leak,
// a scope failure and a degraded response are findings, not errors.
func Run(ctx context.Context, o Options) (Report, error) {
	report, _, err := answered(ctx, o)
	return report, err
}

// answered is Run with the answers that the report sums up.
func answered(ctx context.Context, o Options) (Report, []Answer, error) {
	r, err := newRunner(ctx, o)
	if err != nil {
		return Report{}, nil, err
	}
	err = errors.Join(r.run(ctx), r.backend.Close())
	if err == nil && len(r.probed) > 0 {
		err = r.compareWorlds(ctx)
	}
	report, err := r.finish(err)
	return report, r.answers, err
}

// newRunner loads the data set and connects to the service; the backend is to be
// closed.
func newRunner(ctx context.Context, o Options) (*runner, error) {
	dataset, err := Load(o.Dataset)
	if err != nil {
		return nil, err
	}
	cases, err := dataset.Select(o.Split)
	if err != nil {
		return nil, err
	}
	if len(o.Strategies) == 0 || len(slices.Compact(slices.Sorted(slices.Values(o.Strategies)))) < len(o.Strategies) {
		return nil, fmt.Errorf("strategies %q: name at least one and each once, as in sparse,dense,hybrid", o.Strategies)
	}
	report, err := newReport(ctx, o, dataset, cases)
	if err != nil {
		return nil, err
	}
	backend, err := o.Connect(ctx, dataset)
	if err != nil {
		return nil, fmt.Errorf("connecting to the service: %w", err)
	}
	return &runner{
		options: o, dataset: dataset, cases: cases, backend: backend, report: report,
		sessions: map[string]Session{}, texts: map[string]string{}, done: map[string]int{}, probed: map[probe]observed{},
	}, nil
}

// runner is the state of one run; it lives on one goroutine.
type runner struct {
	options  Options
	dataset  *Dataset
	cases    []Case
	backend  Backend
	report   Report
	answers  []Answer
	sessions map[string]Session // by principal
	texts    map[string]string  // normalised, by tenant and key
	done     map[string]int     // steps by stage
	probed   map[probe]observed
}

// run stops after the listings if they differ from the labels.
func (r *runner) run(ctx context.Context) error {
	if err := r.open(ctx); err != nil || len(r.report.Findings) > 0 {
		return err
	}
	if err := r.each(ctx, r.try); err != nil || !r.options.Probes {
		return err
	}
	return r.probe(ctx)
}

// open writes the data set, if it is to be written, and checks the listings.
func (r *runner) open(ctx context.Context) error {
	if r.options.Ingest {
		if err := r.build(ctx); err != nil {
			return err
		}
	}
	return r.checkListings(ctx)
}

// each visits the cases in order.
func (r *runner) each(ctx context.Context, visit func(ctx context.Context, t trial) error) error {
	documents := map[string]map[string]Document{}
	for _, tenant := range r.dataset.Tenants() {
		documents[tenant] = r.dataset.current(tenant)
	}
	for _, c := range r.cases {
		asker, _ := r.dataset.principal(c.Principal)
		t := trial{
			Case: c, asker: asker, matching: r.dataset.Matching,
			visible: r.dataset.Visible[c.Principal], documents: documents[asker.Tenant],
		}
		if err := visit(ctx, t); err != nil {
			return fmt.Errorf("case %s: %w", c.ID, err)
		}
	}
	return nil
}

// finish settles the outcome and writes the outputs, unless the run broke off.
func (r *runner) finish(err error) (Report, error) {
	if err != nil {
		return r.report, err
	}
	r.report.Outcome = outcomeOf(r.report.Findings)
	r.report.Strategies = summarize(r.options.Strategies, metricsOf(r.dataset.Cutoffs), r.cases, r.answers)
	if r.report.Associations, err = associate(r.cases, r.answers, r.options.Strategies); err != nil {
		r.report.Outcome = Failed
		return r.report, err
	}
	if err := runDirectory(r.report, "cases.jsonl", r.answers).write(r.options.Out); err != nil {
		r.report.Outcome = Failed
		return r.report, err
	}
	if r.report.Outcome == Failed {
		return r.report, disagreement(r.report.Findings)
	}
	return r.report, nil
}

func disagreement(findings []Finding) error {
	var lines []string
	for _, f := range findings {
		lines = append(lines, f.String())
	}
	return fmt.Errorf("%w:\n%s", ErrDisagreement, strings.Join(lines, "\n"))
}

func (r *runner) session(ctx context.Context, name string) (Session, error) {
	if session, ok := r.sessions[name]; ok {
		return session, nil
	}
	p, _ := r.dataset.principal(name)
	session, err := r.backend.As(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("identity of %s: %w", name, err)
	}
	r.sessions[name] = session
	return session, nil
}

// try asks one case with every strategy.
func (r *runner) try(ctx context.Context, t trial) error {
	session, err := r.session(ctx, t.Principal)
	if err != nil {
		return err
	}
	if t.evidence, err = r.locateAll(ctx, session, t); err != nil {
		return err
	}
	for _, strategy := range r.options.Strategies {
		if err := r.ask(ctx, session, t, strategy); err != nil {
			return fmt.Errorf("%s: %w", strategy, err)
		}
		r.progress("search", 1)
	}
	return nil
}

func (r *runner) ask(ctx context.Context, session Session, t trial, strategy string) error {
	request := client.SearchRequest{Query: t.Query, K: r.dataset.Depth, Strategy: strategy, Fusion: r.options.Fusion, Ranking: rankingOf(r.options.Ranking), Scope: t.scope()}
	start := time.Now()
	response, err := session.Search(ctx, r.dataset.Name, request)
	took := time.Since(start)
	if err != nil {
		return fmt.Errorf("searching: %w", err)
	}
	if err := r.checkRanges(t.asker.Tenant, response.Results); err != nil {
		return err
	}
	r.report.Findings = append(r.report.Findings, t.judge(strategy, response, start)...)
	r.report.addPlan(strategy, response.Plan)
	r.answers = append(r.answers, t.answer(strategy, response, took))
	return nil
}

// locateAll resolves the evidence to ranges of the texts that the service holds.
func (r *runner) locateAll(ctx context.Context, session Session, t trial) ([]located, error) {
	var items []located
	for _, e := range t.Evidence {
		item := located{Evidence: e}
		if e.Quote != "" {
			text, err := r.text(ctx, session, t.asker.Tenant, e)
			if err != nil {
				return nil, err
			}
			if item.start, item.end, err = e.locate(text, r.dataset.Matching); err != nil {
				return nil, fmt.Errorf("the data set is refused: document %s: %w", e.Documents[0], err)
			}
		}
		items = append(items, item)
	}
	return items, nil
}

// text gets the normalised text of a quoted document, once.
func (r *runner) text(ctx context.Context, session Session, tenant string, e Evidence) (string, error) {
	key := e.Documents[0]
	if text, ok := r.texts[textKey(tenant, key)]; ok {
		return text, nil
	}
	doc, err := session.Document(ctx, r.dataset.Name, key)
	if err != nil {
		return "", fmt.Errorf("getting document %s: %w", key, err)
	}
	if doc.Version != e.Version {
		return "", fmt.Errorf("document %s is at version %d, the evidence is of version %d", key, doc.Version, e.Version)
	}
	r.texts[textKey(tenant, key)] = doc.Text
	return doc.Text, nil
}

// textKey joins two names that may hold anything but NUL.
func textKey(tenant, key string) string { return tenant + "\x00" + key }

// checkRanges holds results against the texts at hand: were ranges counted in
// another way than the quotes are located, every figure would be wrong.
func (r *runner) checkRanges(tenant string, results []client.SearchResult) error {
	for _, result := range results {
		text, ok := r.texts[textKey(tenant, result.Document)]
		if !ok {
			continue
		}
		if result.Start < 0 || result.Start > result.End || result.End > len(text) || text[result.Start:result.End] != result.Text {
			return fmt.Errorf("result %s [%d, %d) does not have the text of that range", result.Document, result.Start, result.End)
		}
	}
	return nil
}

// progress says that n more steps of a stage are done.
func (r *runner) progress(stage string, n int) {
	if r.options.Progress == nil {
		return
	}
	total := map[string]int{
		"ingest":   len(r.dataset.Documents),
		"listings": len(r.dataset.Principals),
		"search":   len(r.cases) * len(r.options.Strategies),
	}
	if stage == "probes" || stage == "worlds" {
		for _, p := range r.dataset.Principals {
			total[stage] += len(r.dataset.probesOf(p, r.options.Strategies))
		}
	}
	r.done[stage] += n
	r.options.Progress(stage, r.done[stage], total[stage])
}

// newReport states what is run, where and on what.
func newReport(ctx context.Context, o Options, d *Dataset, cases []Case) (Report, error) {
	digest, err := d.Digest()
	if err != nil {
		return Report{}, err
	}
	return Report{
		Dataset: d.Name, Digest: digest, Split: o.Split, Notes: slices.Clone(d.Notes),
		Documents: len(d.Documents), Cases: len(cases), Answerable: countAnswerable(cases), Depth: d.Depth,
		Command: o.Command, Commit: figures.Commit(ctx), Environment: figures.Local(o.Kernels), Date: time.Now().UTC(),
		Plans: map[string][]string{}, Findings: []Finding{},
	}, nil
}

func countAnswerable(cases []Case) int {
	n := 0
	for _, c := range cases {
		if len(c.Evidence) > 0 {
			n++
		}
	}
	return n
}
