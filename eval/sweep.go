package eval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice/client"
	"sluice/statistics"
)

// Splits that a sweep uses: points are chosen on one, and the chosen is run once
// on the other.
const (
	devSplit  = "dev"
	testSplit = "test"
)

// SweepOptions say what is varied, on what.
type SweepOptions struct {
	Datasets   []string // directories; each needs the splits dev and test
	Strategies []string // the cheapest first
	Chunkers   []string // "": by format
	Precisions []string // of the model
	Connect    func(precision string) Connector
	Out        string // directory for sweep.json and report.md; "" for none
	Command    string
	Kernels    string
	Progress   func(stage string, done, total int) // as in Options
}

// Point is one way of answering.
type Point struct {
	Chunker   string         `json:"chunker,omitempty"`
	Precision string         `json:"precision"`
	Strategy  string         `json:"strategy"`
	Fusion    string         `json:"fusion,omitempty"`
	Ranking   client.Ranking `json:"ranking"` // 0 stands for the service's choice
}

// Measured is a point with what it reached on the dev splits.
type Measured struct {
	Point
	NDCG      map[string]float64 `json:"ndcg@10"` // by data set
	Mean      float64            `json:"mean"`    // over the cases of all of them
	P50       float64            `json:"p50_ms"`
	Behind    float64            `json:"behind"` // the best, case by case
	P         float64            `json:"p"`      // of that difference
	values    []float64          // per case
	latencies []float64
}

// Sweep is what was measured, and what came of it.
type Sweep struct {
	Points []Measured `json:"points"` // in the order they were tried
	Best   Measured   `json:"best"`   // of the highest mean
	Chosen Measured   `json:"chosen"`
	Tests  []Report   `json:"tests"` // of the chosen, one a data set
}

// Tune measures every point on the dev splits, chooses one, and runs that one
// once on the test splits. Chosen is the first point that is not detectably worse
// than the best: points are in the order of the strategies, with the service's
// own choices first, so that nothing is made dearer or changed for noise.
func Tune(ctx context.Context, o SweepOptions) (Sweep, error) {
	if len(o.Datasets)*len(o.Strategies)*len(o.Chunkers)*len(o.Precisions) == 0 {
		return Sweep{}, errors.New("name at least one data set, strategy, chunker and precision")
	}
	var s Sweep
	for _, precision := range o.Precisions {
		for _, chunker := range o.Chunkers {
			points, err := o.measure(ctx, chunker, precision)
			if err != nil {
				return s, err
			}
			s.Points = append(s.Points, points...)
		}
	}
	s.choose()
	if err := s.test(ctx, o); err != nil {
		return s, err
	}
	return s, s.write(o.Out)
}

// choose compares every point with the best, case by case.
func (s *Sweep) choose() {
	best := 0
	for i, p := range s.Points {
		if p.Mean > s.Points[best].Mean {
			best = i
		}
	}
	s.Best = s.Points[best]
	for i := range s.Points {
		p := &s.Points[i]
		behind := make([]float64, len(p.values))
		for at := range behind {
			behind[at] = s.Best.values[at] - p.values[at]
		}
		p.Behind, p.P = s.Best.Mean-p.Mean, statistics.SignFlip(behind)
	}
	s.Chosen = s.Points[slices.IndexFunc(s.Points, func(p Measured) bool { return p.P >= significant })]
}

// measure asks the dev cases of all data sets by every point of a grid.
func (o SweepOptions) measure(ctx context.Context, chunker, precision string) ([]Measured, error) {
	var points []Measured
	for _, strategy := range o.Strategies {
		for _, p := range grid(strategy) {
			p.Chunker, p.Precision = chunker, precision
			points = append(points, Measured{Point: p, NDCG: map[string]float64{}})
		}
	}
	for _, dir := range o.Datasets {
		if err := o.measureOn(ctx, dir, points); err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
	}
	for i := range points {
		points[i].Mean = statistics.Mean(points[i].values).Mean
		points[i].P50 = statistics.Quantile(0.5, points[i].latencies)
	}
	return points, nil
}

func (o SweepOptions) measureOn(ctx context.Context, dir string, points []Measured) error {
	options := o.options(dir, devSplit, points[0].Point)
	options.Strategies = o.Strategies
	r, err := newRunner(ctx, options)
	if err != nil {
		return err
	}
	return errors.Join(r.measure(ctx, points), r.backend.Close())
}

func (o SweepOptions) options(dir, split string, p Point) Options {
	return Options{
		Dataset: dir, Split: split, Strategies: []string{p.Strategy}, Fusion: p.Fusion, Ranking: p.Ranking, Ingest: true,
		Chunker: p.Chunker, Connect: o.Connect(p.Precision), Command: o.Command, Kernels: o.Kernels, Progress: o.Progress,
	}
}

func (r *runner) measure(ctx context.Context, points []Measured) error {
	if err := r.open(ctx); err != nil {
		return err
	}
	if len(r.report.Findings) > 0 {
		return disagreement(r.report.Findings)
	}
	first := len(points[0].values)
	err := r.each(ctx, func(ctx context.Context, t trial) error {
		r.progress("search", len(r.options.Strategies))
		if len(t.Evidence) == 0 {
			return nil
		}
		return r.measureCase(ctx, t, points)
	})
	for i := range points {
		points[i].NDCG[r.dataset.Name] = statistics.Mean(points[i].values[first:]).Mean
	}
	return err
}

func (r *runner) measureCase(ctx context.Context, t trial, points []Measured) error {
	session, err := r.session(ctx, t.Principal)
	if err != nil {
		return err
	}
	if t.evidence, err = r.locateAll(ctx, session, t); err != nil {
		return err
	}
	for i := range points {
		p := &points[i]
		start := time.Now()
		response, err := session.Search(ctx, r.dataset.Name, p.request(t, r.dataset.Depth))
		if err != nil {
			return fmt.Errorf("%s: searching: %w", p.Point, err)
		}
		if len(response.Degraded) > 0 {
			return fmt.Errorf("%s: a stage was left out: %s", p.Point, strings.Join(response.Degraded, ", "))
		}
		p.latencies = append(p.latencies, float64(time.Since(start))/float64(time.Millisecond))
		p.values = append(p.values, statistics.NDCG(t.ranks(t.ranking(response.Results)), 10))
	}
	return nil
}

func (p Point) request(t trial, depth int) client.SearchRequest {
	return client.SearchRequest{Query: t.Query, K: depth, Strategy: p.Strategy, Fusion: p.Fusion, Ranking: rankingOf(p.Ranking), Scope: t.scope()}
}

// rankingOf leaves out a ranking that chooses nothing.
func rankingOf(r client.Ranking) *client.Ranking {
	if r == (client.Ranking{}) {
		return nil
	}
	return &r
}

// test runs the chosen point on the test splits.
func (s *Sweep) test(ctx context.Context, o SweepOptions) error {
	for _, dir := range o.Datasets {
		report, err := Run(ctx, o.options(dir, testSplit, s.Chosen.Point))
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		s.Tests = append(s.Tests, report)
	}
	return nil
}

// String names the point by what it does not leave to the service.
func (p Point) String() string {
	parts := []string{p.Precision}
	if p.Chunker != "" {
		parts = append(parts, p.Chunker)
	}
	parts = append(parts, p.Strategy)
	if p.Fusion != "" {
		parts = append(parts, p.Fusion)
	}
	r := p.Ranking
	for _, v := range []struct {
		name  string
		value float64
	}{
		{"dense_depth", float64(r.DenseDepth)}, {"lexical_depth", float64(r.LexicalDepth)}, {"rrf_constant", float64(r.RRFConstant)}, {"pool_depth", float64(r.PoolDepth)},
		{"dense_weight", r.DenseWeight}, {"lexical_weight", r.LexicalWeight}, {"late_lexical_weight", r.LateLexicalWeight},
	} {
		if v.value != 0 {
			parts = append(parts, fmt.Sprintf("%s=%g", v.name, v.value))
		}
	}
	return strings.Join(parts, " ")
}
