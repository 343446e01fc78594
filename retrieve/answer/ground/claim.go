package ground

import "strings"

// Claim is a text that is held against sources. It is read once, against however
// many. It belongs to the goroutine of its Language.
type Claim struct {
	names      []mention
	links      []string // folded
	statements []*statement
}

// statement is a sentence of a claim, or a part of one.
type statement struct {
	said
	text  string
	asks  bool
	cut   bool // parts are known
	parts []*statement
}

// Claim reads a part.
func (l *Language) Claim(part Part) *Claim {
	text := bounded(part.Text)
	c := &Claim{}
	all := words(text)
	if part.inside && len(all) > 0 {
		all[0].opens = false
	}
	for _, name := range names(all, l.capitalNouns) {
		c.names = append(c.names, l.mention(name))
	}
	for _, link := range literal.FindAllString(text, -1) {
		c.links = append(c.links, fold(strings.TrimRight(link, ".,;:!?)\"'")))
	}
	for _, sentence := range sentences(text) {
		s := l.statement(sentence)
		s.asks = asks(sentence)
		c.statements = append(c.statements, s)
	}
	return c
}

func (l *Language) statement(text string) *statement {
	return &statement{said: l.read(text), text: text}
}

// partsOf are what a statement says one by one; fewer than two: it is not of parts.
func (l *Language) partsOf(s *statement) []*statement {
	if !s.cut {
		s.cut = true
		for _, part := range l.parts(s.text) {
			s.parts = append(s.parts, l.statement(part))
		}
	}
	return s.parts
}
