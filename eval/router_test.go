package eval

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"sluice/client"
	"sluice/needs"
	"sluice/retrieve/complexity"
)

// The coefficients that are built in follow from the cases that they name.
func TestTheRouterFollowsFromItsSources(t *testing.T) {
	built := complexity.Trained()
	dirs := map[string]string{"grounded-access": groundedDir, "rag-multi-corpus": needs.Data(t, "rag-multi-corpus")}
	var examples []example
	for _, source := range built.Trained {
		labelled, err := examplesOf(dirs[source.Dataset], source)
		require.NoError(t, err)
		require.Len(t, labelled, source.Cases)
		examples = append(examples, labelled...)
	}
	fitted, err := fitRouter(examples)
	require.NoError(t, err)
	require.InDelta(t, built.Bias, fitted.Bias, 2e-6)
	require.InDeltaSlice(t, built.Weights, fitted.Weights, 2e-6)
}

// At the optimum no small step in any direction has a greater penalised likelihood.
func TestTheFitIsAnOptimum(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	words := []string{"who", "Lisbon", "4711", "SEV-1", "why", "than", "table", "is", "leave"}
	var examples []example
	for range 80 {
		e := example{hard: random.IntN(3) == 0}
		for range 1 + random.IntN(9) {
			e.query += words[random.IntN(len(words))] + " "
		}
		examples = append(examples, e)
	}
	x, y, means, deviations := standardised(examples)
	w := mat.NewVecDense(len(means)+1, nil)
	for range newton {
		step, err := newtonStep(x, y, w)
		require.NoError(t, err)
		w.AddVec(w, step)
	}
	best := penalised(x, y, w)
	for j := range w.Len() {
		for _, change := range []float64{-1e-3, 1e-3} {
			moved := mat.VecDenseCopyOf(w)
			moved.SetVec(j, w.AtVec(j)+change)
			require.Greater(t, best, penalised(x, y, moved), "coefficient %d", j)
		}
	}
	model, err := fitRouter(examples)
	require.NoError(t, err)
	require.Equal(t, modelOf(w, means, deviations), model)
	var z mat.VecDense
	z.MulVec(x, w)
	for i, e := range examples {
		require.InDelta(t, 1/(1+math.Exp(-z.AtVec(i))), model.Of(e.query), 1e-4, e.query)
	}
}

// penalised is the log likelihood less the penalty, by its definition.
func penalised(x *mat.Dense, y []float64, w *mat.VecDense) float64 {
	var z mat.VecDense
	z.MulVec(x, w)
	sum := 0.0
	for i, label := range y {
		p := 1 / (1 + math.Exp(-z.AtVec(i)))
		sum += label*math.Log(p) + (1-label)*math.Log(1-p)
	}
	for j := 1; j < w.Len(); j++ {
		sum -= ridge / 2.0 * w.AtVec(j) * w.AtVec(j)
	}
	return sum
}

func TestNothingToTrainOn(t *testing.T) {
	_, err := fitRouter(nil)
	require.ErrorContains(t, err, "no answerable case")
}

// Where the cheap strategy misses what the full one finds, a case is hard.
func TestTrainingLabelsTheDevCases(t *testing.T) {
	f := newFake(nil)
	asked := map[string]bool{}
	f.onRequest = func(request client.SearchRequest, response *client.SearchResponse) {
		asked[request.Strategy] = true
		if request.Strategy == "sparse" && len(request.Query)%2 == 0 {
			response.Results = nil
		}
	}
	model, err := TrainRouter(context.Background(), []string{groundedDir}, Options{Connect: f.connect})
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"sparse": true, "hybrid-late": true}, asked)
	require.Len(t, model.Trained, 1)
	source := model.Trained[0]
	require.Equal(t, "dev", source.Split)
	d := load(t, groundedDir)
	hard := map[string]bool{}
	for _, id := range source.Hard {
		hard[id] = true
	}
	for _, c := range d.Cases {
		if c.Split == "dev" && len(c.Evidence) > 0 {
			require.Equal(t, len(c.Query)%2 == 0, hard[c.ID], c.ID)
		} else {
			require.False(t, hard[c.ID], c.ID)
		}
	}

	file := filepath.Join(t.TempDir(), "model.json")
	require.NoError(t, WriteRouter(model, file))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var read complexity.Model
	require.NoError(t, json.Unmarshal(text, &read))
	require.Equal(t, model, read)
}

func TestARunThatDoesNotPassTrainsNothing(t *testing.T) {
	f := newFake(nil)
	f.onSearch = func(_ Principal, r *client.SearchResponse) { r.Degraded = []string{"late_unavailable"} }
	_, err := TrainRouter(context.Background(), []string{groundedDir}, Options{Connect: f.connect})
	require.ErrorContains(t, err, "did not pass")
}

// What auto chose is told beside the figures; what it may not choose is degraded.
func TestSharesOfAuto(t *testing.T) {
	f := newFake(nil)
	f.onRequest = func(request client.SearchRequest, response *client.SearchResponse) {
		if request.Strategy == "auto" {
			response.Strategy = "hybrid"
			if len(request.Query)%2 == 0 {
				response.Strategy = "sparse"
			}
		}
	}
	report, err := gate(t, f, func(o *Options) { o.Strategies = []string{"sparse", "auto"} })
	require.NoError(t, err)
	require.Equal(t, Passed, report.Outcome, "%v", report.Findings)
	even := 0
	for _, c := range load(t, groundedDir).Cases {
		if c.Split == "test" && len(c.Query)%2 == 0 {
			even++
		}
	}
	figures := report.Figures()
	require.InDelta(t, float64(even)/float64(report.Cases), figures["auto.share.sparse"], 1e-9)
	require.InDelta(t, 1, figures["auto.share.sparse"]+figures["auto.share.hybrid"], 1e-9)
	require.Zero(t, figures["auto.share.hybrid-late"])
	require.NotContains(t, figures, "sparse.share.sparse")
	require.Positive(t, figures["auto.mean_ms"])
	require.Contains(t, report.Markdown(), "auto chose sparse for")

	f.onRequest = func(_ client.SearchRequest, response *client.SearchResponse) { response.Strategy = "late" }
	report, err = gate(t, f, func(o *Options) { o.Strategies = []string{"auto"} })
	require.NoError(t, err)
	require.Equal(t, SomeDegraded, report.Outcome)
}
