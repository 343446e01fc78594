package pdf

import (
	"slices"
	"strings"

	"sluice/document"
)

// findLined finds horizontal rules, one below the other with the same ends, that
// make a table: a header stands between the first two.
func (p *page) findLined() []region {
	var regions []region
	for _, rules := range stacks(p.rules) {
		for len(rules) >= 2 {
			n := p.tableRules(rules)
			if n == 0 {
				rules, n = append([]document.Box{rules[0], rules[1], p.openEnd(rules)}, rules[2:]...), 3
			}
			if n < 3 {
				rules = rules[1:]
				continue
			}
			if r, ok := p.region(rules[:n]); ok {
				regions = append(regions, r)
			}
			rules = rules[n:]
		}
	}
	return regions
}

// stacks groups horizontal rules with the same ends, from the top, each height once.
func stacks(rules []document.Box) [][]document.Box {
	var out [][]document.Box
	sorted := slices.DeleteFunc(slices.Clone(rules), func(r document.Box) bool { return height(r) > 3 || width(r) < 50 })
	slices.SortFunc(sorted, func(a, b document.Box) int { return compare(a.Top, b.Top) })
	for _, r := range sorted {
		at := slices.IndexFunc(out, func(s []document.Box) bool {
			return abs(s[0].Left-r.Left) < touching && abs(s[0].Right-r.Right) < touching
		})
		switch {
		case at < 0:
			out = append(out, []document.Box{r})
		case r.Top-out[at][len(out[at])-1].Top > touching:
			out[at] = append(out[at], r)
		}
	}
	return out
}

// tableRules is how many of the rules are one table's: up to the next thick one
// where the first is thicker than the second, 0 if there is none, as where the
// table goes on on the next page; else as far as columns of text stand between
// each two.
func (p *page) tableRules(rules []document.Box) int {
	if height(rules[0]) > 1.3*height(rules[1]) {
		for i := 2; i < len(rules); i++ {
			if height(rules[i]) > 1.3*height(rules[1]) {
				return i + 1
			}
		}
		return 0
	}
	n := 1
	for n < len(rules) && len(columnsOf(asRows(p.between(rules[n-1], rules[n])))) >= 2 {
		n++
	}
	return n
}

// openEnd stands for the last rule of a table that goes on on the next page:
// below the text that follows the first two without a gap and inside of their ends.
func (p *page) openEnd(rules []document.Box) document.Box {
	end := rules[1]
	level := slices.DeleteFunc(slices.Clone(p.runs), func(r run) bool { return r.turned || middle(r.box) < rules[1].Bottom })
	slices.SortFunc(level, func(a, b run) int { return compare(a.box.Top, b.box.Top) })
	for _, r := range level {
		if r.box.Left > end.Right {
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
func (p *page) between(above, below document.Box) []item {
	band := document.Box{Left: above.Left - touching, Right: above.Right + touching, Top: above.Bottom, Bottom: below.Top}
	var items []item
	for _, r := range p.runs {
		if !r.turned && holds(band, r.box) {
			items = append(items, item{box: r.box, line: &line{text: strings.TrimSpace(r.text), box: r.box, size: r.size, bold: r.bold, page: p.number}})
		}
	}
	return items
}

func asRows(items []item) [][]item {
	return rowsOf(items, func(i item) document.Box { return i.box })
}

// crossed says whether text stands across an end of a box: the rules there only
// part what is above from what is below.
func (p *page) crossed(box document.Box) bool {
	return slices.ContainsFunc(p.runs, func(r run) bool {
		return !r.turned && box.Top < middle(r.box) && middle(r.box) < box.Bottom && crosses(r, box)
	})
}

// crosses says whether a run stands across the left end of a box, or most of it
// and the right end; the last columns of a table may stand out.
func crosses(r run, box document.Box) bool {
	return r.box.Left < box.Left-touching && box.Left < r.box.Right || r.box.Left < centre(box) && box.Right < r.box.Right
}
