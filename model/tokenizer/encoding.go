package tokenizer

import "slices"

// Span is the range [Start, End) of bytes.
type Span struct {
	Start, End int
}

// NoWord is the word of a special token that is in no text.
const NoWord = -1

// Encoding is a tokenized text or pair of texts. Its slices are equally long,
// one element a token. It can be used again and again: each use overwrites it.
type Encoding struct {
	IDs     []int32
	TypeIDs []int32
	Offsets []Span  // in the text that the token is of; {0, 0} for added special tokens
	Words   []int32 // counted in the text that the token is of, or NoWord
	Special []bool  // added to the text, not found in it
	Cut     int     // tokens that truncation removed
}

// Len is the number of tokens, special ones included.
func (e *Encoding) Len() int { return len(e.IDs) }

// Truncated says that the Encoding is not of the whole text.
func (e *Encoding) Truncated() bool { return e.Cut > 0 }

func (e *Encoding) reset() {
	e.IDs, e.TypeIDs, e.Offsets = e.IDs[:0], e.TypeIDs[:0], e.Offsets[:0]
	e.Words, e.Special, e.Cut = e.Words[:0], e.Special[:0], 0
}

func (e *Encoding) addSpecial(ids []int32, typeID int32) {
	for _, id := range ids {
		e.IDs = append(e.IDs, id)
		e.TypeIDs = append(e.TypeIDs, typeID)
		e.Offsets = append(e.Offsets, Span{})
		e.Words = append(e.Words, NoWord)
		e.Special = append(e.Special, true)
	}
}

func (e *Encoding) addSequence(s sequence, typeID int32) {
	e.IDs = append(e.IDs, s.ids...)
	e.Offsets = append(e.Offsets, s.offsets...)
	e.Words = append(e.Words, s.words...)
	e.TypeIDs, e.Special = slices.Grow(e.TypeIDs, len(s.ids)), slices.Grow(e.Special, len(s.ids))
	for range s.ids {
		e.TypeIDs = append(e.TypeIDs, typeID)
		e.Special = append(e.Special, false)
	}
}

// sequence is one text's tokens: the first or the last of them, of a text that
// is going to be cut.
type sequence struct {
	text    string
	ids     []int32
	offsets []Span
	words   []int32
	count   int   // of all tokens
	most    int   // that are needed; 0: all
	atEnd   bool  // the needed ones are the last
	next    int32 // the number of the next word
}

func (s *sequence) reset(text string, o Options) {
	*s = sequence{
		text: text, ids: s.ids[:0], offsets: s.offsets[:0], words: s.words[:0],
		most: o.MaxLength, atEnd: o.TruncateLeft,
	}
}

func (s *sequence) copy(of *sequence) {
	ids, offsets, words := append(s.ids[:0], of.ids...), append(s.offsets[:0], of.offsets...), append(s.words[:0], of.words...)
	*s = *of
	s.ids, s.offsets, s.words = ids, offsets, words
}

// full reports that no further token is needed: they are only counted.
func (s *sequence) full() bool { return s.most > 0 && len(s.ids) >= s.most && !s.atEnd }

// missing is how many of n further tokens are kept, at most.
func (s *sequence) missing(n int) int {
	most := s.most
	switch {
	case most == 0:
		return n
	case s.atEnd:
		most *= 2 // as add has it
	}
	return max(min(n, most-len(s.ids)), 0)
}

// add appends a token of the current word, which is needed.
func (s *sequence) add(id int32, at Span) {
	if s.most > 0 && len(s.ids) == 2*s.most {
		s.ids = append(s.ids[:0], s.ids[s.most:]...)
		s.offsets = append(s.offsets[:0], s.offsets[s.most:]...)
		s.words = append(s.words[:0], s.words[s.most:]...)
	}
	s.ids = append(s.ids, id)
	s.offsets = append(s.offsets, at)
	s.words = append(s.words, s.next)
	s.count++
}

// window is the n tokens at the start, or at the end.
func (s *sequence) window(n int, end bool) sequence {
	from := 0
	if end {
		from = len(s.ids) - n
	}
	return sequence{text: s.text, ids: s.ids[from : from+n], offsets: s.offsets[from : from+n], words: s.words[from : from+n]}
}

// addWord appends a token that is a word of its own.
func (s *sequence) addWord(id int32, at Span) {
	if s.full() {
		s.count++
	} else {
		s.add(id, at)
	}
	s.next++
}
