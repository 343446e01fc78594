package document

// nest turns a flat list of blocks, headings among them, into body blocks
// followed by sections. A section holds its heading, its body and the sections
// of deeper headings up to the next heading of its own level or above.
func nest(flat []*Block) []*Block {
	root := &Block{}
	open := []*Block{root}
	for _, b := range flat {
		if b.Kind == Heading {
			for len(open) > 1 && open[len(open)-1].Level >= b.Level {
				open = open[:len(open)-1]
			}
			s := &Block{Kind: Section, Level: b.Level, Title: b.Title, Start: b.Start}
			adopt(open[len(open)-1], s)
			open = append(open, s)
		}
		adopt(open[len(open)-1], b)
		for _, s := range open[1:] {
			s.End = b.End
		}
	}
	return root.Children
}

func adopt(parent, child *Block) { parent.Children = append(parent.Children, child) }

// firstTitle is the title of the first section of level 1.
func firstTitle(blocks []*Block) string {
	for _, b := range blocks {
		if b.Kind == Section && b.Level == 1 && b.Title != "" {
			return b.Title
		}
		if t := firstTitle(b.Children); b.Kind == Section && t != "" {
			return t
		}
	}
	return ""
}
