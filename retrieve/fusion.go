package retrieve

import (
	"cmp"
	"slices"

	"sluice/index"
)

// candidate is a row some leg found.
type candidate struct {
	row     uint32
	ordinal uint32
	score   float64
	legs    map[string]LegRank
}

// leg is one ranked list of hits.
type leg struct {
	name string
	hits []index.Hit
}

// single ranks the hits of one leg by that leg's own score.
func single(l leg) []candidate {
	out := collect([]leg{l})
	for i := range out {
		out[i].score = out[i].legs[l.name].Score
	}
	return ranked(out)
}

// reciprocalRank fuses legs: score = Σ 1/(constant + rank) over the legs that
// found the row (Cormack, Clarke and Büttcher, SIGIR 2009).
func reciprocalRank(constant int, legs []leg) []candidate {
	out := collect(legs)
	for i := range out {
		for _, l := range legs { // in the order of the legs: sums of floats depend on it
			if r, ok := out[i].legs[l.name]; ok {
				out[i].score += 1 / float64(constant+r.Rank)
			}
		}
	}
	return ranked(out)
}

// collect lists every row once, with its rank and score in each leg.
func collect(legs []leg) []candidate {
	place := map[uint32]int{}
	var out []candidate
	for _, l := range legs {
		for i, hit := range l.hits {
			at, seen := place[hit.Row]
			if !seen {
				at = len(out)
				place[hit.Row] = at
				out = append(out, candidate{row: hit.Row, ordinal: hit.Ordinal, legs: map[string]LegRank{}})
			}
			out[at].legs[l.name] = LegRank{Rank: i + 1, Score: float64(hit.Score)}
		}
	}
	return out
}

// ranked orders by score, best first; ties go to the lower row, so that equal
// states give equal answers.
func ranked(c []candidate) []candidate {
	slices.SortFunc(c, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.row, b.row))
	})
	return c
}
