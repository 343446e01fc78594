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
// format, Markdown or HTML, reads.
func Golden(format string, raw []byte) (Reading, error) {
	if format == "docling" {
		return docling(raw)
	}
	doc, err := document.Parse(format, raw)
	return Of(doc), err
}

// item is an item of a DoclingDocument.
type item struct {
	Label    string
	Layer    string `json:"content_layer"`
	Text     string
	Children []ref
	Captions []ref
	Data     struct{ Grid [][]struct{ Text string } }
	Meta     struct{ Description struct{ Text string } }
}

type ref struct {
	To string `json:"$ref"`
}

type items struct {
	Body                            item
	Groups, Texts, Tables, Pictures []item
	KeyValues                       []item `json:"key_value_items"`
}

// walk goes over the items.
type walk struct {
	items
	seen    map[string]bool
	reading Reading
	words   strings.Builder
}

func docling(raw []byte) (Reading, error) {
	d := walk{seen: map[string]bool{}}
	if err := json.Unmarshal(raw, &d.items); err != nil {
		return Reading{}, fmt.Errorf("golden reading: %w", err)
	}
	d.visit(d.Body.Children)
	d.reading.Text = d.words.String()
	return d.reading, nil
}

// visit reads items in the order of the body, each once.
func (d *walk) visit(refs []ref) {
	for _, r := range refs {
		n := d.find(r.To)
		if n == nil || d.seen[r.To] {
			continue
		}
		d.seen[r.To] = true
		d.visit(n.Captions)
		if n.Layer == "" || n.Layer == "body" {
			d.read(n)
		}
		d.visit(n.Children)
	}
}

func (d *items) find(path string) *item {
	kind, number, _ := strings.Cut(strings.TrimPrefix(path, "#/"), "/")
	all := map[string][]item{"groups": d.Groups, "texts": d.Texts, "tables": d.Tables, "pictures": d.Pictures, "key_value_items": d.KeyValues}[kind]
	if at, err := strconv.Atoi(number); err == nil && at >= 0 && at < len(all) {
		return &all[at]
	}
	return nil
}

func (d *walk) read(n *item) {
	text := n.Text
	if text == "" {
		text = n.Meta.Description.Text
	}
	d.words.WriteString(text + "\n")
	switch {
	case n.Label == "caption":
		d.reading.Captions = append(d.reading.Captions, text)
	case text != "":
		d.reading.Blocks = append(d.reading.Blocks, text)
	}
	if len(n.Data.Grid) == 0 {
		return
	}
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
