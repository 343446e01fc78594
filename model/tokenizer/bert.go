package tokenizer

import (
	"cmp"
	"errors"
	"unicode/utf8"
)

// bertNormalizer is BertNormalizer: control characters out, ideographs set
// apart by spaces, accents stripped, lower case, in this order. What is not
// valid UTF-8 counts as U+FFFD.
type bertNormalizer struct {
	properties []property
	active     property  // those that matter under the options
	ascii      [256]byte // what becomes of a byte that needs no more thought, or 0
}

func readBertNormalizer(c component) (*bertNormalizer, error) {
	var o struct {
		CleanText          *bool `json:"clean_text"`
		HandleChineseChars *bool `json:"handle_chinese_chars"`
		StripAccents       *bool `json:"strip_accents"` // as lowercase when absent
		Lowercase          *bool `json:"lowercase"`
	}
	if err := c.decode(&o); err != nil {
		return nil, err
	}
	if o.CleanText == nil || o.HandleChineseChars == nil || o.Lowercase == nil {
		return nil, errors.New("BertNormalizer needs clean_text, handle_chinese_chars and lowercase")
	}
	strip := *cmp.Or(o.StripAccents, o.Lowercase)
	return newBertNormalizer(*o.CleanText, *o.HandleChineseChars, strip, *o.Lowercase), nil
}

func newBertNormalizer(clean, ideographs, strip, lower bool) *bertNormalizer {
	b := &bertNormalizer{properties: properties()}
	for p, on := range map[property]bool{
		control | space:                clean,
		ideograph:                      ideographs,
		mark | decomposes | nonStarter: strip,
		hasLower:                       lower,
	} {
		if on {
			b.active |= p
		}
	}
	for c := range byte(utf8.RuneSelf) {
		b.ascii[c] = b.asciiByte(c)
	}
	return b
}

func (b *bertNormalizer) asciiByte(c byte) byte {
	p := b.properties[c] & b.active
	switch {
	case p&control != 0:
		return 0
	case p&space != 0:
		return ' '
	case p&hasLower != 0:
		return c + 'a' - 'A'
	}
	return c
}

func (b *bertNormalizer) normalize(dst *normalized, text string, at Span) {
	for at.Start < at.End {
		before := len(dst.text)
		dst.text = b.appendASCII(dst.text, text[at.Start:at.End])
		at.Start += len(dst.text) - before
		if at.Start < at.End {
			at.Start = b.next(dst, text, at)
		}
	}
}

// appendASCII stops at the first character that needs more thought.
func (b *bertNormalizer) appendASCII(dst []byte, text string) []byte {
	for i := 0; i < len(text); i++ {
		c := b.ascii[text[i]]
		if c == 0 {
			break
		}
		dst = append(dst, c)
	}
	return dst
}

// next handles the characters at at.Start and returns where they end.
func (b *bertNormalizer) next(dst *normalized, text string, at Span) int {
	r, size := utf8.DecodeRuneInString(text[at.Start:at.End])
	from := Span{at.Start, at.Start + size}
	p := b.properties[r] & b.active
	switch {
	case p&control != 0:
		dst.drop(from)
	case p&space != 0:
		dst.text = append(dst.text, ' ')
		dst.replaced(len(dst.text)-1, from)
	case p&ideograph != 0:
		b.setApart(dst, r, from)
	case p&(mark|decomposes|nonStarter) != 0:
		return b.decompose(dst, text, at)
	case p&hasLower != 0 || r == utf8.RuneError:
		b.put(dst, r, from)
	default:
		dst.text = append(dst.text, text[from.Start:from.End]...)
	}
	return from.End
}

// setApart puts spaces around an ideograph.
func (b *bertNormalizer) setApart(dst *normalized, r rune, from Span) {
	start := len(dst.text)
	dst.text = append(dst.text, ' ')
	if b.active&b.properties[r]&decomposes != 0 {
		dst.text = append(dst.text, lookUp(decompositions, r)...)
	} else {
		dst.text = utf8.AppendRune(dst.text, r)
	}
	dst.text = append(dst.text, ' ')
	dst.replaced(start, from)
}

// put writes r, in lower case if that is asked for, in place of from.
func (b *bertNormalizer) put(dst *normalized, r rune, from Span) {
	start := len(dst.text)
	if b.active&b.properties[r]&hasLower != 0 {
		dst.text = append(dst.text, lookUp(lowercases, r)...)
	} else {
		dst.text = utf8.AppendRune(dst.text, r)
	}
	dst.replaced(start, from)
}

// bertPreTokenizer is BertPreTokenizer: words end at white space, and a
// punctuation character is a word of its own.
type bertPreTokenizer struct {
	properties []property
}

func (p bertPreTokenizer) next(text string, at Span) (word, rest Span) {
	start := at.Start
	for i := at.Start; i < at.End; {
		kind, size := p.properties[text[i]], 1
		if text[i] >= utf8.RuneSelf {
			var r rune
			r, size = utf8.DecodeRuneInString(text[i:at.End])
			kind = p.properties[r]
		}
		switch {
		case kind&(space|punct) == 0:
			i += size
		case start < i:
			return Span{start, i}, Span{i, at.End}
		case kind&punct != 0:
			return Span{i, i + size}, Span{i + size, at.End}
		default:
			i += size
			start = i
		}
	}
	return Span{start, at.End}, Span{at.End, at.End}
}
