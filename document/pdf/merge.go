package pdf

import (
	"fmt"
	"strings"

	"sluice/document"
)

const (
	sameColumn = 12.0 // points between the ends or the middle of one column on two pages
	leastSame  = 0.8  // share of the columns that have one
	mostGoOn   = 1000 // columns of a table that may go on
)

// joinTables puts a table together that goes on on the next page. Captions that
// only say so are taken out.
func joinTables(w *work, blocks []*block) []*block {
	names := 0
	var out []*block
	for i, n := range blocks {
		w.did(1)
		if n.kind != document.Table {
			out = append(out, n)
			continue
		}
		names++
		t := n.table
		t.ids, t.pages, t.places = []string{fmt.Sprintf("t%d", names)}, []int{n.page}, n.placed()
		at := lastTable(out, n.page)
		if at < 0 || hasTitle(blocks, i) {
			out = append(out, n)
			continue
		}
		before := out[at].table
		columns, share := aligned(w, before, t)
		if share < leastSame || ownHeader(before, t) {
			out = append(out, n)
			continue
		}
		out = out[:at+1]
		w.did(len(t.rows) * len(before.columns))
		before.append(t, columns, share)
	}
	return out
}

// lastTable finds the table that a page before ends with: nothing but a note
// that it is continued stands after it.
func lastTable(blocks []*block, page int) int {
	for i := len(blocks) - 1; i >= 0; i-- {
		n := blocks[i]
		switch {
		case n.kind == document.Table && n.table.pages[len(n.table.pages)-1] == page-1:
			return i
		case !continued(n):
			return -1
		}
	}
	return -1
}

func continued(n *block) bool {
	text := strings.ToLower(n.text)
	return len(text) < 80 && (strings.Contains(text, "continued") || strings.Contains(text, "cont'd"))
}

// hasTitle says whether a table has a caption of its own before it, other than
// one which says that it is continued.
func hasTitle(blocks []*block, i int) bool {
	return i > 0 && blocks[i-1].page == blocks[i].page && !continued(blocks[i-1])
}

// aligned maps the columns of a part to the nearest of the whole, -1 for none near,
// and returns the share of the whole's that have one.
func aligned(w *work, whole, part *table) (columns []int, share float64) {
	if max(len(whole.columns), len(part.columns)) > mostGoOn {
		return nil, 0
	}
	w.did(len(whole.columns) * len(part.columns))
	same := 0
	for _, c := range part.columns {
		at := 0
		for i, one := range whole.columns {
			if one.far(c) < whole.columns[at].far(c) {
				at = i
			}
		}
		if whole.columns[at].far(c) > sameColumn {
			at = -1
		} else {
			same++
		}
		columns = append(columns, at)
	}
	return columns, float64(same) / float64(max(len(whole.columns), len(part.columns)))
}

// ownHeader says whether a part begins with a header that is not the whole's.
func ownHeader(whole, part *table) bool {
	return part.header > 0 && part.bold && !sameRow(whole.rows[0], part.rows[0])
}

func sameRow(a, b []string) bool {
	return strings.EqualFold(strings.Join(a, "|"), strings.Join(b, "|"))
}

// append adds the rows of a part, but for a header that is repeated.
func (t *table) append(part *table, columns []int, share float64) {
	inherited := t.pages[0]
	rows := part.rows
	if t.header > 0 && sameRow(t.rows[0], rows[0]) {
		rows, inherited = rows[1:], 0
	}
	for _, row := range rows {
		parts := make([][]string, len(t.rows[0]))
		for j, cell := range row {
			at := columns[j]
			if at < 0 {
				at = len(parts) - 1
			}
			parts[at] = append(parts[at], cell)
		}
		t.rows = append(t.rows, joinedParts(parts))
	}
	if t.header == 0 {
		inherited = 0
	}
	t.pages, t.ids, t.places = append(t.pages, part.pages...), append(t.ids, part.ids...), append(t.places, part.places...)
	t.merge = &document.Merge{
		SourcePages: t.pages, OriginalTableIDs: t.ids, InheritedHeaderFromPage: inherited, Confidence: share, ColumnAlignment: columns,
	}
}
