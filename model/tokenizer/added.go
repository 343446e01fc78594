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

// split cuts text into segments; without parseSpecial, special tokens are text
// like any other.
func (a *addedTokens) split(dst []segment, text string, parseSpecial bool) []segment {
	start := 0
	if len(a.tokens) > 0 && (parseSpecial || !a.special) {
		dst, start = a.find(dst, text, parseSpecial)
	}
	return appendText(dst, Span{start, len(text)})
}

// find returns also where the text after the last token starts.
func (a *addedTokens) find(dst []segment, text string, parseSpecial bool) ([]segment, int) {
	start := 0
	for i := 0; i < len(text); {
		token, n := a.at(text[i:])
		if token != nil && (parseSpecial || !token.Special) {
			at := token.strip(text, Span{i, i + n}, start)
			dst = appendText(dst, Span{start, at.Start})
			dst = append(dst, segment{token, at})
			start, i = at.End, at.End
			continue
		}
		i += max(n, 1)
	}
	return dst, start
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

func appendText(dst []segment, at Span) []segment {
	if at.Start == at.End {
		return dst
	}
	return append(dst, segment{at: at})
}
