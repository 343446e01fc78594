package retrieve

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/index"
)

func hits(rows ...uint32) []index.Hit {
	out := make([]index.Hit, len(rows))
	for i, row := range rows {
		out[i] = index.Hit{Row: row, Ordinal: row / 10, Score: float32(len(rows) - i)}
	}
	return out
}

func rowsOf(c []candidate) (rows []uint32) {
	for _, x := range c {
		rows = append(rows, x.row)
	}
	return rows
}

func TestReciprocalRankSumsOverTheLegsThatFoundTheRow(t *testing.T) {
	fused := reciprocalRank(60, []leg{{name: "dense", hits: hits(1, 2, 3)}, {name: "lexical", hits: hits(3, 4)}})

	require.Equal(t, []uint32{3, 1, 2, 4}, rowsOf(fused), "3 is in both legs; 2 and 4 tie at rank 2 and go by row")
	require.InDelta(t, 1.0/63+1.0/61, fused[0].score, 1e-15)
	require.Equal(t, map[string]LegRank{"dense": {3, 1}, "lexical": {1, 2}}, fused[0].legs)
	require.InDelta(t, 1.0/61, fused[1].score, 1e-15)
}

func TestFusionIsIndependentOfTheOrderInWhichRowsWereFound(t *testing.T) {
	a := reciprocalRank(60, []leg{{name: "dense", hits: hits(7, 8)}, {name: "lexical", hits: hits(8, 7)}})
	b := reciprocalRank(60, []leg{{name: "dense", hits: hits(8, 7)}, {name: "lexical", hits: hits(7, 8)}})

	require.Equal(t, []uint32{7, 8}, rowsOf(a))
	require.Equal(t, rowsOf(a), rowsOf(b))
}

func scoresOf(c []candidate) map[uint32]float64 {
	scores := map[uint32]float64{}
	for _, x := range c {
		scores[x.row] = x.score
	}
	return scores
}

// In the dense leg the scores are 2, 1, in the lexical one 3, 2, 1 and, for row
// 7, what a full leg cannot have missed (1) or nothing (0).
func TestWeightedSumKeepsTheScalesOfTheLegs(t *testing.T) {
	for depth, absent := range map[int]float64{3: 1, 4: 0} {
		legs := []leg{
			{name: "dense", depth: 70, weight: 2, hits: hits(7, 8)},
			{name: "lexical", depth: depth, weight: 0.5, hits: hits(8, 9, 6)},
		}
		require.Equal(t, map[uint32]float64{7: 4 + 0.5*absent, 8: 2 + 1.5, 9: 1, 6: 0.5}, scoresOf(weightedSum(legs)))
	}
	require.Empty(t, weightedSum([]leg{{name: "dense"}, {name: "lexical"}}))
}

// A leg that tells its hits apart decides over one that hardly does, whichever it is.
func TestWeightedSumFollowsTheSurerLeg(t *testing.T) {
	sure := []index.Hit{{Row: 1, Score: 9}, {Row: 2, Score: 1}}
	unsure := []index.Hit{{Row: 2, Score: 1}, {Row: 1, Score: 0.9}}
	for _, legs := range [][2][]index.Hit{{sure, unsure}, {unsure, sure}} {
		fused := weightedSum([]leg{{name: "dense", weight: 1, depth: 2, hits: legs[0]}, {name: "lexical", weight: 1, depth: 2, hits: legs[1]}})
		require.Equal(t, []uint32{1, 2}, rowsOf(fused))
	}
}

// In the dense leg the scores are 3, 2, 1, in the lexical one 2, 1 and, for row
// 1, what a full leg cannot have missed (1) or nothing (0).
func TestStandardScoreWeighsStandardisedScores(t *testing.T) {
	for depth, absent := range map[int]float64{2: 1, 3: 0} {
		legs := []leg{
			{name: "dense", depth: 70, weight: 1, hits: hits(1, 2, 3)},
			{name: "lexical", depth: depth, weight: 0.5, hits: hits(3, 2)},
		}
		got := scoresOf(standardScore(legs, collect(legs)))

		mean := (2 + 1 + absent) / 3
		deviation := math.Sqrt(((2-mean)*(2-mean) + (1-mean)*(1-mean) + (absent-mean)*(absent-mean)) / 3)
		z := math.Sqrt(1.5) // of the dense leg's ends
		require.InDelta(t, z+0.5*(absent-mean)/deviation, got[1], 1e-12)
		require.InDelta(t, 0.5*(1-mean)/deviation, got[2], 1e-12)
		require.InDelta(t, -z+0.5*(2-mean)/deviation, got[3], 1e-12)
	}
}

func TestStandardScoreOfALegWithoutSpread(t *testing.T) {
	flat := leg{name: "lexical", weight: 0.5, depth: 3, hits: []index.Hit{{Row: 3, Score: 4}, {Row: 2, Score: 4}, {Row: 1, Score: 4}}}
	dense := leg{name: "dense", weight: 1, depth: 3, hits: hits(2, 3, 1)}
	for what, legs := range map[string][]leg{"flat": {dense, flat}, "empty": {dense, {name: "lexical", weight: 0.5, depth: 3}}} {
		require.Equal(t, []uint32{2, 3, 1}, rowsOf(standardScore(legs, collect(legs))), what)
	}
	require.Equal(t, []uint32{1, 2, 3}, rowsOf(standardScore([]leg{flat}, collect([]leg{flat}))), "nothing decides but the row")
	require.Equal(t, map[uint32]float64{9: 0}, scoresOf(standardScore([]leg{dense}, []candidate{{row: 9}})))
	require.Empty(t, standardScore([]leg{dense}, nil))
}

// Scores on another scale and from another zero rank alike.
func TestStandardScoreKnowsNoScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.Permutation([]uint32{1, 2, 3, 4, 5, 6, 7, 8}).Draw(t, "dense")
		other := rapid.Permutation([]uint32{1, 2, 3, 4, 5, 6, 7, 8}).Draw(t, "lexical")
		scaled := hits(other...)
		for i := range scaled {
			scaled[i].Score = scaled[i].Score*64 - 100
		}
		legs := func(lexical []index.Hit) []leg {
			return []leg{{name: "dense", depth: 8, weight: 1, hits: hits(rows...)}, {name: "lexical", depth: 8, weight: 0.3, hits: lexical}}
		}
		a, b := legs(hits(other...)), legs(scaled)
		require.Equal(t, rowsOf(standardScore(a, collect(a))), rowsOf(standardScore(b, collect(b))))
	})
}

func TestSingleKeepsTheLegsOwnScores(t *testing.T) {
	ranked := single(leg{name: "lexical", hits: hits(5, 1)})

	require.Equal(t, []uint32{5, 1}, rowsOf(ranked))
	require.Equal(t, 2.0, ranked[0].score)
}

func TestNearDuplicateRanges(t *testing.T) {
	at := func(start, end int) Result { return Result{Key: "k", Start: start, End: end} }

	require.True(t, nearDuplicate(at(0, 100), at(0, 100)))
	require.True(t, nearDuplicate(at(0, 100), at(50, 150)), "half of the shorter is shared")
	require.True(t, nearDuplicate(at(0, 1000), at(10, 20)), "one inside the other")
	require.False(t, nearDuplicate(at(0, 100), at(51, 151)))
	require.False(t, nearDuplicate(at(0, 100), at(100, 200)), "neighbours share nothing")
}
