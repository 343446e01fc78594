package document

import "strings"

// parseText makes a paragraph of each run of lines between blank lines.
func parseText(text string) (Document, error) {
	doc := Document{Text: text}
	start := -1 // of the paragraph under way
	for at := 0; at < len(text); {
		end := lineEnd(text, at)
		switch blank := isBlank(text[at:end]); {
		case blank && start >= 0:
			doc.Blocks = append(doc.Blocks, paragraph(text, start, at))
			start = -1
		case !blank && start < 0:
			start = at
		}
		if len(doc.Blocks) > maxBlocks {
			return Document{}, ErrTooManyBlocks
		}
		at = end
	}
	if start >= 0 {
		doc.Blocks = append(doc.Blocks, paragraph(text, start, len(text)))
	}
	return doc, nil
}

func paragraph(text string, start, end int) *Block {
	start, end = trimRange(text, start, end)
	return &Block{Kind: Paragraph, Start: start, End: end}
}

// lineEnd returns the position after the line that holds position at.
func lineEnd(text string, at int) int {
	if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(text)
}

// lineStart returns the position where the line that holds position at begins.
func lineStart(text string, at int) int {
	return strings.LastIndexByte(text[:at], '\n') + 1
}
