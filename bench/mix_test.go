package bench

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestZipf(t *testing.T) {
	const draws = 200_000
	counts := make([]float64, 4)
	draw := Zipf(4, 1, rand.New(rand.NewPCG(1, 1)))
	for range draws {
		counts[draw()]++
	}
	for rank, count := range counts { // 1 + 1/2 + 1/3 + 1/4 = 25/12
		require.InEpsilon(t, draws*12.0/25/float64(rank+1), count, .03, rank)
	}
	draw = Zipf(2, 0, rand.New(rand.NewPCG(1, 1)))
	ones := 0
	for range draws {
		ones += draw()
	}
	require.InEpsilon(t, draws/2, ones, .03)
}

func TestWords(t *testing.T) {
	draw := Words("a b c d e f g h", []int{1, 3, 20}, rand.New(rand.NewPCG(1, 1)))
	seen := map[int]bool{}
	for range 100 {
		text := draw()
		require.Contains(t, "a b c d e f g h", text)
		seen[len(strings.Fields(text))] = true
	}
	require.Equal(t, map[int]bool{1: true, 3: true, 8: true}, seen, "there are eight words")
}
