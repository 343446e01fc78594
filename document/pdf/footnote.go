package pdf

import (
	"regexp"
	"strings"

	"sluice/document"
)

var noteStart = regexp.MustCompile(`^` + string(markOpen) + `?(\d{1,3}|[*†‡])` + string(markClose) + `?[.)]?\s*(\S.*)$`)

// footnotes puts the footnotes of a page after the paragraphs that have their
// marks: small text in the lower half that begins with a mark which stands
// raised in the text. Both get the anchor "[Footnote-3]".
func footnotes(blocks []*block, p *page, s styles) []*block {
	notes, marked := map[string]*block{}, map[string]map[*block]bool{}
	for _, n := range blocks {
		for _, mark := range marksOf(n.text) {
			if marked[mark] == nil {
				marked[mark] = map[*block]bool{}
			}
			marked[mark][n] = true
		}
	}
	for _, n := range blocks {
		if mark := noteMark(n, p, s); len(marked[mark]) > 1 || len(marked[mark]) == 1 && !marked[mark][n] {
			notes[mark] = n
		}
	}
	placed := map[*block]bool{}
	for _, n := range notes {
		placed[n] = true
	}
	var out []*block
	for _, n := range blocks {
		p.did(1)
		if placed[n] {
			continue
		}
		out = append(out, n)
		for _, mark := range marksOf(n.text) {
			note := notes[mark]
			if note == nil {
				continue
			}
			p.did(len(n.text))
			n.text = strings.Replace(n.text, raised(mark), " "+anchor(mark), 1)
			note.text = anchor(mark) + " " + plain(noteStart.FindStringSubmatch(note.text)[2])
			note.kind = document.Footnote
			delete(notes, mark)
			out = append(out, note)
		}
	}
	return out
}

// noteMark is the mark that a block begins with if it may be a footnote.
func noteMark(n *block, p *page, s styles) string {
	if len(n.lines) == 0 || n.lines[0].size > 0.92*s.body || n.box.Top < p.height/2 {
		return ""
	}
	text := n.text
	if n.kind == document.Item {
		text = n.marker + " " + text
	}
	found := noteStart.FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	n.text, n.kind = text, document.Paragraph
	return found[1]
}

func raised(mark string) string { return string(markOpen) + mark + string(markClose) }
func anchor(mark string) string { return "[Footnote-" + mark + "]" }

// marksOf are the raised marks of a text, in order.
func marksOf(text string) []string {
	var marks []string
	for {
		_, rest, ok := strings.Cut(text, string(markOpen))
		mark, after, closed := strings.Cut(rest, string(markClose))
		if !ok || !closed {
			return marks
		}
		marks, text = append(marks, mark), after
	}
}
