package tokenizer

import (
	"slices"
	"strings"
)

// addedToken is found in a text before the model sees it.
type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"` // takes the white space before it along
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"` // is looked for in the normalised text
	Special    bool   `json:"special"`
}

// segment is a part of a text: an added token, or text.
type segment struct {
	token *addedToken // nil: text
	at    Span
}

// addedTokens finds the added tokens of a text: the leftmost, and of those the
// longest.
type addedTokens struct {
	tokens  []addedToken
	index   *trie // content to place in tokens
	first   [256]bool
	special bool // all are special
}

// newAddedTokens indexes tokens by content, which must not be empty. Of two
// with the same content the first counts.
func newAddedTokens(tokens []addedToken) *addedTokens {
	a := &addedTokens{tokens: tokens, special: true}
	index := make(map[string]int32, len(tokens))
	for i, t := range slices.Backward(tokens) {
		index[t.Content] = int32(i)
		a.first[t.Content[0]] = true
		a.special = a.special && t.Special
	}
	a.index = newTrie(index)
	return a
}

// finder goes through the segments of a text, one by one: a list of them may be
// many times as large as the text.
type finder struct {
	*addedTokens
	text         string
	start        int // of what was not returned yet
	parseSpecial bool
	found        segment // comes next, if there is a token
}

// segments cuts text into segments; without parseSpecial, special tokens are text
// like any other.
func (a *addedTokens) segments(text string, parseSpecial bool) finder {
	return finder{addedTokens: a, text: text, parseSpecial: parseSpecial}
}

// none reports whether a text is one segment, whatever it is.
func (a *addedTokens) none(parseSpecial bool) bool {
	return len(a.tokens) == 0 || a.special && !parseSpecial
}

// next returns the next segment, and false after the last.
func (f *finder) next() (segment, bool) {
	if f.found.token == nil && !f.find() {
		rest := segment{at: Span{f.start, len(f.text)}}
		f.start = len(f.text)
		return rest, rest.at.Start < rest.at.End
	}
	if f.start < f.found.at.Start {
		before := segment{at: Span{f.start, f.found.at.Start}}
		f.start = f.found.at.Start
		return before, true
	}
	found := f.found
	f.start, f.found = found.at.End, segment{}
	return found, true
}

// find looks for the next token.
func (f *finder) find() bool {
	for i := f.start; i < len(f.text); {
		token, n := f.at(f.text[i:])
		if token != nil && (f.parseSpecial || !token.Special) {
			f.found = segment{token, token.strip(f.text, Span{i, i + n}, f.start)}
			return true
		}
		i += max(n, 1)
	}
	return false
}

// at returns the token that text starts with, and its length, if there is one.
func (a *addedTokens) at(text string) (*addedToken, int) {
	if !a.first[text[0]] {
		return nil, 0
	}
	i, n := a.index.longest(root, text)
	if n == 0 {
		return nil, 0
	}
	return &a.tokens[i], n
}

// strip widens the token's place at by the white space around it, if the token
// asks for it, but not to before the byte limit.
func (t *addedToken) strip(text string, at Span, limit int) Span {
	if t.LStrip {
		at.Start = limit + len(strings.TrimRightFunc(text[limit:at.Start], isSpace))
	}
	if t.RStrip {
		at.End = len(text) - len(strings.TrimLeftFunc(text[at.End:], isSpace))
	}
	return at
}

func isSpace(r rune) bool {
	return properties()[r]&space != 0
}
