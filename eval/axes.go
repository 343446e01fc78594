package eval

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"sluice/bench/figures"
	"sluice/document"
	"sluice/statistics"
)

// AxesOptions name what the report on four axes is made of. An axis whose input
// is missing is left out.
type AxesOptions struct {
	Twins   []string // directories of sources with golden files
	Parse   func(ctx context.Context, format string, raw []byte) (document.Document, error)
	Dataset string // directory, of Run and Answers
	Run     string // directory that eval run --out wrote
	Answers string // directory that eval answers --out wrote
	Misses  string // directory that eval failures --out wrote
	K       int    // of the metrics at k
	Prices  Prices
	Out     string // directory for axes.json, report.md and bad cases; "" for none
	Command string
	Kernels string // in use, as stated in the outputs
	// Progress hears how many of the files are parsed. It may be nil.
	Progress func(stage string, done, total int)
}

// Axes is the report on four axes: parsing, indexing, retrieval, groundedness,
// and how they go together (EnterpriseDocBench, arXiv:2604.26382).
type Axes struct {
	Command     string              `json:"command"`
	Commit      string              `json:"commit"`
	Environment figures.Environment `json:"environment"`
	Date        time.Time           `json:"date"`
	Dataset     string              `json:"dataset,omitempty"`
	K           int                 `json:"k"`

	Parse     []ParseAxis   `json:"parse,omitempty"` // by format
	Parsed    []Parsed      `json:"parsed,omitempty"`
	Index     *IndexAxis    `json:"index,omitempty"`
	Retrieval []Modality    `json:"retrieval,omitempty"`
	Grounded  *GroundedAxis `json:"grounded,omitempty"`
	Bad       []BadCase     `json:"bad,omitempty"`
	NoMisses  bool          `json:"no_misses,omitempty"` // they were looked for, and there are none

	Associations []Association `json:"associations,omitempty"`
}

// MeasureAxes makes the report.
func MeasureAxes(ctx context.Context, o AxesOptions) (Axes, error) {
	if len(o.Twins) == 0 && o.Run == "" && o.Answers == "" && o.Misses == "" {
		return Axes{}, errors.New("nothing to report on: name --twins, --run, --answers or --misses")
	}
	if o.K < 1 {
		return Axes{}, fmt.Errorf("k is %d, and at least 1 is needed", o.K)
	}
	a := Axes{Command: o.Command, Commit: figures.Commit(ctx), Environment: figures.Local(o.Kernels), Date: time.Now().UTC(), K: o.K}
	if err := a.parse(ctx, o); err != nil {
		return a, err
	}
	if err := a.addBad(o.Misses); err != nil {
		return a, err
	}
	stages := []stage{}
	if o.Run != "" || o.Answers != "" {
		var err error
		if stages, err = a.ask(o); err != nil {
			return a, err
		}
	}
	a.associate(stages)
	return a, a.write(o.Out)
}

// ask reads the run and the answers on a data set, and returns the figures by
// case of each.
func (a *Axes) ask(o AxesOptions) ([]stage, error) {
	dataset, err := Load(o.Dataset)
	if err != nil {
		return nil, err
	}
	a.Dataset = dataset.Name
	stages := []stage{{lengthStage, dataset.lengths()}, {parseStage, a.fidelityOf(dataset.Cases)}}
	if o.Run != "" {
		run, err := ReadRun(o.Run)
		if err != nil {
			return nil, err
		}
		if err := dataset.sameAs(run.Digest, o.Run); err != nil {
			return nil, err
		}
		a.Index = newIndexAxis(run.Report, o.Prices)
		a.Retrieval = modalities(dataset.Cases, run, o.K)
		stages = append(stages, retrievalStages(run, o.K)...)
	}
	if o.Answers != "" {
		grounded, complete, err := readGrounded(o.Answers, dataset)
		if err != nil {
			return nil, err
		}
		a.Grounded = &grounded
		stages = append(stages, stage{groundedStage, complete})
	}
	return stages, nil
}

// sameAs refuses what was recorded on another data set.
func (d *Dataset) sameAs(digest, dir string) error {
	own, err := d.Digest()
	if err == nil && own != digest {
		err = fmt.Errorf("%s is of another data set than %s", dir, d.Name)
	}
	return err
}

// stage is a figure of every case that has it.
type stage struct {
	name   string
	values map[string]float64
}

// Stages.
const (
	lengthStage   = "document length"
	parseStage    = "parse"
	groundedStage = "groundedness"
)

// associate measures how each stage goes with those before it, over the cases
// that have both; and how the fidelity of a file goes with its length.
func (a *Axes) associate(stages []stage) {
	for i, later := range stages {
		for _, earlier := range stages[:i] {
			a.addAssociation(later.name, earlier.name, pairsOf(earlier.values, later.values))
		}
	}
	byFormat := map[string][][2]float64{}
	for _, p := range a.Parsed {
		byFormat[p.Format] = append(byFormat[p.Format], [2]float64{float64(p.Scores.Words), p.Scores.Whole})
	}
	for _, format := range sortedKeys(byFormat) {
		a.addAssociation(parseStage+" of "+format, lengthStage, byFormat[format])
	}
	adjust(a.Associations)
}

// leastPairs are needed to say anything.
const leastPairs = 10

func (a *Axes) addAssociation(later, earlier string, pairs [][2]float64) {
	if len(pairs) < leastPairs {
		return
	}
	var x, y []float64
	for _, p := range pairs {
		x, y = append(x, p[0]), append(y, p[1])
	}
	one := Association{Strategy: later, Factor: earlier}
	one.measure(x, y)
	a.Associations = append(a.Associations, one)
}

// pairsOf two stages, in the order of the cases' names.
func pairsOf(x, y map[string]float64) [][2]float64 {
	var pairs [][2]float64
	for _, id := range sortedKeys(x) {
		if value, ok := y[id]; ok {
			pairs = append(pairs, [2]float64{x[id], value})
		}
	}
	return pairs
}

// lengths are, by case, the mean bytes of the documents that the evidence is in.
func (d *Dataset) lengths() map[string]float64 {
	bytes := map[string]float64{}
	for _, doc := range d.Documents {
		bytes[doc.Key] = float64(len(doc.Text))
	}
	return byEvidence(d.Cases, bytes)
}

// byEvidence is the mean of a figure of documents over a case's items of evidence
// that have it; a case of none has none.
func byEvidence(cases []Case, of map[string]float64) map[string]float64 {
	values := map[string]float64{}
	for _, c := range cases {
		var known []float64
		for _, e := range c.Evidence {
			for _, key := range e.Documents {
				if value, ok := of[key]; ok {
					known = append(known, value)
				}
			}
		}
		if len(known) > 0 {
			values[c.ID] = mean(known)
		}
	}
	return values
}

// fidelityOf the files that the evidence is in, which are told by their names
// without folder and extension: where one name has two files, neither counts. A
// PDF is meant before HTML.
func (a *Axes) fidelityOf(cases []Case) map[string]float64 {
	format := "pdf"
	if len(a.parsedOf(format)) == 0 {
		format = "html"
	}
	files, named := map[string]float64{}, map[string]int{}
	for _, p := range a.parsedOf(format) {
		name := stem(p.File)
		named[name]++
		files[name] = p.Scores.Whole
	}
	of := map[string]float64{}
	for _, c := range cases {
		for _, e := range c.Evidence {
			for _, key := range e.Documents {
				if value, ok := files[stem(key)]; ok && named[stem(key)] == 1 {
					of[key] = value
				}
			}
		}
	}
	return byEvidence(cases, of)
}

func stem(path string) string {
	name := filepath.Base(path)
	return name[:len(name)-len(filepath.Ext(name))]
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// estimates is the mean of what is there, with its interval.
func estimates(values []*float64) (statistics.Estimate, int) {
	var known []float64
	for _, v := range values {
		if v != nil {
			known = append(known, *v)
		}
	}
	return statistics.Mean(known), len(known)
}
