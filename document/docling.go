package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// parseDocling reads DoclingDocument JSON, versions 1.x
// (github.com/docling-project/docling-core, docling_core/types/doc). It reads
// the body in its order; furniture stays beside the text. References that lead
// nowhere, or twice to one item, are ErrMalformed.
func parseDocling(raw []byte) (Document, error) {
	if at := invalidUTF8(raw); at >= 0 {
		return Document{}, fmt.Errorf("%w (bad byte 0x%02x at position %d)", ErrNotUTF8, raw[at], at)
	}
	var source docling
	if err := json.Unmarshal(bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf")), &source); err != nil {
		return Document{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if source.Schema != "DoclingDocument" || !strings.HasPrefix(source.Version, "1.") {
		return Document{}, fmt.Errorf("%w: schema %q version %q; DoclingDocument 1.x is read", ErrMalformed, oneLine(source.Schema), oneLine(source.Version))
	}
	r := newDoclingReader(&source, len(raw))
	r.pages()
	if err := r.children(source.Body.Children, 0); err != nil {
		return Document{}, err
	}
	if err := r.children(source.Furniture.Children, 0); err != nil {
		return Document{}, err
	}
	doc, err := Assemble(r.elements)
	doc.Furniture, doc.Pages = r.furniture, r.sizes
	return doc, err
}

// docling is a DoclingDocument, as far as it is read.
type docling struct {
	Schema    string `json:"schema_name"`
	Version   string `json:"version"`
	Body      doclingItem
	Furniture doclingItem
	Groups    []doclingItem
	Texts     []doclingItem
	Pictures  []doclingItem
	Tables    []doclingItem
	KeyValues []doclingItem `json:"key_value_items"`
	Forms     []doclingItem `json:"form_items"`
	Regions   []doclingItem `json:"field_regions"`
	Fields    []doclingItem `json:"field_items"`
	Pages     map[string]struct {
		Size   Page
		Number int `json:"page_no"`
	}
}

// doclingItem is any node of it.
type doclingItem struct {
	Ref         string `json:"self_ref"`
	Children    []doclingRef
	Label       string
	Layer       string `json:"content_layer"`
	Prov        []doclingPlace
	Text        string
	Level       int
	Enumerated  bool
	Marker      string
	Captions    []doclingRef
	Footnotes   []doclingRef
	Annotations []struct{ Kind, Text string }
	Meta        struct{ Description, Summary struct{ Text string } }
	Data        struct {
		Cells   []doclingCell `json:"table_cells"`
		Rows    int           `json:"num_rows"`
		Columns int           `json:"num_cols"`
	}
	Graph struct{ Cells []struct{ Text string } }
}

// doclingRef names an item: "#/texts/3", under one of two names.
type doclingRef struct {
	Ref  string `json:"$ref"`
	Cref string `json:"cref"`
}

type doclingPlace struct {
	Page int `json:"page_no"`
	Box  struct {
		L, T, R, B float64
		Origin     string `json:"coord_origin"`
	} `json:"bbox"`
}

type doclingCell struct {
	Row       int `json:"start_row_offset_idx"`
	RowEnd    int `json:"end_row_offset_idx"`
	Column    int `json:"start_col_offset_idx"`
	ColumnEnd int `json:"end_col_offset_idx"`
	Text      string
	Header    bool       `json:"column_header"`
	Ref       doclingRef // of what a rich cell consists of
}
