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

// asks reports a question. NFKC has made all question marks of two scripts one.
func asks(sentence string) bool {
	return strings.HasSuffix(strings.TrimRight(sentence, " \t\n\"')]!.”’»"), "?")
}

// leastWords is how many words a part of a sentence has at least, to be held
// against a source by itself.
const leastWords = 3

// Part is a text that is said by itself.
type Part struct {
	Text   string
	inside bool // of a sentence that begins before it: a capital at its beginning makes a name
}

// Parts are the sentences of a text, or of a single one what it says one by one;
// nil if it is not of several.
func (l *Language) Parts(text string) (parts []Part) {
	texts := sentences(bounded(text))
	within := len(texts) == 1
	if within {
		texts = l.parts(texts[0])
	}
	if len(texts) < 2 {
		return nil
	}
	for i, t := range texts {
		parts = append(parts, Part{t, within && i > 0})
	}
	return parts
}

// parts of a sentence between commas, semicolons and conjunctions; nil if one
// of them is too short to say something.
func (l *Language) parts(text string) []string {
	parts := joints.Split(text, -1)
	for _, part := range parts {
		n := 0
		for range l.terms(fold(part)) {
			n++
		}
		if n < leastWords {
			return nil
		}
	}
	return parts
}
