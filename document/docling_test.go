package document

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/needs"
)

// doclingData is the folder of DoclingDocument samples beside the repository.
func doclingData(t testing.TB) string {
	t.Helper()
	return needs.Data(t, "docling-documents")
}

// expectedChunk is what docling-core's chunkers make.
type expectedChunk struct {
	Text string
	Meta struct {
		Headings []string
		Items    []struct {
			Ref   string `json:"self_ref"`
			Label string
		} `json:"doc_items"`
	}
}

// TestDoclingOrder compares reading order, roles and heading paths with what
// docling-core's own chunkers say of two documents.
func TestDoclingOrder(t *testing.T) {
	for input, output := range map[string]string{"0_inp_dl_doc": "0_out_chunks", "2_inp_dl_doc": "2a_out_chunks"} {
		raw, err := os.ReadFile(filepath.Join(doclingData(t), "chunker", input+".json"))
		require.NoError(t, err)
		expected, err := os.ReadFile(filepath.Join(doclingData(t), "chunker", output+".json"))
		require.NoError(t, err)
		var want struct{ Root []expectedChunk }
		require.NoError(t, json.Unmarshal(expected, &want))
		require.NotEmpty(t, want.Root)

		var source docling
		require.NoError(t, json.Unmarshal(raw, &source))
		r := newDoclingReader(&source, len(raw))
		require.NoError(t, r.children(source.Body.Children, 0))
		expectedItems, items := itemsOf(want.Root), bodyOf(r)
		for i, e := range expectedItems {
			if len(items) > i && len(items[i].headings) > 512 && e.headings == "" {
				expectedItems[i].headings = items[i].headings // the hybrid chunker drops paths that fill a chunk
			}
		}
		require.Equal(t, expectedItems, items, input)
	}
}

// item is one item with its label and the headings above it.
type item struct{ ref, kind, headings string }

func itemsOf(chunks []expectedChunk) []item {
	var items []item
	for _, c := range chunks {
		for _, n := range c.Meta.Items {
			i := item{n.Ref, n.Label, strings.Join(c.Meta.Headings, " > ")}
			if len(items) == 0 || items[len(items)-1] != i { // a chunk goes on with an item
				items = append(items, i)
			}
		}
	}
	return items
}

// bodyOf lists the elements under their headings.
func bodyOf(r *doclingReader) []item {
	labels := map[Kind]string{Paragraph: "text", Item: "list_item", Figure: "picture", Table: "table"}
	var items []item
	headings := make([]string, 7)
	for i, e := range r.elements {
		if e.Kind == Heading {
			headings[e.Level] = e.Text
			clear(headings[e.Level+1:])
			continue
		}
		kind := labels[e.Kind]
		if kind == "" {
			kind = string(e.Kind)
		}
		path := slices.DeleteFunc(slices.Clone(headings), func(s string) bool { return s == "" })
		items = append(items, item{r.refs[i], kind, strings.Join(path, " > ")})
	}
	return items
}

// TestDoclingSamples parses every sample, of schema versions 1.0 to 1.10.
func TestDoclingSamples(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(doclingData(t), "*.json"))
	require.NoError(t, err)
	parsed := 0
	for _, path := range append(paths, filepath.Join(doclingData(t), "chunker", "0_inp_dl_doc.json")) {
		if strings.HasSuffix(path, "schema.json") {
			continue
		}
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		doc, err := Parse("docling", raw)
		require.NoError(t, err, path)
		require.NoError(t, Check(doc), path)
		require.NotEmpty(t, doc.Text, path)
		encoded, err := doc.Encode()
		require.NoError(t, err)
		again, err := Decode(doc.Text, encoded)
		require.NoError(t, err)
		require.Equal(t, doc, again, path)
		parsed++
		t.Logf("%s: %d bytes of text, %d blocks at the top, %d pieces of furniture", filepath.Base(path), len(doc.Text), len(doc.Blocks), len(doc.Furniture))
	}
	require.Equal(t, 16, parsed)
}

// TestDoclingRichCells: what lies inside a cell is said in it, once, and what
// lies in a table but in no cell after it.
func TestDoclingRichCells(t *testing.T) {
	doc, err := Parse("docling", []byte(`{"schema_name":"DoclingDocument","version":"1.7.0","body":{"children":[{"$ref":"#/tables/0"}]},
"groups":[{"self_ref":"#/groups/0","label":"unspecified","children":[{"$ref":"#/texts/0"},{"$ref":"#/groups/1"}]},{"self_ref":"#/groups/1","label":"list","children":[{"$ref":"#/texts/1"}]}],
"texts":[{"label":"text","text":"with a list:"},{"label":"list_item","text":"nested"},{"label":"text","text":"another"},{"label":"text","text":"plain"},{"label":"text","text":"beside"}],
"tables":[{"self_ref":"#/tables/0","children":[{"$ref":"#/groups/0"},{"$ref":"#/texts/2"},{"$ref":"#/texts/3"},{"$ref":"#/texts/4"},{"$ref":"#/tables/1"}],"data":{"num_rows":2,"num_cols":2,"table_cells":[
{"end_row_offset_idx":1,"end_col_offset_idx":1,"text":"plain"},
{"end_row_offset_idx":1,"start_col_offset_idx":1,"end_col_offset_idx":2,"text":"with a list:","ref":{"$ref":"#/groups/0"}},
{"start_row_offset_idx":1,"end_row_offset_idx":2,"end_col_offset_idx":1,"text":"own","ref":{"$ref":"#/texts/2"}},
{"start_row_offset_idx":1,"end_row_offset_idx":2,"start_col_offset_idx":1,"end_col_offset_idx":2,"text":"","ref":{"$ref":"#/tables/1"}}]}},
{"self_ref":"#/tables/1","data":{"num_rows":1,"num_cols":2,"table_cells":[{"end_row_offset_idx":1,"end_col_offset_idx":1,"text":"in"},{"end_row_offset_idx":1,"start_col_offset_idx":1,"end_col_offset_idx":2,"text":"side"}]}}]}`))
	require.NoError(t, err)
	require.NoError(t, Check(doc))
	require.Len(t, doc.Blocks, 2)
	require.Equal(t, []string{"plain", "with a list: nested"}, doc.Blocks[0].Grid.Rows[0].Cells)
	require.Equal(t, []string{"own another", "in side"}, doc.Blocks[0].Grid.Rows[1].Cells)
	require.Equal(t, "beside", doc.Text[doc.Blocks[1].Start:doc.Blocks[1].End])
}

// TestDoclingRepeatsAreBounded: few bytes make no large document, neither of one
// cell in many places nor of such tables inside of each other.
func TestDoclingRepeatsAreBounded(t *testing.T) {
	nested := func(levels, columns int, text string) []byte {
		var tables []string
		for i := range levels {
			cell := fmt.Sprintf(`"text":"","ref":{"$ref":"#/tables/%d"}`, i+1)
			if i == levels-1 {
				cell = fmt.Sprintf(`"text":%q`, text)
			}
			tables = append(tables, fmt.Sprintf(`{"self_ref":"#/tables/%d","data":{"num_rows":1,"num_cols":%d,"table_cells":[{"end_row_offset_idx":1,"end_col_offset_idx":%[2]d,%s}]}}`, i, columns, cell))
		}
		return []byte(`{"schema_name":"DoclingDocument","version":"1.7.0","body":{"children":[{"$ref":"#/tables/0"}]},"tables":[` + strings.Join(tables, ",") + `]}`)
	}
	raw := nested(1, 20_000, strings.Repeat("x", 1000))
	doc, err := Parse("docling", raw)
	require.NoError(t, err)
	require.Contains(t, doc.Text, "| xxx")
	require.Less(t, len(doc.Text), 100_000+20_000*len("  | --- |"))

	doc, err = Parse("docling", nested(3, 10, "said"))
	require.NoError(t, err)
	require.Equal(t, 1000, strings.Count(doc.Text, "said"))

	var refs, tables []string
	for i := range 100 {
		refs = append(refs, fmt.Sprintf(`{"$ref":"#/tables/%d"}`, i))
		tables = append(tables, fmt.Sprintf(`{"self_ref":"#/tables/%d","data":{"num_rows":1,"num_cols":100000,"table_cells":[{"end_row_offset_idx":1,"end_col_offset_idx":1,"text":"a"}]}}`, i))
	}
	doc, err = Parse("docling", []byte(`{"schema_name":"DoclingDocument","version":"1.7.0","body":{"children":[`+strings.Join(refs, ",")+`]},"tables":[`+strings.Join(tables, ",")+`]}`))
	require.NoError(t, err)
	require.Less(t, len(doc.Text), 2*100_000*len("  | --- |"))

	_, err = Parse("docling", nested(4, 100, "said"))
	require.ErrorIs(t, err, ErrMalformed)
}

func TestDoclingRefuses(t *testing.T) {
	for name, source := range map[string]string{
		"no JSON":          `{`,
		"another schema":   `{"schema_name":"x","version":"1.0.0"}`,
		"another version":  `{"schema_name":"DoclingDocument","version":"2.0.0"}`,
		"a lost reference": `{"schema_name":"DoclingDocument","version":"1.0.0","body":{"children":[{"$ref":"#/texts/0"}]}}`,
		"a cycle":          `{"schema_name":"DoclingDocument","version":"1.0.0","body":{"children":[{"$ref":"#/groups/0"}]},"groups":[{"children":[{"cref":"#/groups/0"}]}]}`,
	} {
		_, err := Parse("docling", []byte(source))
		require.ErrorIs(t, err, ErrMalformed, name)
	}
}

func FuzzParseDocling(f *testing.F) {
	f.Add([]byte(`{"schema_name":"DoclingDocument","version":"1.0.0","pages":{"1":{"page_no":1,"size":{"width":9,"height":9}}},
"body":{"children":[{"$ref":"#/texts/0"},{"$ref":"#/groups/0"},{"$ref":"#/tables/0"},{"$ref":"#/pictures/0"}]},
"groups":[{"self_ref":"#/groups/0","label":"list","children":[{"$ref":"#/texts/1"}]}],
"texts":[{"label":"title","text":"a","prov":[{"page_no":1,"bbox":{"l":1,"t":9,"r":2,"b":3}}]},{"label":"list_item","text":"b","marker":"1."},{"label":"caption","text":"c"}],
"pictures":[{"self_ref":"#/pictures/0","meta":{"description":{"text":"d"}}}],
"tables":[{"self_ref":"#/tables/0","captions":[{"$ref":"#/texts/2"}],"data":{"num_rows":2,"num_cols":2,"table_cells":[{"end_row_offset_idx":1,"end_col_offset_idx":2,"text":"x|","column_header":true},{"start_row_offset_idx":1,"end_row_offset_idx":2,"end_col_offset_idx":1,"text":"y\\nz"}]}}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		doc, err := Parse("docling", raw)
		if err == nil {
			require.NoError(t, Check(doc))
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add("a b", `{"blocks":[{"kind":"paragraph","start":0,"end":3}]}`)
	f.Add("a b", `{"blocks":[null,{"kind":"section","children":[null]}]}`)
	f.Fuzz(func(t *testing.T, text, encoded string) {
		if d, err := Decode(text, []byte(encoded)); err == nil {
			require.NoError(t, Check(d))
		}
	})
}
