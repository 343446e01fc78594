package pdf

import (
	"math"
	"slices"
	"strings"
	"unicode"

	"sluice/document"
)

// Signs that stand around a raised mark until it is known whether a footnote
// has it. Of what a file brings, characters of the private use area are left out.
const (
	markOpen  = '\uE000'
	markClose = '\uE001'
	parting   = '\uE002' // in the place of a hyphen at the end of a line
)

// page is what stands on one page. All boxes are in points from its upper left corner.
type page struct {
	*work             // of its document
	looks         int // at runs, that are left for tables of rules
	number        int
	width, height float64
	runs          []run
	rules         []document.Box // thin lines
	pictures      []document.Box
	lines         []*line
	tables        []*table
	furniture     []document.Furniture
}

// run is text in one style, on one line.
type run struct {
	text   string
	box    document.Box
	size   float64
	bold   bool
	mono   bool
	turned bool // it does not run from left to right
	chars  []char
}

// addRuns takes the runs of a page. PDFium reports the box of each stretch of
// text and, apart from that, the characters in their order; what lies in a box may belong
// to a stretch that is drawn over it, so the characters are dealt out in order. A
// stretch with a wide gap in it, as between two cells, becomes two runs.
func (p *page) addRuns(chars []char, stretches []document.Box, style func(char int) run) {
	at := 0
	for i, box := range stretches {
		var next *document.Box
		if i+1 < len(stretches) {
			next = &stretches[i+1]
		}
		first, end := take(chars, at, box, next)
		at = end
		if first == end {
			continue
		}
		r := style(first)
		if r.size <= 0 {
			r.size = height(box)
		}
		for first < end {
			until := end
			if !r.turned {
				until = gapAfter(chars[:end], first, 0.7*r.size)
			}
			p.addRun(r, chars[first:until])
			first = until
		}
	}
}

// take returns the range of characters from position at on that lie in a box, up
// to those that begin the next one.
func take(chars []char, at int, box document.Box, next *document.Box) (first, end int) {
	for at < len(chars) && (chars[at].isGenerated() || !within(box, chars[at].box)) {
		at++
	}
	first = at
	reached := false
	for ; at < len(chars); at++ {
		c := chars[at]
		if !c.isGenerated() && (!within(box, c.box) || reached && next != nil && within(*next, c.box)) {
			break
		}
		reached = reached || c.box.Right >= box.Right-0.01 && !c.isGenerated()
	}
	return first, at
}

// gapAfter is the position before which a gap wider than that, or a step back,
// ends what begins at first: so do lines of cells that touch or overlap.
func gapAfter(chars []char, first int, gap float64) int {
	before := chars[first].box
	for i := first + 1; i < len(chars); i++ {
		c := chars[i]
		if c.isBlank() || c.box.Left == before.Left { // a glyph may be several letters
			continue
		}
		if c.box.Left-before.Right > gap || before.Right-c.box.Left > 0.2*gap && !overprints(before, c) {
			return i
		}
		before = c.box
	}
	return len(chars)
}

// overprints says whether a character stands on the one before it, as a letter
// below its accent, or before it, as in scripts that run from right to left.
func overprints(before document.Box, c char) bool {
	return abs(centre(before)-centre(c.box)) < 0.5*max(width(before), width(c.box)) || isRightToLeft(c.rune)
}

func isRightToLeft(r rune) bool {
	return unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko)
}

// isGenerated says whether PDFium made a character up, as a space between words.
func (c char) isGenerated() bool { return width(c.box) < 0.01 || height(c.box) < 0.01 }

func (c char) isBlank() bool { return c.isGenerated() || c.rune == 0 || unicode.IsSpace(c.rune) }

func within(box, c document.Box) bool {
	const slack = 0.01
	return c.Left >= box.Left-slack && c.Right <= box.Right+slack && c.Bottom <= box.Bottom+slack && c.Top >= box.Top-slack
}

// addRun adds a run of these characters, unless they are blank.
func (p *page) addRun(r run, chars []char) {
	r.chars = chars
	if r.text, r.box = textOfChars(chars); strings.TrimSpace(r.text) != "" && r.box != (document.Box{}) {
		p.runs = append(p.runs, r)
	}
}

// textOfChars is what characters say and where they stand. What has no extent is
// not to be seen: only white space may be so.
func textOfChars(chars []char) (string, document.Box) {
	var text strings.Builder
	var box document.Box
	seen := false
	for _, c := range chars {
		r := readable(c.rune)
		if r < 0 || c.isGenerated() && !unicode.IsSpace(r) {
			continue
		}
		text.WriteRune(r)
		if c.isBlank() {
			continue
		}
		if !seen {
			box, seen = c.box, true
		}
		box = union(box, c.box)
	}
	return text.String(), box
}

// readable maps PDFium's hyphen at the end of a line to one, and leaves out what
// is no character.
func readable(c rune) rune {
	switch {
	case c == '\u0002':
		return '-'
	case c == 0:
		return -1
	case unicode.Is(unicode.Co, c) || c == '\uFFFE':
		return -1
	case unicode.IsControl(c):
		return ' '
	}
	return c
}

// addObject keeps a path by its shape: a thin one is a rule, a small square one
// a bullet, a frame four rules.
func (p *page) addObject(image bool, b document.Box) {
	w, h := width(b), height(b)
	switch {
	case image:
		if w > 40 && h > 40 && w*h < 0.8*p.width*p.height {
			p.pictures = append(p.pictures, b)
		}
	case w <= 3 && h <= 3 || w > p.width || h > p.height || w*h > 0.8*p.width*p.height:
	case w <= 3 || h <= 3:
		p.rules = append(p.rules, b)
	case w < 8 && h < 8 && math.Abs(w-h) < 1:
		p.runs = append(p.runs, run{text: "•", box: b, size: 2 * h})
	case w > 12 && h > 6:
		p.rules = append(p.rules,
			document.Box{Left: b.Left, Top: b.Top, Right: b.Right, Bottom: b.Top}, document.Box{Left: b.Left, Top: b.Bottom, Right: b.Right, Bottom: b.Bottom},
			document.Box{Left: b.Left, Top: b.Top, Right: b.Left, Bottom: b.Bottom}, document.Box{Left: b.Right, Top: b.Top, Right: b.Right, Bottom: b.Bottom})
	}
}

// line is a row of runs without a wide gap.
type line struct {
	text   string
	box    document.Box
	size   float64
	bold   bool // all of it
	mono   bool
	turned bool
	page   int
}

// makeLines joins what stands at one height; turned text is a line by itself.
func (p *page) makeLines() {
	var level []run
	for _, r := range p.runs {
		p.did(1)
		if r.turned {
			l := lineOf([]run{r})
			l.page = p.number
			p.lines = append(p.lines, l)
		} else {
			level = append(level, r)
		}
	}
	for _, row := range rowsOf(p.work, level, func(r run) document.Box { return r.box }) {
		sortBy(p.work, row, func(a, b run) int { return compare(a.box.Left, b.box.Left) })
		from := 0
		for i := 1; i <= len(row); i++ {
			if i == len(row) || row[i].box.Left-row[i-1].box.Right > gapOf(row[i-1], row[i]) {
				l := lineOf(row[from:i])
				l.page = p.number
				p.lines = append(p.lines, l)
				from = i
			}
		}
	}
}

// gapOf is the gap beyond which two runs of a row are two lines; a bullet
// belongs to what it stands before.
func gapOf(a, b run) float64 {
	if isBullet(strings.TrimSpace(a.text)) {
		return 40
	}
	return 1.1 * max(a.size, b.size)
}

// lineOf joins runs from left to right.
func lineOf(runs []run) *line {
	l := &line{box: runs[0].box, bold: true, mono: true, turned: true}
	chars := 0
	for _, r := range runs {
		l.box = union(l.box, r.box)
		if n := len(r.text); n > chars && !isBullet(strings.TrimSpace(r.text)) {
			chars, l.size = n, r.size
		}
		l.bold, l.mono, l.turned = l.bold && (r.bold || isBullet(r.text)), l.mono && r.mono, l.turned && r.turned
	}
	l.size = max(l.size, runs[0].size/4)
	var text strings.Builder
	for i, r := range runs {
		s := r.text
		if i > 0 && isRaised(r, l) {
			s = string(markOpen) + strings.TrimSpace(s) + string(markClose)
		} else if i > 0 && r.box.Left-runs[i-1].box.Right > 0.15*l.size || i > 0 && isBullet(strings.TrimSpace(runs[i-1].text)) {
			text.WriteByte(' ')
		}
		text.WriteString(s)
	}
	l.text = strings.Join(strings.Fields(text.String()), " ")
	if l.mono {
		l.text = strings.TrimRight(text.String(), " ")
	}
	return l
}

// isRaised says whether a run is a mark of a footnote by its place.
func isRaised(r run, l *line) bool {
	s := strings.TrimSpace(r.text)
	return len(s) <= 3 && r.size < 0.85*l.size && r.box.Bottom < l.box.Bottom-0.15*l.size && (isNumber(s) || strings.Trim(s, "*†‡") == "")
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

func isBullet(s string) bool {
	return len(s) <= 3 && s != "" && strings.ContainsAny(s, "•◦▪▫‣●○■□·⁃∙")
}

// rowsOf groups what stands at the same height, from the top.
func rowsOf[T any](w *work, all []T, boxOf func(T) document.Box) [][]T {
	sorted := slices.Clone(all)
	sortBy(w, sorted, func(a, b T) int { return compare(middle(boxOf(a)), middle(boxOf(b))) })
	var rows [][]T
	var bands []document.Box
	for _, one := range sorted {
		w.did(1)
		box, best, most := boxOf(one), -1, 0.6
		for i := len(rows) - 1; i >= max(0, len(rows)-8); i-- {
			if share := sharedHeight(bands[i], box); share >= most {
				best, most = i, share
			}
		}
		if best < 0 {
			rows, bands = append(rows, []T{one}), append(bands, box)
			continue
		}
		rows[best], bands[best] = append(rows[best], one), union(bands[best], box)
	}
	return rows
}

// sharedHeight is the share of the lower box's height that both have.
func sharedHeight(a, b document.Box) float64 {
	least := max(min(height(a), height(b)), 0.1)
	return (min(a.Bottom, b.Bottom) - max(a.Top, b.Top)) / least
}

func width(b document.Box) float64  { return b.Right - b.Left }
func height(b document.Box) float64 { return b.Bottom - b.Top }
func middle(b document.Box) float64 { return (b.Top + b.Bottom) / 2 }
func centre(b document.Box) float64 { return (b.Left + b.Right) / 2 }

func union(a, b document.Box) document.Box {
	return document.Box{Left: min(a.Left, b.Left), Top: min(a.Top, b.Top), Right: max(a.Right, b.Right), Bottom: max(a.Bottom, b.Bottom)}
}

func holds(outer, inner document.Box) bool {
	x, y := centre(inner), middle(inner)
	return outer.Left <= x && x <= outer.Right && outer.Top <= y && y <= outer.Bottom
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
