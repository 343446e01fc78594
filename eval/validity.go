package eval

import (
	"errors"
	"fmt"
	"strings"

	"sluice/document"
	"sluice/index/text"
	"sluice/statistics"
)

// Validity is what a data set's labels are worth, before any service is asked.
type Validity struct {
	Dataset    string
	Digest     string
	Documents  int
	Principals int
	Cases      int
	Answerable int
	Items      int // of evidence, each in its one place
	Notes      []string
	Overlap    statistics.Estimate // mean over the answerable cases
	LowOverlap statistics.Estimate // share of the answerable cases with an overlap of at most Low
	Low        float64
}

// Bounds by which a data set is valid. Where questions repeat the words of their
// answers, it measures the words and nothing else.
type Bounds struct {
	Low   float64 // overlap up to which a case is one of low overlap
	Share float64 // of the answerable cases, that must be of low overlap
}

// ErrOverlap means that too few questions are in other words than their answers.
var ErrOverlap = errors.New("too few questions are in other words than their evidence")

// Validate loads a data set, which checks that its labels hold together, finds
// the one place of every quote, and measures how much of each question's words
// its evidence repeats.
func Validate(dir string, b Bounds) (Validity, error) {
	d, err := Load(dir)
	if err != nil {
		return Validity{}, err
	}
	digest, err := d.Digest()
	if err != nil {
		return Validity{}, err
	}
	v := Validity{
		Dataset: d.Name, Digest: digest, Documents: len(d.Documents), Principals: len(d.Principals), Cases: len(d.Cases),
		Answerable: countAnswerable(d.Cases), Notes: d.Notes, Low: b.Low,
	}
	if err := v.measure(d); err != nil {
		return v, fmt.Errorf("data set %s is refused: %w", dir, err)
	}
	if v.LowOverlap.Mean < b.Share {
		return v, fmt.Errorf("data set %s is refused: %w: %.3f of the cases repeat at most %g of the question, %g must", dir, ErrOverlap, v.LowOverlap.Mean, b.Low, b.Share)
	}
	return v, nil
}

func (v *Validity) measure(d *Dataset) error {
	analyzer, err := text.New(text.Default)
	if err != nil {
		return err
	}
	shown := texts{dataset: d, parsed: map[string]string{}}
	var overlaps []float64
	var errs []error
	low := 0
	for _, c := range d.Cases {
		if len(c.Evidence) == 0 {
			continue
		}
		evidence, err := shown.evidence(c)
		if err != nil {
			errs = append(errs, fmt.Errorf("case %s: %w", c.ID, err))
		}
		overlap := overlap(analyzer, c.Query, evidence)
		if overlaps = append(overlaps, overlap); overlap <= v.Low {
			low++
		}
		v.Items += len(c.Evidence)
	}
	v.Overlap, v.LowOverlap = statistics.Mean(overlaps), statistics.Rate(low, len(overlaps))
	return errors.Join(errs...)
}

// texts are those that readers see, each parsed once.
type texts struct {
	dataset *Dataset
	parsed  map[string]string // by tenant and key
}

// evidence is all that answers a case: its quotes, or the best of whole documents
// taken together.
func (x texts) evidence(c Case) (string, error) {
	asker, _ := x.dataset.principal(c.Principal)
	var all strings.Builder
	for _, e := range c.Evidence {
		all.WriteString(e.Quote + "\n")
		for _, key := range e.Documents {
			shown, err := x.of(asker.Tenant, key)
			if err != nil {
				return "", err
			}
			if e.Quote == "" {
				all.WriteString(shown + "\n")
			} else if _, _, err := e.locate(shown, x.dataset.Matching); err != nil {
				return "", fmt.Errorf("document %s: %w", key, err)
			}
		}
	}
	return all.String(), nil
}

func (x texts) of(tenant, key string) (string, error) {
	at := textKey(tenant, key)
	if shown, ok := x.parsed[at]; ok {
		return shown, nil
	}
	doc := x.dataset.current(tenant)[key]
	tree, err := document.Parse(doc.Format, []byte(doc.Text))
	if err != nil {
		return "", fmt.Errorf("document %s: %w", key, err)
	}
	x.parsed[at] = tree.Text
	return tree.Text, nil
}

// overlap is the share of the query's terms, stemmed and without stop words, that
// the evidence has too.
func overlap(a text.Analyzer, query, evidence string) float64 {
	has, asked := map[string]bool{}, map[string]bool{}
	for term := range a.Terms(evidence) {
		has[string(term)] = true
	}
	shared := 0
	for term := range a.Terms(query) {
		if !asked[string(term)] && has[string(term)] {
			shared++
		}
		asked[string(term)] = true
	}
	return float64(shared) / float64(max(len(asked), 1))
}

// Figures are "overlap" and "low_overlap" with their intervals, and the sizes.
func (v Validity) Figures() map[string]float64 {
	values := map[string]float64{
		"documents": float64(v.Documents), "principals": float64(v.Principals), "cases": float64(v.Cases),
		"answerable": float64(v.Answerable), "items": float64(v.Items),
	}
	for name, e := range map[string]statistics.Estimate{"overlap": v.Overlap, "low_overlap": v.LowOverlap} {
		values[name], values[name+".low"], values[name+".high"] = e.Mean, e.Low, e.High
	}
	return values
}

// Markdown is the same for readers.
func (v Validity) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s)\n\n", v.Dataset, v.Digest)
	fmt.Fprintf(&b, "%d documents, %d principals, %d cases, of them %d answerable with %d items of evidence, each in its one place.\n", v.Documents, v.Principals, v.Cases, v.Answerable, v.Items)
	fmt.Fprintf(&b, "Share of a question's terms that its evidence repeats: %.3f [%.3f, %.3f].\n", v.Overlap.Mean, v.Overlap.Low, v.Overlap.High)
	fmt.Fprintf(&b, "Cases in which it is at most %g: %.3f [%.3f, %.3f].\n", v.Low, v.LowOverlap.Mean, v.LowOverlap.Low, v.LowOverlap.High)
	for _, note := range v.Notes {
		fmt.Fprintf(&b, "Note: %s.\n", note)
	}
	return b.String()
}
