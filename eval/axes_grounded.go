package eval

import (
	"fmt"
	"path/filepath"
	"slices"

	"sluice/client"
	"sluice/statistics"
)

// GroundedAxis is what answers claim, and on what. A claim is a sentence of an
// answer; it is attributed if it cites a passage that is there.
type GroundedAxis struct {
	Model      string              `json:"model"`
	Judge      string              `json:"judge,omitempty"`
	Answers    int                 `json:"answers"`
	Claims     int                 `json:"claims"`
	Attributed statistics.Estimate `json:"attributed"` // of the claims
	Complete   statistics.Estimate `json:"complete"`   // mean share of the expected facts that an answerable case's answer says; 0 where it is refused
	Counts     AnswerCounts        `json:"counts"`
}

// readGrounded reads what eval answers --out wrote, and the completeness by case.
func readGrounded(dir string, dataset *Dataset) (GroundedAxis, map[string]float64, error) {
	reports, err := readLines[AnswerReport](filepath.Join(dir, "run.json"))
	if err == nil && len(reports) != 1 {
		err = fmt.Errorf("run.json holds %d objects", len(reports))
	}
	if err != nil {
		return GroundedAxis{}, nil, fmt.Errorf("%w: give a directory that sluice eval answers --out wrote", err)
	}
	if err := dataset.sameAs(reports[0].Digest, dir); err != nil {
		return GroundedAxis{}, nil, err
	}
	answers, err := readLines[AnswerCase](filepath.Join(dir, "answers.jsonl"))
	if err != nil {
		return GroundedAxis{}, nil, err
	}
	a := GroundedAxis{Model: reports[0].Model, Judge: reports[0].Judge, Counts: reports[0].Counts}
	return a, a.count(dataset.Cases, answers), nil
}

// count fills the axis and returns the completeness of the answerable cases.
func (a *GroundedAxis) count(cases []Case, answers []AnswerCase) map[string]float64 {
	expected := map[string][]string{}
	for _, c := range cases {
		if len(c.Evidence) > 0 {
			expected[c.ID] = c.expected()
		}
	}
	complete, attributed := map[string]float64{}, 0
	var shares []float64
	for _, one := range answers {
		if one.Answer.Outcome == "answered" {
			a.Answers++
		}
		for _, s := range one.Answer.Sentences {
			a.Claims++
			if cites(one.Answer.Passages, s.Citations) {
				attributed++
			}
		}
		if facts := expected[one.Case]; len(facts) > 0 {
			complete[one.Case] = float64(saidOf(facts, spoken(one.Answer))) / float64(len(facts))
			shares = append(shares, complete[one.Case])
		}
	}
	a.Attributed, a.Complete = statistics.Rate(attributed, a.Claims), statistics.Mean(shares)
	return complete
}

func cites(passages []client.AnswerPassage, citations []string) bool {
	return slices.ContainsFunc(passages, func(p client.AnswerPassage) bool { return slices.Contains(citations, p.ID) })
}
