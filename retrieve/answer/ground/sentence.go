package ground

import (
	"regexp"
	"strings"
)

var (
	// ends of sentences: a full stop and white space, a stop of CJK, or a line that
	// begins a list item, a row or a paragraph.
	ends = regexp.MustCompile(`[.!?…]["')\]]*\s+|[。！？｡]|\n\s*\n|\n\s*(?:[-*•|#>]|\d+[.)])`)
	// joints of a sentence that says several things.
	joints = regexp.MustCompile(`(?i)[;,:]\s+(?:and\s+|but\s+|while\s+|or\s+)?|\s+(?:and|but|while|whereas)\s+`)
)

// sentences of a text. A full stop after a single letter or digit ends none
// ("J. Doe", "2. Open").
func sentences(text string) (all []string) {
	from := 0
	add := func(to int) {
		if s := strings.TrimSpace(text[from:to]); s != "" {
			all = append(all, s)
		}
		from = to
	}
	for _, at := range ends.FindAllStringIndex(text, -1) {
		if !initial(text[from:at[0]]) {
			add(at[1])
		}
	}
	add(len(text))
	return all
}

// initial reports that one letter or digit stands before a full stop.
func initial(before string) bool {
	last := before[strings.LastIndexAny(before, " \n\t(")+1:]
	return len(last) == 1
}
