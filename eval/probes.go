package eval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"sluice/client"
	"sluice/statistics"
)

// probe asks for a document with its own words, as somebody who may not see it.
type probe struct {
	principal string
	tenant    string // the document's
	document  string
	query     string
	strategy  string // "" gets the document itself, by its key
}

// observed is all that an answer to a probe shows.
type observed struct {
	response client.SearchResponse
	problem  client.Problem
	took     time.Duration
}

// Probes sums up what they asked. Their failures are among the findings.
type Probes struct {
	Asked    int           `json:"asked"`
	Failures int           `json:"failures"` // answered otherwise than where the document does not exist
	Timings  []ProbeTiming `json:"timings"`
}

// ProbeTiming compares how long answers took with the document there and without
// it: medians in ms, and how likely a difference as large is by chance
// (Mann–Whitney). It is reported and decides nothing.
type ProbeTiming struct {
	Strategy string  `json:"strategy"`
	With     float64 `json:"with_p50_ms"`
	Without  float64 `json:"without_p50_ms"`
	P        float64 `json:"p"`
}

// byKey stands in reports for the strategy of a probe that has none.
const byKey = "by key"

// maxProbe bounds the bytes of a probe's query, which a search bounds too.
const maxProbe = 2 << 10

// probesOf are those of one principal: the title and the quotes of every document
// that the principal may not see, whatever its tenant, by every strategy.
func (d *Dataset) probesOf(p Principal, strategies []string) []probe {
	var all []probe
	for _, tenant := range d.Tenants() {
		current := d.current(tenant)
		for _, doc := range d.documentsOf(tenant) {
			_, visible := d.Visible[p.Name][doc.Key]
			if doc.Version != current[doc.Key].Version || visible && tenant == p.Tenant {
				continue
			}
			one := probe{principal: p.Name, tenant: tenant, document: doc.Key}
			all = append(all, one)
			for _, one.query = range d.wordsOf(doc) {
				for _, one.strategy = range strategies {
					all = append(all, one)
				}
			}
		}
	}
	return all
}

// wordsOf are a document's title and the quotes that cases have of it, or its
// longest line where they have none.
func (d *Dataset) wordsOf(doc Document) []string {
	lines := strings.Split(doc.Text, "\n")
	words := []string{cmp.Or(doc.Title, strings.Trim(lines[0], "# "))}
	for _, c := range d.Cases {
		asker, _ := d.principal(c.Principal)
		for _, e := range c.Evidence {
			if asker.Tenant == doc.Tenant && slices.Contains(e.Documents, doc.Key) && e.Version == doc.Version && e.Quote != "" {
				words = append(words, e.Quote)
			}
		}
	}
	if len(words) == 1 {
		words = append(words, slices.MaxFunc(lines, func(a, b string) int { return cmp.Compare(len(a), len(b)) }))
	}
	for i, w := range words {
		words[i] = strings.ToValidUTF8(w[:min(len(w), maxProbe)], "")
	}
	slices.Sort(words)
	return slices.DeleteFunc(slices.Compact(words), func(w string) bool { return strings.TrimSpace(w) == "" })
}

// without is the data set as it is where nothing exists that a principal may not
// see. Its tenants stay, in their order.
func (d *Dataset) without(p Principal) *Dataset {
	less := *d
	less.tenants = d.Tenants()
	less.Documents = slices.DeleteFunc(slices.Clone(d.Documents), func(doc Document) bool {
		_, visible := d.Visible[p.Name][doc.Key]
		return !visible || doc.Tenant != p.Tenant
	})
	return &less
}

// probe asks every principal's probes of the service as it is, and judges the
// answers as those of any search.
func (r *runner) probe(ctx context.Context) error {
	for _, p := range r.dataset.Principals {
		t := trial{asker: p, visible: r.dataset.Visible[p.Name], documents: r.dataset.current(p.Tenant)}
		for _, one := range r.dataset.probesOf(p, r.options.Strategies) {
			seen, err := r.observe(ctx, one)
			if err != nil {
				return err
			}
			t.Case = Case{ID: "probe of " + one.document, Principal: p.Name, Query: one.query}
			if one.strategy != "" {
				r.report.Findings = append(r.report.Findings, t.judge(one.strategy, seen.response, time.Now())...)
			}
			r.probed[one] = seen
			r.progress("probes", 1)
		}
	}
	return nil
}

// observe asks one probe. A document that may be read after all is a finding of
// the comparison, not an error.
func (r *runner) observe(ctx context.Context, p probe) (observed, error) {
	session, err := r.session(ctx, p.principal)
	if err != nil {
		return observed{}, err
	}
	var seen observed
	start := time.Now()
	if p.strategy == "" {
		_, err = session.Document(ctx, r.dataset.Name, p.document)
	} else {
		seen.response, err = session.Search(ctx, r.dataset.Name, client.SearchRequest{Query: p.query, K: r.dataset.Depth, Strategy: p.strategy, Explain: true})
	}
	seen.took = time.Since(start)
	var problem *client.Problem
	if errors.As(err, &problem) {
		seen.problem = *problem
		err = nil
	}
	if err != nil {
		return seen, fmt.Errorf("probing %s as %s: %w", p.document, p.principal, err)
	}
	return seen, nil
}

// compareWorlds asks each principal's probes once more where nothing exists that
// the principal may not see: every answer must be the same to the letter.
func (r *runner) compareWorlds(ctx context.Context) error {
	r.report.Probes = &Probes{Asked: len(r.probed)}
	with, without := map[string][]float64{}, map[string][]float64{}
	for _, p := range r.dataset.Principals {
		err := r.inWorld(ctx, p, func(one probe, there observed) {
			here, name := r.probed[one], cmp.Or(one.strategy, byKey)
			if part := here.differs(there); part != "" {
				r.report.Probes.Failures++
				r.report.Findings = append(r.report.Findings, Finding{
					Kind: ProbeFailure, Principal: p.Name, Case: "probe of " + one.document, Strategy: name,
					Detail: part + " differs from where the document does not exist",
				})
			}
			with[name], without[name] = append(with[name], here.ms()), append(without[name], there.ms())
		})
		if err != nil {
			return fmt.Errorf("the world of %s: %w", p.Name, err)
		}
	}
	for _, name := range append([]string{byKey}, r.options.Strategies...) {
		if len(with[name]) > 0 {
			r.report.Probes.Timings = append(r.report.Probes.Timings, timing(name, with[name], without[name]))
		}
	}
	return nil
}

// inWorld starts a service of the principal's own, and visits what it answers.
func (r *runner) inWorld(ctx context.Context, p Principal, visit func(probe, observed)) (err error) {
	less := r.dataset.without(p)
	backend, err := r.options.Connect(ctx, less)
	if err != nil {
		return fmt.Errorf("connecting to the service: %w", err)
	}
	defer func() { err = errors.Join(err, backend.Close()) }()
	options := r.options
	options.Progress = nil
	world := &runner{options: options, dataset: less, backend: backend, sessions: map[string]Session{}, done: map[string]int{}}
	if err := world.ingest(ctx); err != nil {
		return err
	}
	for _, one := range r.dataset.probesOf(p, r.options.Strategies) {
		there, err := world.observe(ctx, one)
		if err != nil {
			return err
		}
		visit(one, there)
		r.progress("worlds", 1)
	}
	return nil
}

// differs names the first part that is not the same, "" for none.
func (o observed) differs(there observed) string {
	if !reflect.DeepEqual(o.problem, there.problem) {
		return "the error"
	}
	a, b := reflect.ValueOf(o.response), reflect.ValueOf(there.response)
	for i := range a.NumField() {
		if !equalJSON(a.Field(i).Interface(), b.Field(i).Interface()) {
			return "the field " + strings.ToLower(a.Type().Field(i).Name)
		}
	}
	return ""
}

// equalJSON compares what goes over the wire, explanations and every digit of
// the scores included.
func equalJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

func (o observed) ms() float64 { return float64(o.took) / float64(time.Millisecond) }

func timing(strategy string, with, without []float64) ProbeTiming {
	p := statistics.MannWhitney(with, without)
	return ProbeTiming{strategy, statistics.Quantile(0.5, with), statistics.Quantile(0.5, without), p}
}
