package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// wordPattern is a pre-tokenizer whose words are all the matches of a regular
// expression that matches at every place of every text.
type wordPattern struct {
	properties []property
	match      func(scanner) int // length of the match where s starts, above 0
}

func (p wordPattern) next(text string, at Span) (word, rest Span) {
	end := at.Start + p.match(scanner{p.properties, text[at.Start:at.End]})
	return Span{at.Start, end}, Span{end, at.End}
}

// scanner looks at the start of the rest of a text.
type scanner struct {
	properties []property
	rest       string
}

const (
	wordClasses = letter | number | space
	other       = 0 // of these: [^\s\p{L}\p{N}]
)

// class returns the class of the character at i and its length, 0 at the end.
func (s scanner) class(i int) (property, int) {
	if i >= len(s.rest) {
		return 0, 0
	}
	if c := s.rest[i]; c < utf8.RuneSelf {
		return s.properties[c] & wordClasses, 1
	}
	r, size := utf8.DecodeRuneInString(s.rest[i:])
	return s.properties[r] & wordClasses, size
}

// run returns where the characters of class from i on end.
func (s scanner) run(i int, class property) int {
	for {
		c, size := s.class(i)
		if size == 0 || c != class {
			return i
		}
		i += size
	}
}

// spaces matches \s+(?!\S)|\s+: white space, without the last character if a
// word follows.
func (s scanner) spaces() int {
	end := s.run(0, space)
	if end == len(s.rest) {
		return end
	}
	_, last := utf8.DecodeLastRuneInString(s.rest[:end])
	if end > last {
		return end - last
	}
	return end
}

const gpt2Pattern = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// gpt2 matches gpt2Pattern.
func gpt2(s scanner) int {
	if n := contraction(s.rest); n > 0 {
		return n
	}
	start := 0
	if s.rest[0] == ' ' {
		start = 1
	}
	class, size := s.class(start)
	if size == 0 || class == space {
		return s.spaces()
	}
	return s.run(start+size, class)
}

// contraction matches 's|'t|'re|'ve|'m|'ll|'d.
func contraction(rest string) int {
	if rest[0] != '\'' || len(rest) < 2 {
		return 0
	}
	switch rest[1] {
	case 's', 't', 'm', 'd':
		return 2
	}
	if len(rest) > 2 && (rest[1:3] == "re" || rest[1:3] == "ve" || rest[1:3] == "ll") {
		return 3
	}
	return 0
}

const cl100kPattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

// cl100k matches cl100kPattern.
func cl100k(s scanner) int {
	if n := contractionFold(s.rest); n > 0 {
		return n
	}
	class, size := s.class(0)
	next, nextSize := s.class(size)
	newline := isNewline(s.rest[0])
	switch {
	case class == letter || next == letter && class != number && !newline:
		return s.run(size, letter)
	case class == number:
		return s.digits(3)
	case class == other:
		return s.newlines(s.run(size, other))
	case s.rest[0] == ' ' && next == other && nextSize > 0:
		return s.newlines(s.run(size+nextSize, other))
	}
	if n := s.lastNewline(); n > 0 {
		return n
	}
	return s.spaces()
}

// contractionFold matches (?i:'s|'t|'re|'ve|'m|'ll|'d); the long s is an s.
func contractionFold(rest string) int {
	if rest[0] != '\'' || len(rest) < 2 {
		return 0
	}
	if strings.HasPrefix(rest[1:], "ſ") {
		return len("'ſ")
	}
	var folded [3]byte
	n := copy(folded[:], rest)
	for i := range folded[:n] {
		if c := folded[i]; c >= 'A' && c <= 'Z' {
			folded[i] = c + 'a' - 'A'
		}
	}
	return contraction(string(folded[:n]))
}

func isNewline(c byte) bool { return c == '\r' || c == '\n' }

// digits matches \p{N}{1,most}.
func (s scanner) digits(most int) int {
	i := 0
	for range most {
		class, size := s.class(i)
		if class != number {
			break
		}
		i += size
	}
	return i
}

// newlines matches [\r\n]* from i on and returns where it ends.
func (s scanner) newlines(i int) int {
	for i < len(s.rest) && isNewline(s.rest[i]) {
		i++
	}
	return i
}

// lastNewline matches \s*[\r\n]+, or nothing.
func (s scanner) lastNewline() int {
	return strings.LastIndexAny(s.rest[:s.run(0, space)], "\r\n") + 1
}

// readSplit reads Split, by one of the known regular expressions.
func readSplit(c component) ([]preTokenizer, error) {
	var f struct {
		Pattern  pattern `json:"pattern"`
		Behavior string  `json:"behavior"`
		Invert   bool    `json:"invert"`
	}
	if err := c.decode(&f); err != nil {
		return nil, err
	}
	if f.Behavior != "Isolated" || f.Invert {
		return nil, fmt.Errorf("%w: Split with behavior %q, invert %t (supported: Isolated, false)", ErrUnsupported, f.Behavior, f.Invert)
	}
	match := map[string]func(scanner) int{gpt2Pattern: gpt2, cl100kPattern: cl100k}[f.Pattern.Regex]
	if match == nil {
		return nil, f.Pattern.refuse("Split", cl100kPattern)
	}
	return []preTokenizer{splitting{wordPattern{properties(), match}}}, nil
}
