package pdf

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/document"
)

// at is a run of letters of width 5 and size 10.
func at(x, y float64, text string) run {
	box := document.Box{Left: x, Top: y, Right: x + 5*float64(len([]rune(text))), Bottom: y + 8}
	return lettered(run{text: text, box: box, size: 10})
}

// between puts runs between the rules of a table: thick ones around, a thin one at 20.
func between(bottom float64, runs ...run) *page {
	rule := func(y, height float64) document.Box {
		return document.Box{Left: 50, Top: y, Right: 300, Bottom: y + height}
	}
	return &page{number: 1, width: 400, height: 400, runs: runs, rules: []document.Box{rule(0, 1), rule(20, 0.4), rule(bottom, 1)}}
}

func tablesIn(t *testing.T, p *page) [][]string {
	t.Helper()
	doc, err := assemble(t.Context(), []*page{p})
	require.NoError(t, err)
	require.NoError(t, document.Check(doc))
	var rows [][]string
	for _, g := range tablesOf(doc.Blocks) {
		for _, row := range g.Rows {
			rows = append(rows, row.Cells)
		}
	}
	return rows
}

// Cells are told by the order in which they are drawn, whatever of them touches.
func TestDrawnCells(t *testing.T) {
	p := between(100,
		at(50, 8, "Town"), at(75, 8, "Who"),
		at(50, 24, "Stone"), at(50, 36, "on the"), at(50, 48, "river"), at(75, 24, "all"), at(75, 36, "that"), at(75, 48, "live"), at(75, 60, "there"),
		at(50, 72, "Ford"), at(75, 72, "none"))
	require.Equal(t, [][]string{{"Town", "Who"}, {"Stone on the river", "all that live there"}, {"Ford", "none"}}, tablesIn(t, p))
}

// A run that reaches into the next column is parted where that begins, but not
// inside a word or number.
func TestTouchingCells(t *testing.T) {
	rows := func(first string) [][]string {
		return tablesIn(t, between(100,
			at(50, 8, "Code"), at(75, 8, "Place"),
			at(50, 24, "A"), at(75, 24, "mill"), at(50, 36, "B"), at(75, 36, "school"), at(50, 48, "C"), at(75, 48, "inn"), at(50, 60, first)))
	}
	require.Equal(t, []string{"12345", "Weir"}, rows("12345Weir")[4])
	require.Equal(t, []string{"Stoneweir", ""}, rows("Stoneweir")[4])
	require.Equal(t, []string{"123456789", ""}, rows("123456789")[4])
}

// What stands between rules in one column is no table, and is not lost.
func TestOneColumnIsNoTable(t *testing.T) {
	p := between(60, at(50, 8, "A box of prose"), at(50, 24, "that goes on"), at(50, 36, "for lines."))
	doc, err := assemble(t.Context(), []*page{p})
	require.NoError(t, err)
	require.Empty(t, tablesOf(doc.Blocks))
	require.Equal(t, "A box of prose\n\nthat goes on for lines.", doc.Text)
}

// placed against all ways to put cells into columns.
func TestPlacedIsNearest(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	for range 300 {
		columns := make([]column, 1+random.IntN(5))
		for i := range columns {
			left := 100 * random.Float64()
			columns[i] = column{left, left + 10*random.Float64()}
		}
		row := make([]*cell, 1+random.IntN(5))
		for i := range row {
			row[i] = newCell(at(100*random.Float64(), 0, "x"))
		}
		if len(row) == len(columns) {
			continue
		}
		step := 1
		if len(row) > len(columns) {
			step = 0
		}
		distance := func(places []int) (sum float64) {
			for i, j := range places {
				sum += columns[j].far(column{row[i].box.Left, row[i].box.Right})
			}
			return sum
		}
		best := -1.0
		eachPlacing(len(row), len(columns), step, nil, func(places []int) {
			if d := distance(places); best < 0 || d < best {
				best = d
			}
		})
		require.InDelta(t, best, distance(placed(&work{ctx: t.Context()}, row, columns)), 1e-9, fmt.Sprint("seed ", seed))
	}
}

func eachPlacing(cells, columns, step int, places []int, visit func([]int)) {
	if len(places) == cells {
		visit(places)
		return
	}
	from := 0
	if n := len(places); n > 0 {
		from = places[n-1] + step
	}
	for j := from; j < columns; j++ {
		eachPlacing(cells, columns, step, append(places, j), visit)
	}
}
