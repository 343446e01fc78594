package document

import "strings"

// textWriter writes the extracted text and the blocks over it.
type textWriter struct {
	out       strings.Builder
	top       []*Block // finished blocks of the top level
	parents   []*Block // open containers, at most maxNesting; nil beyond none
	deeper    int      // open containers beyond maxNesting
	lists     int      // open lists
	blocks    int      // all blocks so far
	line      []byte   // text of the block under way
	space     bool     // white space stands before what comes next
	marker    string   // of the item that has no text yet
	separator string   // goes before the next text
	place     []Place  // of the block under way
}

// collapse appends text with runs of HTML's white space as one space, none at
// the beginning of a line.
func (w *textWriter) collapse(s string) {
	for i := range len(s) {
		switch c := s[i]; c {
		case ' ', '\t', '\n':
			w.space = true
		default:
			if n := len(w.line); w.space && n > 0 && w.line[n-1] != '\n' {
				w.line = append(w.line, ' ')
			}
			w.space = false
			w.line = append(w.line, c)
		}
	}
}

// take returns the text under way without outer white space, and forgets it.
func (w *textWriter) take() string {
	s := strings.TrimSpace(string(w.line))
	w.line, w.space = w.line[:0], false
	return s
}

// leaf writes the text under way as a block, if there is any. Code keeps the
// indentation of its first line.
func (w *textWriter) leaf(kind Kind, level int) {
	line := string(w.line)
	text := w.take()
	if text == "" {
		return
	}
	if kind == Code {
		at := strings.Index(line, text)
		text = line[lineStart(line, at):at] + text
	}
	b := &Block{Kind: kind, Level: level, Places: w.place}
	if kind == Heading {
		b.Title = oneLine(text)
	}
	b.Start = w.write(text)
	b.End = w.out.Len()
	w.add(b)
}

// write appends text after separator, indentation and marker, and returns the
// position of its first character that is no space.
func (w *textWriter) write(text string) int {
	text = w.indent() + w.marker + text
	if w.out.Len() == 0 {
		text = strings.TrimSpace(text)
	} else {
		w.out.WriteString(w.separator)
	}
	first, _ := trimRange(text, 0, len(text))
	start := w.out.Len() + first
	w.out.WriteString(text)
	w.marker, w.separator = "", "\n\n"
	if w.lists > 0 {
		w.separator = "\n"
	}
	for i := len(w.parents) - 1; i >= 0 && w.parents[i].Start < 0; i-- {
		w.parents[i].Start = start
	}
	return start
}

// indent is two spaces before a marker for each list around its own, at most four times.
func (w *textWriter) indent() string {
	if w.marker == "" {
		return ""
	}
	return strings.Repeat("  ", min(w.lists-1, 4))
}

// begin opens a container.
func (w *textWriter) begin(kind Kind) {
	if kind == List {
		if w.lists == 0 {
			w.separator = "\n\n"
		}
		w.lists++
	}
	if len(w.parents) == maxNesting {
		w.deeper++
		return
	}
	w.parents = append(w.parents, &Block{Kind: kind, Start: -1})
}

// finish closes the innermost container, and drops it if it has no text.
func (w *textWriter) finish(kind Kind) {
	w.marker = ""
	if kind == List {
		if w.lists--; w.lists == 0 {
			w.separator = "\n\n"
		}
	}
	if w.deeper > 0 {
		w.deeper--
		return
	}
	b := w.parents[len(w.parents)-1]
	w.parents = w.parents[:len(w.parents)-1]
	if b.Start >= 0 {
		b.End = w.out.Len()
		w.add(b)
	}
}

// add puts a finished block into the innermost open container. A list holds
// items only: anything else becomes an item of its own.
func (w *textWriter) add(b *Block) {
	w.blocks++
	if len(w.parents) == 0 {
		w.top = append(w.top, b)
		return
	}
	parent := w.parents[len(w.parents)-1]
	if parent.Kind == List && b.Kind != Item {
		b = &Block{Kind: Item, Start: b.Start, End: b.End, Children: []*Block{b}}
		w.blocks++
	}
	adopt(parent, b)
}
