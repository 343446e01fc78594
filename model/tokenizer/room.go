package tokenizer

import "unicode/utf8"

// Room is where the memory is taken from that a call needs beyond FreeBytes. All
// that was taken is given back, at once, before the call returns. An error of Take
// ends the call.
type Room interface {
	Take(bytes, held int) error // so many, for a call that has taken so many before
	Give(bytes int)
}

// FreeBytes is what a call holds at most without asking for room: enough for texts
// of any length that have a space now and then and are cut to 4,096 tokens.
const FreeBytes = 2 << 20

// What is shorter, or fewer, is within FreeBytes.
const (
	smallText  = 4 * pieceBytes
	freeTokens = 8 << 10
)

// Bytes that are held, at most. Those of a word are its model's.
const (
	textBytes  = 4   // of a byte of a text on its way to words, in all its copies
	markBytes  = 192 // of what is put before a word
	editBytes  = 96  // of what replaces a character
	tokenBytes = 72  // of a token, in its sequence and in the Encoding
)

// account is what a call holds.
type account struct {
	room   Room
	held   [4]int // bytes, by use: the most so far
	tokens int    // for which there is room
	first  int    // tokens of the first text, while there is a second
	large  bool   // more than FreeBytes are held, perhaps
	err    error  // of room; nothing further is to be tokenized
}

// use is what memory is held for.
type use int

const (
	ofText use = iota
	ofWords
	ofWord
	ofTokens
)

// need takes what is missing to n bytes, and returns false if it cannot.
func (a *account) need(u use, n int) bool {
	a.large = true
	if a.err == nil && n > a.held[u] {
		if a.room != nil {
			a.err = a.room.Take(n-a.held[u], a.taken())
		}
		if a.err == nil {
			a.held[u] = n
		}
	}
	return a.err == nil
}

func (a *account) taken() int {
	return a.held[ofText] + a.held[ofWords] + a.held[ofWord] + a.held[ofTokens]
}

// close gives everything back.
func (a *account) close() {
	if taken := a.taken(); a.room != nil && taken > 0 {
		a.room.Give(taken)
	}
}

// fits reports whether there is room for all words of so many bytes, and for
// their tokens in dst.
func (a *account) fits(dst *sequence, length int) bool {
	return length <= smallText && a.first+len(dst.ids)+length <= a.tokens
}

// tokensFit makes room in dst for the tokens of a word.
func (a *account) tokensFit(dst *sequence, length int) bool {
	tokens := a.first + len(dst.ids) + dst.missing(length)
	if tokens <= a.tokens {
		return a.err == nil
	}
	most := tokens + tokens/4
	if !a.need(ofTokens, tokenBytes*(most-freeTokens)) {
		return false
	}
	a.tokens = most
	return true
}

// roomForText makes room for a text to be normalised at once.
func (s *scratch) roomForText(t *Tokenizer, text string) bool {
	if len(text) <= smallText {
		return s.account.err == nil
	}
	n := t.draftBytes(text)
	if n > s.account.held[ofText] {
		s.draft = draft{}
	}
	return s.account.need(ofText, n)
}

// roomForWords makes room for the next step of the words.
func (s *scratch) roomForWords() bool {
	w := &s.words
	if w.length() <= smallText {
		return s.account.err == nil
	}
	return s.account.need(ofWords, textBytes*w.length()+markBytes*len(w.spans)+editBytes*len(w.edits))
}

// roomForWord makes room for a word, and for its tokens in dst.
func (s *scratch) roomForWord(m model, dst *sequence, length int) bool {
	if length > smallText {
		n := m.memory(length)
		if n > s.account.held[ofWord] { // what there is need not be held beside what there will be
			s.pieces, s.workspace.arrivals, s.workspace.queue = nil, nil, mergeQueue{}
		}
		if !s.account.need(ofWord, n) {
			return false
		}
	}
	return s.account.tokensFit(dst, length)
}

// draftBytes is what a text takes while it is normalised. What it knows of
// characters takes no more where a text has all that there are.
func (t *Tokenizer) draftBytes(text string) (total int) {
	var known [1 << 12]struct {
		r     rune
		bytes int32
	}
	for _, r := range text {
		k := &known[int(r)%len(known)]
		if k.bytes == 0 || k.r != r {
			k.r, k.bytes = r, int32(t.draftBytesOf(r))
		}
		total += int(k.bytes)
	}
	return total
}

func (t *Tokenizer) draftBytesOf(r rune) int {
	text := normalize(t.normalizers, string(r))
	n := textBytes * max(utf8.RuneLen(r), len(text))
	if text != string(r) || t.cuts.properties[r]&attaches != 0 {
		n += editBytes
	}
	return n
}
