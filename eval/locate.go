package eval

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// linkTarget is the target of a Markdown link, which plain text does not show.
var linkTarget = regexp.MustCompile(`\]\([^()\s]*\)`)

// errNoPlace means that a quote does not occur just once.
var errNoPlace = errors.New("the quote has no one place")

// locate finds the one place of quote in text: the bytes [start, end). Folded
// matching compares letters and digits only, so that markup, white space and the
// style of quotes and dashes make no difference; a quote that is not found so is
// looked for once more in the text without link targets. A quote that occurs
// never or more than once is an error: nothing can be judged by it.
func locate(text, quote string, matching Matching) (start, end int, err error) {
	var count int
	if matching == Verbatim {
		start, end, count = locateOnce(text, quote)
	} else {
		start, end, count = locateFolded(text, quote)
	}
	switch count {
	case 0:
		return 0, 0, fmt.Errorf("%w: %q does not occur", errNoPlace, abridge(quote))
	case 1:
		return start, end, nil
	default:
		return 0, 0, fmt.Errorf("%w: %q occurs more than once", errNoPlace, abridge(quote))
	}
}

// locateOnce returns the first place of quote and how often it occurs, counted
// up to 2. Overlapping places count.
func locateOnce(text, quote string) (start, end, count int) {
	start = strings.Index(text, quote)
	if quote == "" || start < 0 {
		return 0, 0, 0
	}
	if strings.Contains(text[start+1:], quote) {
		return start, start + len(quote), 2
	}
	return start, start + len(quote), 1
}

// locate finds the item's quote in a text: its one place, or the n-th.
func (e Evidence) locate(text string, matching Matching) (start, end int, err error) {
	if e.Occurrence == 0 {
		return locate(text, e.Quote, matching)
	}
	places := placesOf(text, e.Quote)
	if len(places) < e.Occurrence {
		return 0, 0, fmt.Errorf("%w: %q does not occur %d times", errNoPlace, abridge(e.Quote), e.Occurrence)
	}
	start = places[e.Occurrence-1]
	return start, start + len(e.Quote), nil
}

func locateFolded(text, quote string) (start, end, count int) {
	start, end, count = foldText(text, nil).find(foldText(quote, nil).text)
	if count > 0 {
		return start, end, count
	}
	shown := foldText(quote, linkTarget.FindAllStringIndex(quote, -1)).text
	return foldText(text, linkTarget.FindAllStringIndex(text, -1)).find(shown)
}

// folded is a text's letters and digits in lower case, and for each byte of it
// the range of the rune in the source that it came from.
type folded struct {
	text   string
	starts []int
	ends   []int
}

// foldText leaves out the skipped ranges, which are in order.
func foldText(source string, skip [][]int) folded {
	var text strings.Builder
	var f folded
	for at, r := range source {
		for len(skip) > 0 && at >= skip[0][1] {
			skip = skip[1:]
		}
		skipped := len(skip) > 0 && at >= skip[0][0]
		if skipped || !unicode.IsLetter(r) && !unicode.IsNumber(r) {
			continue
		}
		length, _ := text.WriteRune(unicode.ToLower(r))
		for range length {
			f.starts = append(f.starts, at)
			f.ends = append(f.ends, at+len(string(r)))
		}
	}
	f.text = text.String()
	return f
}

// find returns the source range of the first place of quote, itself folded.
func (f folded) find(quote string) (start, end, count int) {
	start, end, count = locateOnce(f.text, quote)
	if count == 0 {
		return 0, 0, 0
	}
	return f.starts[start], f.ends[end-1], count
}

// abridge shortens a text for a message.
func abridge(text string) string {
	const most = 80
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most]) + "…"
}
