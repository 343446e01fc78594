package document

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// attributes are those that matter to text.
type attributes struct {
	hidden bool
	start  int // of an ordered list
	span   span
}

// span is how many columns and rows a cell takes, 0 as 1.
type span struct{ columns, rows int }

func readAttributes(z *html.Tokenizer) attributes {
	a := attributes{start: 1}
	for more := true; more; {
		var key, value []byte
		key, value, more = z.TagAttr()
		switch string(key) {
		case "hidden":
			a.hidden = true
		case "aria-hidden":
			a.hidden = a.hidden || string(value) == "true"
		case "style":
			a.hidden = a.hidden || strings.Contains(strings.ReplaceAll(strings.ToLower(string(value)), " ", ""), "display:none")
		case "start":
			if n, err := strconv.Atoi(string(value)); err == nil {
				a.start = n
			}
		case "colspan":
			a.span.columns = spanned(value)
		case "rowspan":
			a.span.rows = spanned(value)
		}
	}
	return a
}

// spanned reads a span; HTML's own bound on columns serves for both.
func spanned(value []byte) int {
	n, err := strconv.Atoi(string(value))
	if err != nil {
		return 1
	}
	return min(max(n, 1), 1000)
}
