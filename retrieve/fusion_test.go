package retrieve

import (
	"testing"

	"github.com/stretchr/testify/require"

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
	fused := reciprocalRank(60, []leg{{"dense", hits(1, 2, 3)}, {"lexical", hits(3, 4)}})

	require.Equal(t, []uint32{3, 1, 2, 4}, rowsOf(fused), "3 is in both legs; 2 and 4 tie at rank 2 and go by row")
	require.InDelta(t, 1.0/63+1.0/61, fused[0].score, 1e-15)
	require.Equal(t, map[string]LegRank{"dense": {3, 1}, "lexical": {1, 2}}, fused[0].legs)
	require.InDelta(t, 1.0/61, fused[1].score, 1e-15)
}

func TestFusionIsIndependentOfTheOrderInWhichRowsWereFound(t *testing.T) {
	a := reciprocalRank(60, []leg{{"dense", hits(7, 8)}, {"lexical", hits(8, 7)}})
	b := reciprocalRank(60, []leg{{"dense", hits(8, 7)}, {"lexical", hits(7, 8)}})

	require.Equal(t, []uint32{7, 8}, rowsOf(a))
	require.Equal(t, rowsOf(a), rowsOf(b))
}

func TestSingleKeepsTheLegsOwnScores(t *testing.T) {
	ranked := single(leg{"lexical", hits(5, 1)})

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
