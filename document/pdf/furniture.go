package pdf

import (
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
func takeFurniture(pages []*page, body float64) {
	groups := repeated(pages)
	for _, p := range pages {
		p.lines = slices.DeleteFunc(p.lines, func(l *line) bool {
			kind := p.furnitureKind(l, groups[l], len(pages), body)
			if kind != "" {
				p.furniture = append(p.furniture, document.Furniture{Kind: kind, Text: plain(l.text), Place: place(l.page, l.box, 0.9)})
			}
			return kind != ""
		})
	}
}

// furnitureKind is "" for a line of the text; a heading is one. count is on how many pages it is repeated.
func (p *page) furnitureKind(l *line, count, pages int, body float64) document.Kind {
	top, bottom := l.box.Bottom < margin*p.height, l.box.Top > (1-margin)*p.height
	often := count >= leastPages && 2*count >= pages || count >= 4
	switch {
	case top && often && l.size < 1.3*body:
		return document.Header
	case bottom && often, pageNumber.MatchString(l.text) && (bottom || top || p.isLowest(l)):
		return document.Footer
	case l.turned, count >= 3 && 2*count >= pages && l.size >= 24:
		return document.Watermark
	}
	return ""
}

// isLowest says whether a line of the lower half has no other below it.
func (p *page) isLowest(l *line) bool {
	return l.box.Top > p.height/2 && !slices.ContainsFunc(p.lines, func(other *line) bool { return other.box.Top > l.box.Bottom && !other.turned })
}

// repeated counts, for each line, the pages that have a like one at its place.
func repeated(pages []*page) map[*line]int {
	counts := map[*line]int{}
	byPlace := map[int][]*line{}
	for _, p := range pages {
		for _, l := range p.lines {
			if isMarginal(p, l) {
				byPlace[int(l.box.Top/samePlace)] = append(byPlace[int(l.box.Top/samePlace)], l)
			}
		}
	}
	for _, p := range pages {
		for _, l := range p.lines {
			if !isMarginal(p, l) {
				continue
			}
			seen := map[int]bool{}
			at := int(l.box.Top / samePlace)
			for _, near := range [][]*line{byPlace[at-1], byPlace[at], byPlace[at+1]} {
				for _, other := range near[:min(len(near), 200)] {
					if !seen[other.page] && alike(l, other) {
						seen[other.page] = true
					}
				}
			}
			counts[l] = len(seen)
		}
	}
	return counts
}

// isMarginal says whether a line may be furniture at all.
func isMarginal(p *page, l *line) bool {
	return l.turned || l.size >= 24 || l.box.Bottom < margin*p.height || l.box.Top > (1-margin)*p.height
}

// alike compares two lines with their numbers masked.
func alike(a, b *line) bool {
	if abs(a.box.Top-b.box.Top) > samePlace || abs(a.size-b.size) > 1 {
		return false
	}
	x, y := digits.ReplaceAllString(strings.ToLower(a.text), "#"), digits.ReplaceAllString(strings.ToLower(b.text), "#")
	if x == y {
		return true
	}
	longest := max(len(x), len(y))
	return longest > 4 && longest < 400 && float64(distance(x, y)) <= sameText*float64(longest)
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
