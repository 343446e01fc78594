package pdf

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"sluice/document"
)

const (
	margin     = 0.12 // share of a page's height that headers and footers stand in
	samePlace  = 6.0  // points
	sameText   = 0.2  // of its length: the edit distance between two headers
	leastPages = 2
)

var (
	digits     = regexp.MustCompile(`[0-9]+|\b[ivxlc]{1,5}\b`)
	pageNumber = regexp.MustCompile(`^(?i:page\s*)?[-–]?\s*\d{1,4}\s*[-–]?(?:\s*(?:/|of)\s*\d{1,4})?$`)
)

// takeFurniture moves what is repeated at the same place of several pages, and
// page numbers, out of the lines.
func takeFurniture(w *work, pages []*page, body float64) {
	groups := repeated(w, pages)
	for _, p := range pages {
		lowest := p.lowest()
		p.lines = slices.DeleteFunc(p.lines, func(l *line) bool {
			w.did(1)
			kind := p.furnitureKind(l, groups[l], len(pages), body, lowest)
			if kind != "" {
				p.furniture = append(p.furniture, document.Furniture{Kind: kind, Text: plain(l.text), Place: place(l.page, l.box, 0.9)})
			}
			return kind != ""
		})
	}
}

// furnitureKind is "" for a line of the text; a heading is one. count is on how many pages it is
// repeated, lowest where the lowest line begins.
func (p *page) furnitureKind(l *line, count, pages int, body, lowest float64) document.Kind {
	top, bottom := l.box.Bottom < margin*p.height, l.box.Top > (1-margin)*p.height
	often := count >= leastPages && 2*count >= pages || count >= 4
	switch {
	case top && often && l.size < 1.3*body:
		return document.Header
	case bottom && often, pageNumber.MatchString(l.text) && (bottom || top || l.box.Top > p.height/2 && lowest <= l.box.Bottom):
		return document.Footer
	case l.turned, count >= 3 && 2*count >= pages && l.size >= 24:
		return document.Watermark
	}
	return ""
}

// lowest is where the lowest line that is not turned begins.
func (p *page) lowest() float64 {
	lowest := math.Inf(-1)
	for _, l := range p.lines {
		if !l.turned {
			lowest = max(lowest, l.box.Top)
		}
	}
	return lowest
}

// marginal is a line that may be furniture, with its numbers masked.
type marginal struct {
	*line
	masked string
}

// repeated counts, for each line, the pages that have a like one at its place.
func repeated(w *work, pages []*page) map[*line]int {
	var all []marginal
	byPlace := map[int][]marginal{}
	for _, p := range pages {
		for _, l := range p.lines {
			w.did(len(l.text))
			if !isMarginal(p, l) {
				continue
			}
			m, at := marginal{l, digits.ReplaceAllString(strings.ToLower(l.text), "#")}, placeOf(l)
			all = append(all, m)
			if len(byPlace[at]) < mostAtPlace {
				byPlace[at] = append(byPlace[at], m)
			}
		}
	}
	counts, c := map[*line]int{}, comparer{work: w, left: mostCompared}
	for _, m := range all {
		seen := map[int]bool{}
		for at := placeOf(m.line) - 1; at <= placeOf(m.line)+1; at++ {
			for _, other := range byPlace[at] {
				if c.spend(1, lookedAt) && !seen[other.page] && c.alike(m, other) {
					seen[other.page] = true
				}
			}
		}
		counts[m.line] = len(seen)
	}
	return counts
}

func placeOf(l *line) int { return int(l.box.Top / samePlace) }

// isMarginal says whether a line may be furniture at all.
func isMarginal(p *page, l *line) bool {
	return l.turned || l.size >= 24 || l.box.Bottom < margin*p.height || l.box.Top > (1-margin)*p.height
}

const (
	mostAtPlace  = 200       // lines that a line is compared with
	mostCompared = 500 << 20 // pairs of characters, of one file: about a second
	lookedAt     = 4         // of these is what a line takes that is looked at
)

// comparer compares lines as long as it has pairs of characters left for that;
// after it none are alike.
type comparer struct {
	*work
	left int
}

// spend takes steps of so many pairs of characters each, if they are left.
func (c *comparer) spend(steps, each int) bool {
	c.did(steps)
	c.left -= steps * each
	return c.left >= 0
}

func (c *comparer) alike(a, b marginal) bool {
	if abs(a.box.Top-b.box.Top) > samePlace || abs(a.size-b.size) > 1 {
		return false
	}
	if a.masked == b.masked {
		return true
	}
	shortest, longest := min(len(a.masked), len(b.masked)), max(len(a.masked), len(b.masked))
	if longest <= 4 || longest >= 400 || float64(longest-shortest) > sameText*float64(longest) {
		return false
	}
	return c.spend(longest, shortest) && float64(distance(a.masked, b.masked)) <= sameText*float64(longest)
}

// distance is Levenshtein's, over bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func abs(x float64) float64 { return max(x, -x) }

func place(page int, box document.Box, confidence float64) document.Place {
	return document.Place{Page: page, Box: box, Confidence: confidence}
}
