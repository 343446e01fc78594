package pdf

import (
	"iter"
	"math"
	"slices"

	"sluice/document"
)

// findLined finds horizontal rules, one below the other with the same ends, that
// make a table: a header stands between the first two.
func (p *page) findLined() []region {
	all := stacks(p.work, p.rules)
	if len(all) == 0 {
		return nil
	}
	l := newLined(p)
	var regions []region
	for _, rules := range all {
		for len(rules) >= 2 && l.looks > 0 {
			n := l.tableRules(rules)
			above := rules[:n]
			if n == 0 {
				above, n = []document.Box{rules[0], rules[1], l.openEnd(rules[1])}, 2
			}
			if len(above) < 3 {
				rules = rules[1:]
				continue
			}
			if r, ok := l.region(above); ok {
				regions = append(regions, r)
			}
			rules = rules[n:]
		}
	}
	p.runs = l.left()
	return regions
}

// lined looks for tables among the runs of a page.
type lined struct {
	*page
	level    []int  // the runs that are not turned, from the top
	byMiddle []int  // the same by their middles
	taken    []bool // by run: it is in a region
}

func newLined(p *page) *lined {
	l := &lined{page: p, taken: make([]bool, len(p.runs))}
	for i, r := range p.runs {
		if !r.turned {
			l.level = append(l.level, i)
		}
	}
	l.byMiddle = slices.Clone(l.level)
	sortBy(p.work, l.level, func(i, j int) int { return compare(p.runs[i].box.Top, p.runs[j].box.Top) })
	sortBy(p.work, l.byMiddle, func(i, j int) int { return compare(middle(p.runs[i].box), middle(p.runs[j].box)) })
	return l
}

// within are the runs with their middles from one height to another.
func (l *lined) within(top, bottom float64) iter.Seq[run] {
	from, _ := slices.BinarySearchFunc(l.byMiddle, top, func(i int, y float64) int { return compare(middle(l.runs[i].box), y) })
	return func(yield func(run) bool) {
		for _, i := range l.byMiddle[from:] {
			l.looked(1)
			if middle(l.runs[i].box) > bottom || !l.taken[i] && !yield(l.runs[i]) {
				return
			}
		}
	}
}

// left are the runs that are in no region.
func (l *lined) left() []run {
	var left []run
	for i, r := range l.runs {
		if !l.taken[i] {
			left = append(left, r)
		}
	}
	return left
}

// looked takes looks at runs off those that the page has left.
func (p *page) looked(runs int) {
	p.looks -= runs
	p.did(runs)
}

// stacks groups horizontal rules with the same ends, from the top, each height once,
// at most maxRules of them.
func stacks(w *work, rules []document.Box) [][]document.Box {
	var out [][]document.Box
	w.did(len(rules))
	sorted := slices.DeleteFunc(slices.Clone(rules), func(r document.Box) bool { return height(r) > 3 || width(r) < 50 })
	sortBy(w, sorted, func(a, b document.Box) int { return compare(a.Top, b.Top) })
	at := stackPlaces{}
	kept := 0
	for _, r := range sorted {
		if kept == maxRules {
			break
		}
		w.did(9)
		i := at.find(out, r)
		switch {
		case i < 0:
			at[spanOf(r)] = len(out)
			out = append(out, []document.Box{r})
		case r.Top-out[i][len(out[i])-1].Top > touching:
			out[i] = append(out[i], r)
		default:
			continue
		}
		kept++
	}
	return out
}

// span is from where to where a rule goes, in steps of touching. No two stacks have
// the same.
type span struct{ left, right int }

func spanOf(r document.Box) span {
	return span{int(math.Floor(r.Left / touching)), int(math.Floor(r.Right / touching))}
}

// stackPlaces finds stacks by the spans of their first rules.
type stackPlaces map[span]int

// find is the first stack whose ends are less than touching from those of a rule, or -1.
func (at stackPlaces) find(all [][]document.Box, r document.Box) int {
	first, here := -1, spanOf(r)
	for left := here.left - 1; left <= here.left+1; left++ {
		for right := here.right - 1; right <= here.right+1; right++ {
			i, known := at[span{left, right}]
			if known && (first < 0 || i < first) && abs(all[i][0].Left-r.Left) < touching && abs(all[i][0].Right-r.Right) < touching {
				first = i
			}
		}
	}
	return first
}

// tableRules is how many of the rules are one table's: up to the next thick one
// where the first is thicker than the second, 0 if there is none, as where the
// table goes on on the next page; else as far as columns of text stand between
// each two.
func (l *lined) tableRules(rules []document.Box) int {
	if height(rules[0]) > 1.3*height(rules[1]) {
		for i := 2; i < len(rules); i++ {
			l.did(1)
			if height(rules[i]) > 1.3*height(rules[1]) {
				return i + 1
			}
		}
		return 0
	}
	n := 1
	for n < len(rules) && len(withColumnsOf(l.work, nil, l.between(rules[n-1], rules[n]))) >= 2 {
		n++
	}
	return n
}

// openEnd stands for the last rule of a table that goes on on the next page:
// below the text that follows the second one without a gap and inside of its ends.
func (l *lined) openEnd(second document.Box) document.Box {
	end := second
	for _, i := range l.level {
		l.looked(1)
		r := l.runs[i]
		if l.taken[i] || middle(r.box) < second.Bottom || r.box.Left > end.Right {
			continue
		}
		if crosses(r, end) || r.box.Left < end.Left-touching || r.box.Top-end.Bottom > 2*r.size {
			break
		}
		end.Bottom = max(end.Bottom, r.box.Bottom)
	}
	end.Top, end.Bottom = end.Bottom+1, end.Bottom+2
	return end
}

// between are the runs between two rules, as items.
func (l *lined) between(above, below document.Box) []item {
	band := document.Box{Left: above.Left - touching, Right: above.Right + touching, Top: above.Bottom, Bottom: below.Top}
	var items []item
	for r := range l.within(band.Top, band.Bottom) {
		if holds(band, r.box) {
			items = append(items, item{box: r.box})
		}
	}
	return items
}

// crossed says whether text stands across an end of a box: the rules there only
// part what is above from what is below.
func (l *lined) crossed(box document.Box) bool {
	for r := range l.within(box.Top, box.Bottom) {
		if box.Top < middle(r.box) && middle(r.box) < box.Bottom && crosses(r, box) {
			return true
		}
	}
	return false
}

// crosses says whether a run stands across the left end of a box, or most of it
// and the right end; the last columns of a table may stand out.
func crosses(r run, box document.Box) bool {
	return r.box.Left < box.Left-touching && box.Left < r.box.Right || r.box.Left < centre(box) && box.Right < r.box.Right
}
