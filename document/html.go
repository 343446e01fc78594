package document

import (
	"errors"
	"io"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// parseHTML extracts the text that a reader sees. It works on the stream of
// tokens, not on a tree: the tree that HTML's rules make of hostile input is
// quadratic in its size (repeated formatting elements) and deeper than a stack.
func parseHTML(source string) (Document, error) {
	z := html.NewTokenizer(strings.NewReader(source))
	x := &extractor{open: map[atom.Atom]int{}, spare: repeats(len(source))}
	for x.blocks <= maxBlocks {
		if token := z.Next(); token != html.ErrorToken {
			x.token(token, z)
			continue
		}
		if err := z.Err(); !errors.Is(err, io.EOF) {
			return Document{}, err
		}
		return x.document(), nil
	}
	return Document{}, ErrTooManyBlocks
}

// extractor follows the tokens. Its own state is which elements it is in, as
// far as they matter to text.
type extractor struct {
	textWriter
	title   string
	inTitle bool
	skip    atom.Atom // the element that is being dropped, 0 if none
	skipped int       // how many of its name are open
	heading int       // level of the open heading, 0 if none
	pre     bool
	table   *table
	spare   int               // bytes that tables may still say again
	stack   []element         // open lists, items and quotes
	open    map[atom.Atom]int // how many of each name are on the stack
}

// element is an open list, item or quote; ordinal numbers the items of a list.
type element struct {
	name    atom.Atom
	kind    Kind
	ordinal int
}

func (x *extractor) document() Document {
	x.closeTable()
	x.flush()
	for len(x.stack) > 0 {
		x.pop()
	}
	doc := Document{Title: x.title, Text: x.out.String(), Blocks: nest(x.top)}
	if doc.Title == "" {
		doc.Title = firstTitle(doc.Blocks)
	}
	return doc
}

func (x *extractor) token(token html.TokenType, z *html.Tokenizer) {
	switch token {
	case html.TextToken:
		x.characters(z)
	case html.StartTagToken, html.SelfClosingTagToken:
		name, hasAttributes := z.TagName()
		a := attributes{start: 1}
		if hasAttributes {
			a = readAttributes(z)
		}
		if name := atom.Lookup(name); x.skip == 0 {
			x.start(name, a, token == html.SelfClosingTagToken)
		} else if name == x.skip {
			x.skipped++
		}
	case html.EndTagToken:
		name, _ := z.TagName()
		if name := atom.Lookup(name); x.skip == 0 {
			x.end(name)
		} else if name == x.skip {
			x.unskip()
		}
	}
}

func (x *extractor) unskip() {
	if x.skipped--; x.skipped == 0 {
		x.skip = 0
	}
}

func (x *extractor) characters(z *html.Tokenizer) {
	switch {
	case x.skip != 0:
	case x.inTitle:
		if x.title == "" {
			x.title = oneLine(cleanRunes(string(z.Text())))
		}
	case x.pre:
		x.line = append(x.line, cleanRunes(string(z.Text()))...)
	default:
		x.collapse(cleanRunes(string(z.Text())))
	}
}

func (x *extractor) start(name atom.Atom, a attributes, selfClosing bool) {
	switch {
	case name == atom.Title:
		x.inTitle = true
	case dropped[name] || a.hidden && !void[name] && !optionalEnd[name]:
		if !(selfClosing && name == atom.Svg) {
			x.skip, x.skipped = name, 1
		}
	case name == atom.Table:
		x.startTable()
	case x.table != nil:
		x.inTable(name, a)
	case name == atom.Br:
		x.lineBreak()
	case x.pre:
		if breaking[name] || isItem(name) || name == atom.Tr {
			x.freshLine()
		}
	default:
		x.startBlock(name, a)
	}
}

func (x *extractor) startBlock(name atom.Atom, a attributes) {
	level := headingLevel(name)
	switch {
	case x.heading > 0 && generic[name]:
		x.space = true
	case level > 0:
		x.flush()
		x.heading = level
	case name == atom.Pre:
		x.flush()
		x.pre = true
	case isList(name):
		x.push(element{name: name, kind: List, ordinal: a.start})
	case isItem(name):
		x.startItem(name)
	case name == atom.Blockquote:
		x.push(element{name: name, kind: Quote})
	case breaking[name]:
		x.flush()
	}
}

func (x *extractor) end(name atom.Atom) {
	switch {
	case name == atom.Title:
		x.inTitle = false
	case x.table != nil:
		x.endInTable(name)
	case name == atom.Pre && x.pre, headingLevel(name) > 0 && !x.pre:
		x.flush()
	case x.pre:
		if breaking[name] {
			x.freshLine()
		}
	case x.heading > 0 && generic[name]:
		x.space = true
	case isItem(name):
		x.flush()
		x.closeItem()
	case x.open[name] > 0:
		x.popTo(name)
	case breaking[name]:
		x.flush()
	}
}

func (x *extractor) push(e element) {
	x.flush()
	x.open[e.name]++
	x.stack = append(x.stack, e)
	x.begin(e.kind)
}

func (x *extractor) pop() {
	last := x.stack[len(x.stack)-1]
	x.stack = x.stack[:len(x.stack)-1]
	x.open[last.name]--
	x.finish(last.kind)
}

// popTo closes the innermost open element of that name and what is in it.
func (x *extractor) popTo(name atom.Atom) {
	x.flush()
	for n := x.open[name]; x.open[name] == n; {
		x.pop()
	}
}

// startItem begins an item if a list is open for it, else a block. A dd goes
// on with the item of its dt.
func (x *extractor) startItem(name atom.Atom) {
	x.flush()
	if name == atom.Dd && x.innermost(Item) {
		return
	}
	x.closeItem()
	if len(x.stack) == 0 || x.stack[len(x.stack)-1].kind != List {
		return
	}
	list := &x.stack[len(x.stack)-1]
	marker := "- "
	if list.name == atom.Ol {
		marker = strconv.Itoa(list.ordinal) + ". "
		list.ordinal++
	}
	x.push(element{name: name, kind: Item})
	x.marker = marker
}

// innermost says whether the open elements end in one of that kind.
func (x *extractor) innermost(k Kind) bool {
	return len(x.stack) > 0 && x.stack[len(x.stack)-1].kind == k
}

// closeItem closes the innermost item, if no list has begun in it. It looks no
// further than maxNesting elements, so that many end tags cost no more.
func (x *extractor) closeItem() {
	for i := len(x.stack) - 1; i >= max(0, len(x.stack)-maxNesting) && x.stack[i].kind != List; i-- {
		if x.stack[i].kind == Item {
			for len(x.stack) > i {
				x.pop()
			}
			return
		}
	}
}

// flush ends the block under way.
func (x *extractor) flush() {
	switch {
	case x.pre:
		x.leaf(Code, 0)
	case x.heading > 0 && len(x.line) <= maxHeading && len(x.stack) == 0:
		x.leaf(Heading, x.heading)
	default:
		x.leaf(Paragraph, 0)
	}
	x.pre, x.heading = false, 0
}

func (x *extractor) lineBreak() {
	if x.heading > 0 {
		x.space = true
		return
	}
	x.line = append(x.line, '\n')
	x.space = false
}

// freshLine begins a new line of preformatted text, unless one has just begun.
func (x *extractor) freshLine() {
	if n := len(x.line); n > 0 && x.line[n-1] != '\n' {
		x.line = append(x.line, '\n')
	}
}
