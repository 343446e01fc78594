package pdf

import (
	"slices"
	"sort"
	"unicode/utf8"

	"sluice/document"
)

// item is what the order of reading is found for: a line, a table or a picture.
type item struct {
	box     document.Box
	line    *line
	table   *table
	picture bool
}

func (p *page) items() []item {
	var items []item
	for _, l := range p.lines {
		items = append(items, item{box: l.box, line: l})
	}
	for _, t := range p.tables {
		items = append(items, item{box: t.box, table: t})
	}
	for _, b := range p.pictures {
		items = append(items, item{box: b, picture: true})
	}
	return items
}

const (
	leastGutter = 8.0  // points between two columns
	leastLines  = 3    // of a column
	proseRunes  = 18   // of the median line of a column; cells are shorter
	maxCrossing = 0.3  // share of the items that stand across a gutter
	maxItems    = 2000 // of a region that is looked at for columns
)

// ordered puts items into reading order: columns where a white gutter parts
// prose, from the left, between what stands across the gutter; rows elsewhere.
func ordered(w *work, items []item) []item {
	x, ok := gutter(w, items)
	if !ok {
		return inRows(w, items)
	}
	sorted := slices.Clone(items)
	sortBy(w, sorted, func(a, b item) int { return compare(a.box.Top, b.box.Top) })
	var out, left, right []item
	flush := func() {
		out = append(append(out, ordered(w, left)...), ordered(w, right)...)
		left, right = nil, nil
	}
	for _, i := range sorted {
		switch {
		case i.box.Right <= x:
			left = append(left, i)
		case i.box.Left >= x:
			right = append(right, i)
		default:
			flush()
			out = append(out, i)
		}
	}
	flush()
	return out
}

func inRows(w *work, items []item) []item {
	var out []item
	for _, row := range rowsOf(w, items, func(i item) document.Box { return i.box }) {
		sortBy(w, row, func(a, b item) int { return compare(a.box.Left, b.box.Left) })
		out = append(out, row...)
	}
	return out
}

// gutter finds the x that parts two columns: few items cross it, and on both
// sides there is prose, side by side.
func gutter(w *work, items []item) (x float64, ok bool) {
	if len(items) < 2*leastLines || len(items) > maxItems {
		return 0, false
	}
	best := maxCrossing * float64(len(items))
	w.did(len(items))
	lefts, rights := ends(items)
	for _, candidate := range edges(items) {
		if !mayPart(lefts, rights, candidate, best) {
			continue
		}
		w.did(len(items))
		crossing, parted := 0.0, sides{}
		for _, i := range items {
			switch {
			case i.box.Right <= candidate:
				parted.left = append(parted.left, i)
			case i.box.Left >= candidate:
				parted.right = append(parted.right, i)
			default:
				crossing++
			}
		}
		if crossing < best && parted.columns(candidate) {
			x, ok, best = candidate, true, crossing
		}
	}
	return x, ok
}

// ends are the left and the right ends of items, each sorted.
func ends(items []item) (lefts, rights []float64) {
	for _, i := range items {
		lefts, rights = append(lefts, i.box.Left), append(rights, i.box.Right)
	}
	sort.Float64s(lefts)
	sort.Float64s(rights)
	return lefts, rights
}

// mayPart says whether x may part columns, by the ends of the items alone: few
// are across, enough on both sides, and there is white to the right of it.
func mayPart(lefts, rights []float64, x, best float64) bool {
	from := sort.SearchFloat64s(lefts, x)                                        // those from here on are to the right
	until := sort.Search(len(rights), func(i int) bool { return rights[i] > x }) // those before are to the left
	return float64(from-until) < best && until >= leastLines && len(lefts)-from >= leastLines && lefts[from]-x >= leastGutter-0.5
}

// edges are the right ends of items, each a little to the right of it, sorted.
func edges(items []item) []float64 {
	var xs []float64
	for _, i := range items {
		xs = append(xs, i.box.Right+0.5)
	}
	sort.Float64s(xs)
	return slices.Compact(xs)
}

// sides are the items on both sides of a gutter.
type sides struct{ left, right []item }

func (s sides) columns(x float64) bool {
	if len(s.left) < leastLines || len(s.right) < leastLines {
		return false
	}
	l, r := boxOf(s.left), boxOf(s.right)
	together := min(l.Bottom, r.Bottom) - max(l.Top, r.Top)
	return r.Left-x >= leastGutter-0.5 && together > 0.4*min(height(l), height(r)) && isProse(s.left) && isProse(s.right)
}

func boxOf(items []item) document.Box {
	box := items[0].box
	for _, i := range items[1:] {
		box = union(box, i.box)
	}
	return box
}

func isProse(items []item) bool {
	var lengths []int
	for _, i := range items {
		if i.line != nil {
			lengths = append(lengths, utf8.RuneCountInString(i.line.text))
		}
	}
	if len(lengths) < leastLines {
		return false
	}
	slices.Sort(lengths)
	return lengths[len(lengths)/2] >= proseRunes
}
