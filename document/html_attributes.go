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
}

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
		}
	}
	return a
}
