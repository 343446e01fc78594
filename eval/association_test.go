package eval

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// The more of the query its evidence repeats, the better "lexical" ranks it;
// "blind" ranks all alike.
func TestAssociations(t *testing.T) {
	words := []string{"apple", "banana", "cherry", "damson", "elder", "fig", "grape", "hazel"}
	var cases []Case
	var answers []Answer
	for i := range 24 {
		quote := ""
		for _, w := range words[:1+i/3] {
			quote += w + " "
		}
		id := fmt.Sprint(i)
		cases = append(cases, Case{ID: id, Query: "apple banana cherry damson elder fig grape hazel", Evidence: []Evidence{{Quote: quote}}})
		answers = append(answers, Answer{Case: id, Strategy: "lexical", EvidenceRanks: []int{8 - i/3}}, Answer{Case: id, Strategy: "blind", EvidenceRanks: []int{2}})
	}
	cases = append(cases, Case{ID: "nothing"}, Case{ID: "whole", Evidence: []Evidence{{Documents: []string{"d"}}}})
	answers = append(answers, Answer{Case: "nothing", Strategy: "lexical"}, Answer{Case: "whole", Strategy: "lexical", EvidenceRanks: []int{1}})

	all, err := associate(cases, answers, []string{"lexical", "blind"})
	require.NoError(t, err)
	require.Len(t, all, 4)
	lexical, terms, blind := all[0], all[1], all[2]
	require.Equal(t, []string{"lexical", factorOverlap}, []string{lexical.Strategy, lexical.Factor})
	require.InDelta(t, 1, lexical.Spearman.Mean, 1e-12)
	require.InDelta(t, 1, lexical.Kendall.Mean, 1e-12)
	require.Less(t, lexical.P, 0.001)
	require.Less(t, lexical.BucketsP, 0.001)
	require.Greater(t, lexical.Buckets, 15.0)
	require.Equal(t, 1.0, terms.P, "all queries have as many terms")
	require.Equal(t, []float64{0, 1, 1}, []float64{blind.Kendall.Mean, blind.P, blind.BucketsP})
	require.Contains(t, Report{Strategies: []Summary{{}}, Associations: all}.Markdown(), "| lexical | overlap | +")
}

func TestNothingToAssociate(t *testing.T) {
	all, err := associate([]Case{{ID: "a"}}, []Answer{{Case: "a", Strategy: "s"}}, []string{"s"})
	require.NoError(t, err)
	require.Empty(t, all)
}
