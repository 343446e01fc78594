package document

import "bytes"

// Grid is the cells of a table, row by row. A cell that spans several places is repeated in
// each of them.
type Grid struct {
	Caption string `json:"caption,omitempty"`
	Header  int    `json:"header"` // so many of the first rows are headers
	Rows    []Row  `json:"rows"`
	Merge   *Merge `json:"merge,omitempty"` // of a table that was put together from several
}

// Row is a row of a table: the range [Start, End) of the normalised text, and
// its cells, each on one line.
type Row struct {
	Start int      `json:"start"`
	End   int      `json:"end"`
	Cells []string `json:"cells"`
}

// Merge says what a table across pages was put together from, and why.
type Merge struct {
	SourcePages             []int    `json:"source_pages"`
	OriginalTableIDs        []string `json:"original_table_ids"`
	InheritedHeaderFromPage int      `json:"inherited_header_from_page,omitempty"`
	Confidence              float64  `json:"merge_confidence"`
	ColumnAlignment         []int    `json:"column_alignment_map"` // column of the whole for each column of the last part
}

// Columns names each column: its header cells from the top, without repetitions.
func (g *Grid) Columns() []string {
	var built [][]byte
	for _, row := range g.Rows[:min(g.Header, len(g.Rows))] {
		for i, cell := range row.Cells {
			if i == len(built) {
				built = append(built, []byte(cell))
			} else if cell != "" && !bytes.HasSuffix(built[i], []byte(cell)) {
				built[i] = bytes.TrimSpace(append(append(built[i], ' '), cell...))
			}
		}
	}
	names := make([]string, len(built))
	for i, name := range built {
		names[i] = string(name)
	}
	return names
}
