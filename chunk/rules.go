package chunk

import (
	"context"
	"strings"

	"sluice/document"
)

// Rules is a planner of rules: what stands under one heading goes together as
// far as it fits into a chunk, a line that ends with a colon with what follows
// it, and a small section with the one before it.
type Rules struct{}

const plannedWords = 150 // of a group, so that most fit into one chunk

// Plan never fails.
func (Rules) Plan(_ context.Context, s Section) ([][]string, error) {
	var groups [][]string
	var group []string
	words := 0
	flush := func() {
		if len(group) > 0 {
			groups = append(groups, group)
		}
		group, words = nil, 0
	}
	for i, e := range s.Elements {
		need := e.Words
		if leadsOn(e) && i+1 < len(s.Elements) {
			need += s.Elements[i+1].Words
		}
		if e.Kind == document.Heading {
			need += below(s.Elements[i+1:])
		}
		if words > 0 && words+need > plannedWords && !(i > 0 && (leadsOn(s.Elements[i-1]) || s.Elements[i-1].Kind == document.Heading)) {
			flush()
		}
		group = append(group, e.ID)
		words += e.Words
	}
	flush()
	return groups, nil
}

// below is how many words stand under a heading up to the next one.
func below(elements []Element) int {
	words := 0
	for _, e := range elements {
		if e.Kind == document.Heading {
			break
		}
		words += e.Words
	}
	return min(words, plannedWords)
}

func leadsOn(e Element) bool { return e.Kind == document.Paragraph && strings.HasSuffix(e.Text, ":") }
