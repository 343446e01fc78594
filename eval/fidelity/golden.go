package fidelity

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"sluice/document"
)

// Golden is the golden reading of a file: of DoclingDocument JSON straight from
// its items, apart from the parser that is judged; else what the parser of its
// format, Markdown or HTML, reads. As in what docling-core itself writes, labels
// inside a picture are no text; what else lies inside a cell is.
func Golden(format string, raw []byte) (Reading, error) {
	if format == "docling" {
		return docling(raw)
	}
	doc, err := document.Parse(format, raw)
	return Of(doc), err
}

// item is an item of a DoclingDocument.
type item struct {
	Label       string
	Layer       string `json:"content_layer"`
	Text        string
	Marker      string
	Enumerated  bool
	Children    []ref
	Captions    []ref
	Data        struct{ Grid [][]struct{ Text string } }
	Annotations []struct{ Kind, Text string }
	Meta        struct{ Description struct{ Text string } }
	Graph       struct{ Cells []struct{ Text string } }
}

// ref names an item, under one of two names.
type ref struct {
	To  string `json:"$ref"`
	Old string `json:"cref"`
}

type items struct {
	Body                            item
	Groups, Texts, Tables, Pictures []item
	KeyValues                       []item `json:"key_value_items"`
	Forms                           []item `json:"form_items"`
	Regions                         []item `json:"field_regions"`
	Fields                          []item `json:"field_items"`
}

// walk goes over the items in the order of the body, each once.
type walk struct {
	items
	seen    map[*item]bool
	reading Reading
	words   strings.Builder
}

func docling(raw []byte) (Reading, error) {
	d := walk{seen: map[*item]bool{}}
	if err := json.Unmarshal(raw, &d.items); err != nil {
		return Reading{}, fmt.Errorf("golden reading: %w", err)
	}
	d.visit(d.Body.Children, "")
	d.reading.Text = d.words.String()
	return d.reading, nil
}

// visit reads items and what is in them, but for what a table around them says.
func (d *walk) visit(refs []ref, said string) {
	for _, r := range refs {
		n := d.find(r.To + r.Old)
		if n == nil || d.seen[n] {
			continue
		}
		d.seen[n] = true
		d.visit(n.Captions, "")
		if n.isBody() && (said == "" || !strings.Contains(said, n.Text)) {
			d.read(n)
		}
		switch {
		case strings.HasPrefix(r.To+r.Old, "#/tables/"):
			d.visit(n.Children, cellsOf(n))
		case !strings.HasPrefix(r.To+r.Old, "#/pictures/"):
			d.visit(n.Children, said)
		}
	}
}

func (n *item) isBody() bool {
	return (n.Layer == "" || n.Layer == "body") && n.Label != "page_header" && n.Label != "page_footer"
}

func cellsOf(n *item) string {
	var said strings.Builder
	for _, row := range n.Data.Grid {
		for _, cell := range row {
			said.WriteString(cell.Text + "\n")
		}
	}
	return said.String()
}

func (d *walk) find(path string) *item {
	kind, number, _ := strings.Cut(strings.TrimPrefix(path, "#/"), "/")
	all := map[string][]item{
		"groups": d.Groups, "texts": d.Texts, "tables": d.Tables, "pictures": d.Pictures,
		"key_value_items": d.KeyValues, "form_items": d.Forms, "field_regions": d.Regions, "field_items": d.Fields,
	}[kind]
	if at, err := strconv.Atoi(number); err == nil && at >= 0 && at < len(all) {
		return &all[at]
	}
	return nil
}

// read takes an item's own words.
func (d *walk) read(n *item) {
	text := n.text()
	if n.Enumerated {
		d.words.WriteString(n.Marker + " ")
	}
	d.words.WriteString(text + "\n")
	switch {
	case n.Label == "caption":
		d.reading.Captions = append(d.reading.Captions, text)
	case text != "":
		d.reading.Blocks = append(d.reading.Blocks, text)
	}
	if len(n.Data.Grid) > 0 {
		d.table(n)
	}
}

func (n *item) text() string {
	text := n.Text
	if text == "" {
		text = n.Meta.Description.Text
	}
	for _, a := range n.Annotations {
		if text == "" && a.Kind == "description" {
			text = a.Text
		}
	}
	for _, cell := range n.Graph.Cells {
		text += "\n" + cell.Text
	}
	return text
}

func (d *walk) table(n *item) {
	var t Table
	for _, row := range n.Data.Grid {
		var cells []string
		for _, cell := range row {
			cells = append(cells, cell.Text)
			d.words.WriteString(cell.Text + "\n")
		}
		t = append(t, cells)
	}
	d.reading.Tables = append(d.reading.Tables, t)
}
