package document

// Limits keep the time and memory of a parse linear in the size of its input,
// whatever the input is. docs/formats/text.md states what happens beyond each.
const (
	maxBlocks      = 1 << 20   // of one document
	maxNesting     = 20        // lists, items and quotes inside each other
	maxHeading     = 512       // bytes of a heading with its marks
	maxFrontMatter = 64 << 10  // bytes
	maxTableCells  = 100_000   // of one Markdown table, its padding included
	maxRepeated    = 16        // times as much as its file may tables say again
	spanCost       = 16        // bytes of a place that a cell spans, beside its text
	maxHTMLLine    = 16 << 10  // bytes of a line that may begin an HTML block in Markdown
	windowSize     = 128 << 10 // bytes of Markdown parsed at a time
)

// repeats are the bytes that the tables of a file may say again.
func repeats(size int) int { return maxRepeated * (size + 4<<10) }
