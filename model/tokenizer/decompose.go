package tokenizer

import (
	"slices"
	"unicode/utf8"
)

// decomposed is a code point of a canonical decomposition.
type decomposed struct {
	r     rune
	class uint8 // canonical combining class
	first bool  // the first that its character decomposes to
}

// decompose writes the canonical decomposition of the character at at.Start
// and of the non-starters after it, without accents, and returns where they
// end.
//
// Marks that come in another than the canonical order change places, but not
// origins: as in the reference, the n-th character written, accents counted,
// comes from the n-th read.
func (b *bertNormalizer) decompose(dst *normalized, text string, at Span) int {
	var all [16]decomposed // on the stack, unless marks are piled up
	var origins [16]Span
	marks, from, end := b.cluster(all[:0], origins[:0], text, at)
	order(marks)
	n, written := -1, at.Start
	for _, d := range marks {
		if d.first {
			n++
		}
		if b.properties[d.r]&mark == 0 {
			b.put(dst, d.r, from[n])
			written = from[n].End
		}
	}
	if written < end {
		dst.drop(Span{written, end})
	}
	return end
}

// cluster decomposes the character at at.Start and the non-starters after it;
// from says where each character is.
func (b *bertNormalizer) cluster(all []decomposed, from []Span, text string, at Span) ([]decomposed, []Span, int) {
	i := at.Start
	for i < at.End {
		r, size := utf8.DecodeRuneInString(text[i:at.End])
		p := b.properties[r] & b.active
		if p&control == 0 {
			if len(from) > 0 && p&nonStarter == 0 {
				break
			}
			from = append(from, Span{i, i + size})
			all = b.appendDecomposed(all, r)
		}
		i += size
	}
	return all, from, i
}

func (b *bertNormalizer) appendDecomposed(all []decomposed, r rune) []decomposed {
	var runes [4]rune
	parts := append(runes[:0], r)
	if b.properties[r]&decomposes != 0 {
		parts = appendDecomposition(runes[:0], r)
	}
	for i, part := range parts {
		d := decomposed{r: part, first: i == 0}
		if b.properties[part]&nonStarter != 0 {
			d.class = combiningClass(part)
		}
		all = append(all, d)
	}
	return all
}

// order sorts each run of non-starters by class, stably (the Unicode Canonical
// Ordering Algorithm).
func order(all []decomposed) {
	for len(all) > 0 {
		n := slices.IndexFunc(all, func(d decomposed) bool { return d.class == 0 })
		if n < 0 {
			n = len(all)
		}
		slices.SortStableFunc(all[:n], func(a, b decomposed) int { return int(a.class) - int(b.class) })
		all = all[min(n+1, len(all)):]
	}
}
