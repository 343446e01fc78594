package tokenizer

import "unicode/utf8"

// composer is NFC or NFKC (Unicode Standard Annex 15).
type composer struct {
	properties []property
	active     property // compatible for NFKC, or 0
}

func (c composer) normalize(dst *normalized, text string, at Span) {
	w := newRewriter(dst, text, at)
	for at.Start < at.End {
		end := c.inert(text, at)
		w.copy(Span{at.Start, end})
		at.Start = end
		if at.Start < at.End {
			at.Start = c.compose(&w, text, at)
		}
	}
}

// inert returns where the characters end that stay as they are.
func (c composer) inert(text string, at Span) int {
	previous := at.Start
	for i := at.Start; i < at.End; {
		if text[i] < utf8.RuneSelf {
			previous = i
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:at.End])
		p := c.properties[r]
		if p&attaches != 0 {
			return previous
		}
		if p&(recomposes|c.active) != 0 {
			return i
		}
		previous = i
		i += size
	}
	return at.End
}

// composed is a character of the result.
type composed struct {
	r       rune
	removed int // as in rewriter.change
}

// compose writes the character at at.Start together with those that may compose
// with it, and returns where they end.
func (c composer) compose(w *rewriter, text string, at Span) int {
	var parts [16]decomposed // on the stack, unless marks are piled up
	var result [16]composed
	all, end := c.decompose(parts[:0], text, at)
	order(all)
	for _, o := range recompose(result[:0], all) {
		w.change(o.r, o.removed)
	}
	return end
}

func (c composer) decompose(all []decomposed, text string, at Span) ([]decomposed, int) {
	i := at.Start
	for i < at.End {
		r, size := utf8.DecodeRuneInString(text[i:at.End])
		p := c.properties[r]
		if i > at.Start && p&attaches == 0 {
			break
		}
		all = c.appendDecomposed(all, r, p)
		i += size
	}
	return all, i
}

func (c composer) appendDecomposed(all []decomposed, r rune, p property) []decomposed {
	first := len(all)
	switch {
	case p&c.active != 0:
		for _, part := range lookUp(compatibleDecompositions, r) {
			all = append(all, decomposed{r: part})
		}
	case p&decomposes != 0:
		var runes [4]rune
		for _, part := range appendDecomposition(runes[:0], r) {
			all = append(all, decomposed{r: part})
		}
	default:
		all = append(all, decomposed{r: r})
	}
	all[first].first = true
	for i := first; i < len(all); i++ {
		if c.properties[all[i].r]&nonStarter != 0 {
			all[i].class = combiningClass(all[i].r)
		}
	}
	return all
}

// recompose appends what the ordered parts compose to (the Unicode Canonical
// Composition Algorithm).
func recompose(dst []composed, parts []decomposed) []composed {
	starter, class := -1, uint8(0) // in dst; of the last part that stayed alone
	for _, d := range parts {
		removed := -1
		if d.first {
			removed = 0
		}
		if starter >= 0 && (starter == len(dst)-1 || class < d.class) {
			if r := compose(dst[starter].r, d.r); r != 0 {
				dst[starter] = composed{r, dst[starter].removed + removed + 1}
				continue
			}
		}
		if class = d.class; class == 0 {
			starter = len(dst)
		}
		dst = append(dst, composed{d.r, removed})
	}
	return dst
}
