package figures

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"sluice/statistics"
)

// Alpha is how often two equal programs may seem to differ in a figure.
const Alpha = .05

// Difference is one figure in two runs, or two series of runs.
type Difference struct {
	Name   string
	A, B   []float64 // by round
	P      float64   // of the Mann–Whitney U test, two-sided; 1 where there is nothing to test
	Tested bool      // there were rounds enough to tell
}

// Detected reports a difference that is not the noise of the rounds.
func (d Difference) Detected() bool { return d.Tested && d.P < Alpha }

// Change is the share by which B's median is greater than A's; less than 0: it
// is less. It is infinite where A's is 0 and B's is not.
func (d Difference) Change() float64 {
	a, b := MedianOf(d.A), MedianOf(d.B)
	if a == b {
		return 0
	}
	return (b - a) / math.Abs(a)
}

// Worse is the share by which B is worse than A; 0 where it is not, where no
// difference is detected, and where a greater figure is neither better nor worse.
func (d Difference) Worse() float64 {
	if !d.Detected() {
		return 0
	}
	return max(0, -float64(direction(d.Name))*d.Change())
}

// Verdict says it in words.
func (d Difference) Verdict() string {
	better := direction(d.Name) * cmp.Compare(d.Change(), 0)
	switch {
	case !d.Tested:
		return fmt.Sprintf("not tested: %d and %d rounds", len(d.A), len(d.B))
	case !d.Detected():
		return "no detectable difference"
	case better > 0:
		return "better"
	case better < 0:
		return "worse"
	}
	return "different"
}

var (
	count  = regexp.MustCompile(`leaks|fail|refused|mixed_answers|errors?$`)
	higher = regexp.MustCompile(`_per_s$|_per_cpu_s$|qps|recall|cosine|hit_rate|ndcg|mrr|throughput`)
	lower  = regexp.MustCompile(`(_ms|_us|_ns|_s|\.seconds|_mb|_bytes|_per_vector|_per_request)$|\.p\d|build|overhead|allocs`)
)

// direction is 1 for a figure of which more is better, −1 where less is, by the
// unit that ends its name; 0: neither.
func direction(name string) int {
	switch {
	case count.MatchString(name):
		return -1
	case strings.HasPrefix(name, "ratio.") && lower.MatchString(strings.ReplaceAll(name, "_per_s", "")):
		return -1
	case strings.HasPrefix(name, "ratio."), higher.MatchString(name):
		return 1
	case lower.MatchString(name):
		return -1
	}
	return 0
}

// Compare compares what both sides measured: figure by figure, all rounds of
// one with all of the other. A figure that a run has once counts as a round.
// Least and greatest values are left out: they grow with the rounds.
func Compare(a, b []File) (all []Difference) {
	left, right := pool(a), pool(b)
	for _, name := range slices.Sorted(maps.Keys(left)) {
		if _, both := right[name]; both && !strings.HasSuffix(name, ".min") && !strings.HasSuffix(name, ".max") {
			all = append(all, difference(name, left[name], right[name]))
		}
	}
	return all
}

func pool(files []File) map[string][]float64 {
	rounds := map[string][]float64{}
	for _, f := range files {
		for name, value := range f.Figures {
			some := f.Rounds[name]
			if some == nil {
				some = []float64{value}
			}
			rounds[name] = append(rounds[name], some...)
		}
	}
	return rounds
}

// difference tests whether there are so many rounds that the most extreme
// outcome, one of so many ways to mix them, would be detected.
func difference(name string, a, b []float64) Difference {
	d := Difference{Name: name, A: a, B: b, P: 1}
	mixes := math.Exp(logFactorial(len(a)+len(b)) - logFactorial(len(a)) - logFactorial(len(b)))
	d.Tested = 2/mixes < Alpha
	if d.Tested {
		d.P = statistics.MannWhitney(a, b)
	}
	return d
}

func logFactorial(n int) float64 {
	l, _ := math.Lgamma(float64(n + 1))
	return l
}

// Unlike says in what two runs differ beside their program, in words; what
// differs may be why their figures do.
func Unlike(a, b File) (in []string) {
	for _, e := range []struct{ what, a, b string }{
		{"processor", a.Environment.CPU, b.Environment.CPU},
		{"cores", fmt.Sprint(a.Environment.Cores), fmt.Sprint(b.Environment.Cores)},
		{"GPU", a.Environment.GPU, b.Environment.GPU},
		{"kernels", a.Environment.Kernels, b.Environment.Kernels},
		{"governor", a.Environment.Governor, b.Environment.Governor},
		{"Go", a.Environment.Go, b.Environment.Go},
	} {
		if e.a != e.b {
			in = append(in, fmt.Sprintf("%s: %s and %s", e.what, e.a, e.b))
		}
	}
	for _, flag := range slices.Sorted(maps.Keys(a.Flags)) {
		if value, both := b.Flags[flag]; both && value != a.Flags[flag] {
			in = append(in, fmt.Sprintf("--%s: %s and %s", flag, a.Flags[flag], value))
		}
	}
	return in
}
