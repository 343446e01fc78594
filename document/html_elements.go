package document

import "golang.org/x/net/html/atom"

func set(names ...atom.Atom) map[atom.Atom]bool {
	s := make(map[atom.Atom]bool, len(names))
	for _, n := range names {
		s[n] = true
	}
	return s
}

var (
	// dropped elements are left out with all that is in them: what a browser
	// does not show, and what is there to be operated rather than read.
	dropped = set(atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Svg, atom.Canvas, atom.Iframe,
		atom.Object, atom.Audio, atom.Video, atom.Nav, atom.Select, atom.Datalist, atom.Textarea, atom.Button,
		atom.Noembed, atom.Noframes)

	// void elements have no content and no end tag.
	void = set(atom.Area, atom.Base, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Img, atom.Input, atom.Link,
		atom.Meta, atom.Param, atom.Source, atom.Track, atom.Wbr)

	// optionalEnd elements may end without an end tag, so "hidden" on them has no
	// certain end and is not followed.
	optionalEnd = set(atom.Html, atom.Head, atom.Body, atom.P, atom.Li, atom.Dt, atom.Dd, atom.Option, atom.Optgroup,
		atom.Tr, atom.Td, atom.Th, atom.Thead, atom.Tbody, atom.Tfoot, atom.Caption, atom.Colgroup, atom.Rp, atom.Rt)

	// breaking elements end the block before them and the block in them.
	breaking = set(atom.Address, atom.Article, atom.Aside, atom.Body, atom.Center, atom.Details, atom.Dialog, atom.Div,
		atom.Fieldset, atom.Figcaption, atom.Figure, atom.Footer, atom.Form, atom.Header, atom.Hgroup, atom.Hr,
		atom.Legend, atom.Main, atom.Option, atom.P, atom.Search, atom.Section, atom.Summary)

	// generic elements may be inside a heading; other breaking ones end it.
	generic = set(atom.Div, atom.Section, atom.Header, atom.Article, atom.Center)
)

func isList(a atom.Atom) bool {
	return a == atom.Ul || a == atom.Ol || a == atom.Menu || a == atom.Dl
}

func isItem(a atom.Atom) bool { return a == atom.Li || a == atom.Dt || a == atom.Dd }

// headingLevel returns 1 … 6 for h1 … h6, 0 for anything else.
func headingLevel(a atom.Atom) int {
	switch a {
	case atom.H1:
		return 1
	case atom.H2:
		return 2
	case atom.H3:
		return 3
	case atom.H4:
		return 4
	case atom.H5:
		return 5
	case atom.H6:
		return 6
	}
	return 0
}
