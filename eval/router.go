package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"sluice/retrieve/complexity"
	"sluice/statistics"
)

// What a router is trained to tell apart: queries that the cheap strategy ranks
// as well as the full one, and those that it does not.
const (
	cheapStrategy = "sparse"
	fullStrategy  = "hybrid-late"
)

// example is a query, and whether the cheap strategy ranks it worse.
type example struct {
	query string
	hard  bool
}

// TrainRouter asks the dev cases of the data sets by both strategies, and fits
// the model that the strategy auto chooses by.
func TrainRouter(ctx context.Context, datasets []string, o Options) (complexity.Model, error) {
	var sources []complexity.Source
	var examples []example
	for _, dir := range datasets {
		o.Dataset, o.Split, o.Strategies, o.Ingest = dir, devSplit, []string{cheapStrategy, fullStrategy}, true
		report, answers, err := answered(ctx, o)
		if err == nil && report.Outcome != Passed {
			err = fmt.Errorf("the run did not pass: %s", report.Outcome)
		}
		if err != nil {
			return complexity.Model{}, fmt.Errorf("%s: %w", dir, err)
		}
		source := complexity.Source{Dataset: report.Dataset, Digest: report.Digest, Split: devSplit, Model: report.Model, Cases: report.Answerable, Hard: hard(answers)}
		labelled, err := examplesOf(dir, source)
		if err != nil {
			return complexity.Model{}, err
		}
		sources, examples = append(sources, source), append(examples, labelled...)
	}
	model, err := fitRouter(examples)
	model.Trained = sources
	return model, err
}

// hard are the cases that the cheap strategy ranks worse by nDCG@10.
func hard(answers []Answer) []string {
	cheap, cases := map[string]float64{}, []string{}
	for _, a := range answers {
		value := statistics.NDCG(a.EvidenceRanks, 10)
		switch {
		case a.Strategy == cheapStrategy:
			cheap[a.Case] = value
		case len(a.EvidenceRanks) > 0 && cheap[a.Case] < value:
			cases = append(cases, a.Case)
		}
	}
	return cases
}

// examplesOf reads the queries of a source.
func examplesOf(dir string, source complexity.Source) ([]example, error) {
	dataset, err := Load(dir)
	if err != nil {
		return nil, err
	}
	cases, err := dataset.Select(source.Split)
	if err != nil {
		return nil, err
	}
	var examples []example
	for _, c := range cases {
		if len(c.Evidence) > 0 {
			examples = append(examples, example{c.Query, slices.Contains(source.Hard, c.ID)})
		}
	}
	return examples, nil
}

// Of the fit. The ridge is that of a standard normal prior on the coefficients
// of standardised features.
const (
	ridge     = 1
	newton    = 50    // steps at most
	converged = 1e-10 // largest change of a coefficient
)

// fitRouter maximises the likelihood of the examples less ridge/2 times the
// squared coefficients, the bias apart, by Newton's method (Hastie, Tibshirani,
// Friedman: The Elements of Statistical Learning, 4.4.1).
func fitRouter(examples []example) (complexity.Model, error) {
	if len(examples) == 0 {
		return complexity.Model{}, errors.New("no answerable case to train on")
	}
	x, y, means, deviations := standardised(examples)
	w := mat.NewVecDense(len(means)+1, nil)
	for range newton {
		step, err := newtonStep(x, y, w)
		if err != nil {
			return complexity.Model{}, err
		}
		w.AddVec(w, step)
		if mat.Norm(step, math.Inf(1)) < converged {
			return modelOf(w, means, deviations), nil
		}
	}
	return complexity.Model{}, errors.New("the fit does not converge")
}

// standardised are the examples' features as rows, mean 0 and deviation 1, after
// a column of ones; a feature that does not vary has deviation 1 and weighs nothing.
func standardised(examples []example) (x *mat.Dense, y, means, deviations []float64) {
	x, y = mat.NewDense(len(examples), len(complexity.Names)+1, nil), make([]float64, len(examples))
	for i, e := range examples {
		features := complexity.FeaturesOf(e.query)
		x.SetRow(i, append([]float64{1}, features[:]...))
		if e.hard {
			y[i] = 1
		}
	}
	for j := range complexity.Names {
		column := mat.Col(nil, j+1, x)
		mean, deviation := stat.PopMeanStdDev(column, nil)
		if deviation == 0 {
			deviation = 1
		}
		for i := range column {
			column[i] = (column[i] - mean) / deviation
		}
		x.SetCol(j+1, column)
		means, deviations = append(means, mean), append(deviations, deviation)
	}
	return x, y, means, deviations
}

// newtonStep solves (Xᵀ·diag(p(1−p))·X + R) step = Xᵀ(y−p) − R·w.
func newtonStep(x *mat.Dense, y []float64, w *mat.VecDense) (*mat.VecDense, error) {
	rows, columns := x.Dims()
	var z, gradient, step mat.VecDense
	z.MulVec(x, w)
	residual, curvature := mat.NewVecDense(rows, nil), mat.NewDiagDense(rows, nil)
	for i := range rows {
		p := 1 / (1 + math.Exp(-z.AtVec(i)))
		residual.SetVec(i, y[i]-p)
		curvature.SetDiag(i, p*(1-p))
	}
	gradient.MulVec(x.T(), residual)
	var weighted, hessian mat.Dense
	weighted.Mul(curvature, x)
	hessian.Mul(x.T(), &weighted)
	for j := 1; j < columns; j++ {
		gradient.SetVec(j, gradient.AtVec(j)-ridge*w.AtVec(j))
		hessian.Set(j, j, hessian.At(j, j)+ridge)
	}
	if err := step.SolveVec(&hessian, &gradient); err != nil {
		return nil, fmt.Errorf("fitting the router: %w", err)
	}
	return &step, nil
}

// modelOf takes coefficients of features as they are, to six digits: what
// machines round differently does not show.
func modelOf(w *mat.VecDense, means, deviations []float64) complexity.Model {
	m := complexity.Model{Features: complexity.Names[:], Bias: w.AtVec(0)}
	for j, mean := range means {
		weight := w.AtVec(j+1) / deviations[j]
		m.Bias -= weight * mean
		m.Weights = append(m.Weights, rounded(weight))
	}
	m.Bias = rounded(m.Bias)
	return m
}

func rounded(x float64) float64 { return math.Round(x*1e6) / 1e6 }

// WriteRouter writes the model as it is built in.
func WriteRouter(m complexity.Model, file string) error {
	text, err := json.MarshalIndent(m, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
