package fidelity

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/document"
)

func teds(t *testing.T, a, b Table) float64 {
	t.Helper()
	got, err := TEDS(a, b)
	require.NoError(t, err)
	back, err := TEDS(b, a)
	require.NoError(t, err)
	require.InDelta(t, got, back, 1e-12, "a distance has no direction")
	return got
}

// Values by hand: the 2 × 2 table has 1 + 2 + 4 = 7 nodes.
func TestTEDS(t *testing.T) {
	table := Table{{"a", "b"}, {"c", "diff"}}
	require.Equal(t, 1.0, teds(t, table, table))
	require.Equal(t, 1.0, teds(t, nil, nil))
	require.Equal(t, 0.0, teds(t, table, nil))
	require.InDelta(t, 1-1.0/7, teds(t, table, Table{{"x", "b"}, {"c", "diff"}}), 1e-12, "a cell is another")
	require.InDelta(t, 1-0.5/7, teds(t, table, Table{{"a", "b"}, {"c", "di"}}), 1e-12, "half of a cell")
	require.InDelta(t, 1-1.0/7, teds(t, table, Table{{"a", "b"}, {"c"}}), 1e-12, "a cell is missing")
	require.InDelta(t, 1-3.0/7, teds(t, table, Table{{"a", "b"}}), 1e-12, "a row and its cells are missing")
	require.InDelta(t, 1-2.0/7, teds(t, table, Table{{"a"}, {"c"}}), 1e-12, "a column is missing")
	require.Equal(t, 1.0, teds(t, Table{{"a  b"}}, Table{{" a\nb "}}), "white space is one space")
	require.InDelta(t, 1-4.0/7, teds(t, table, Table{{"c", "diff"}, {"a", "b"}}), 1e-12, "rows that swap: four cells change, or a row goes and comes for six")
	require.InDelta(t, 1-3.0/4, teds(t, Table{{"", ""}}, Table{{}, {}}), 1e-12, "cells do not become rows")
	_, err := TEDS(make(Table, maxNodes), table)
	require.ErrorIs(t, err, ErrTooLarge)
}

// The example of Zhang and Shasha's paper: f(d(a c(b)) e) to f(c(d(a b)) e) takes
// two edits.
func TestDistanceOfThePaper(t *testing.T) {
	tree := func(name string, children ...*node) *node { return &node{name, children} }
	a := flatten(tree("f", tree("d", tree("a"), tree("c", tree("b"))), tree("e")))
	b := flatten(tree("f", tree("c", tree("d", tree("a"), tree("b"))), tree("e")))
	rename := func(i, j int) float64 {
		if a.nodes[i].text == b.nodes[j].text {
			return 0
		}
		return 1
	}
	require.Equal(t, 2.0, distance(a, b, rename))
}

// Tables of the same levels, against a plain recursion over forests.
func TestDistanceAgainstRecursion(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	for range 200 {
		a, b := randomTable(random).tree(), randomTable(random).tree()
		cost := renaming(a, b)
		want := (&plain{a: a, b: b, rename: cost, known: map[[4]int]float64{}}).forests(0, len(a.nodes), 0, len(b.nodes))
		require.InDelta(t, want, distance(a, b, cost), 1e-9, "seed %d", seed)
	}
}

func randomTable(random *rand.Rand) Table {
	t := make(Table, 1+random.IntN(3))
	for i := range t {
		for range random.IntN(4) {
			t[i] = append(t[i], strings.Repeat(string(rune('a'+random.IntN(2))), 1+random.IntN(3)))
		}
	}
	return t
}

// plain is the definition: the last root of either forest goes, or both match.
type plain struct {
	a, b   *flat
	rename func(i, j int) float64
	known  map[[4]int]float64
}

func (p *plain) forests(i, x, j, y int) float64 {
	key := [4]int{i, x, j, y}
	if i == x || j == y {
		return float64(x - i + y - j)
	}
	if d, ok := p.known[key]; ok {
		return d
	}
	d := min(p.forests(i, x-1, j, y), p.forests(i, x, j, y-1)) + 1
	left, top := max(p.a.left[x-1], i), max(p.b.left[y-1], j)
	d = min(d, p.forests(i, left, j, top)+p.forests(left, x-1, top, y-1)+p.rename(x-1, y-1))
	p.known[key] = d
	return d
}

func TestTables(t *testing.T) {
	a, b := Table{{"a", "b"}, {"c", "d"}}, Table{{"x"}, {"y"}, {"z"}}
	same, err := tables([]Table{a, b}, []Table{a, b})
	require.NoError(t, err)
	require.Equal(t, 1.0, same)
	missed, err := tables([]Table{a, b}, []Table{b})
	require.NoError(t, err)
	require.Equal(t, 0.5, missed, "one that is missed does not shift the rest")
	more, err := tables([]Table{b}, []Table{a, b})
	require.NoError(t, err)
	require.Equal(t, 0.5, more, "one that is made up counts")
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		want, got string
		value     float64
	}{
		{"", "", 1}, {"a b", "", 0}, {"One, two three four", "one two THREE four", 1},
		{"a b c d", "a c d", 6.0 / 7}, {"a b", "b a", 0.5},
	} {
		got, err := integrity(wordsOf(c.want), wordsOf(c.got))
		require.NoError(t, err)
		require.InDelta(t, c.value, got, 1e-12, "%q %q", c.want, c.got)
	}
	_, err := integrity(make([]string, maxWords+1), nil)
	require.ErrorIs(t, err, ErrTooLarge)
}

func TestCaptions(t *testing.T) {
	want := []string{"Table 1: the towns", "Figure 2: a river and its banks"}
	require.Equal(t, 1.0, captions(want, []string{want[1], want[0]}))
	require.InDelta(t, 2.0/3, captions(want, want[:1]), 1e-12)
	require.Equal(t, 0.0, captions(want, []string{"Something else"}))
	require.InDelta(t, 2.0/3, captions([]string{want[0], want[0]}, want[:1]), 1e-12, "one is found once")
}

func TestOrder(t *testing.T) {
	blocks := []string{"the first block has these words", "a second one is there too", "third and last of all blocks", "short"}
	text := func(order ...int) []string {
		var all []string
		for _, i := range order {
			all = append(all, wordsOf(blocks[i])...)
		}
		return all
	}
	want := text(0, 1, 2)
	for _, c := range []struct {
		got   []string
		share float64
	}{{want, 1}, {text(2, 1, 0), 0}, {text(1, 0, 2), 2.0 / 3}, {text(0, 2), 1}} {
		share, known := order(blocks, want, c.got)
		require.True(t, known)
		require.InDelta(t, c.share, share, 1e-12)
	}
	_, known := order(blocks, want, text(1))
	require.False(t, known)
}

func TestCompare(t *testing.T) {
	golden := "# Rivers\n\nThe first block has these words.\n\nA second one is there too.\n\n| a | b |\n| --- | --- |\n| c | d |\n"
	want, err := Golden("markdown", []byte(golden))
	require.NoError(t, err)
	s, err := Compare(want, want)
	require.NoError(t, err)
	require.Equal(t, 1.0, s.Whole)
	require.Nil(t, s.Captions)

	got := want
	got.Tables = nil
	s, err = Compare(want, got)
	require.NoError(t, err)
	require.InDelta(t, (0.40+0.15)/0.85, s.Whole, 1e-12, "captions leave their weight to the others")
}

// The items of a DoclingDocument, and what the parser makes of it.
func TestDoclingGolden(t *testing.T) {
	raw := []byte(`{"schema_name":"DoclingDocument","version":"1.0.0","body":{"children":[{"$ref":"#/texts/0"},{"$ref":"#/tables/0"},{"$ref":"#/texts/1"}]},
"texts":[{"self_ref":"#/texts/0","label":"title","text":"Rivers and towns"},{"self_ref":"#/texts/1","label":"text","text":"Below the table."},
{"self_ref":"#/texts/2","label":"caption","text":"Table 1: the towns"},{"self_ref":"#/texts/3","label":"page_footer","content_layer":"furniture","text":"page 1"},{"text":"x"},{"text":"within"}],
"tables":[{"self_ref":"#/tables/0","label":"table","captions":[{"$ref":"#/texts/2"}],"children":[{"$ref":"#/texts/4"},{"cref":"#/texts/5"}],"data":{"num_rows":1,"num_cols":2,
"table_cells":[{"start_row_offset_idx":0,"end_row_offset_idx":1,"start_col_offset_idx":0,"end_col_offset_idx":2,"text":"x"}],"grid":[[{"text":"x"},{"text":"x"}]]}}]}`)
	want, err := Golden("docling", raw)
	require.NoError(t, err)
	require.Equal(t, []Table{{{"x", "x"}}}, want.Tables)
	require.Equal(t, []string{"Table 1: the towns"}, want.Captions)
	require.Equal(t, "rivers and towns table 1 the towns x x within below the table", strings.Join(wordsOf(want.Text), " "), "a cell's text is said once")
	doc, err := document.Parse("docling", raw)
	require.NoError(t, err)
	s, err := Compare(want, Of(doc))
	require.NoError(t, err)
	require.Equal(t, 1.0, *s.Tables)
	require.Equal(t, 1.0, *s.Captions)
}

func TestTwins(t *testing.T) {
	twins, err := Twins("testdata/twins")
	require.NoError(t, err)
	require.Equal(t, []Twin{
		{"testdata/twins/a.json", "docling", "testdata/twins/a.json", "docling"},
		{"testdata/twins/html/b.html", "html", "testdata/twins/md/b.md", "markdown"},
	}, twins)
}

// Each part shows where it first differs, and nothing where it does not.
func TestFaults(t *testing.T) {
	want := Reading{
		Text: "One two three four five. Six seven eight nine ten.", Blocks: []string{"One two three four five.", "Six seven eight nine ten."},
		Tables: []Table{{{"a", "b"}}, {{"c"}}}, Captions: []string{"Figure 1", "Figure 2"},
	}
	require.Empty(t, Faults(want, want))
	got := Reading{Text: "Six seven eight nine ten. One two three four five.", Tables: []Table{{{"a", "b"}}, {{"d"}}}, Captions: []string{"Figure 1"}}
	require.Equal(t, map[string]Fault{
		TextPart:     {"one two three four five six seven eight nine ten", "six seven eight nine ten one two three four five"},
		TablesPart:   {"c", "d"},
		CaptionsPart: {Wanted: "Figure 2"},
		OrderPart:    {"one two three four five … six seven eight nine ten", "six seven eight nine ten … one two three four five"},
	}, Faults(want, got))
	more := want
	more.Tables, more.Captions = append([]Table{{{"x"}}}, want.Tables...), append(want.Captions[:2:2], "Table 3")
	require.Equal(t, map[string]Fault{TablesPart: {Read: "c"}, CaptionsPart: {Read: "Table 3"}}, Faults(want, more))
	require.Equal(t, Fault{Wanted: "a b"}, Faults(Reading{Text: "a b"}, Reading{})[TextPart])
}
