package ingest

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/chunk"
	"sluice/filter"
	"sluice/index/late"
	"sluice/store"
)

var bothKinds = store.Settings{Analyzer: "english", CodeBits: 8, Own: store.Own{Dense: 3, Multi: 2}}

// page has vectors as bothKinds wants them; the numbers depend on n.
func page(text string, n float32) Passage {
	return Passage{Text: text, Vector: []float32{n, 0, 0}, Vectors: []float32{n, n, 0, -n}, Columns: 2}
}

func pages(passages ...Passage) Document {
	return Document{Key: "k", Title: "Atlas", Passages: passages, Access: filter.Access{Readers: filter.Readers{Undeclared: true}}}
}

func (f *fixture) into(name string, d Document) (Outcome, error) {
	return f.Write(f.t.Context(), tenant, name, d)
}

func TestPassagesBringTheirVectors(t *testing.T) {
	f := newFixture(t)
	f.id = f.create("atlas", bothKinds)
	second := page(" the\x01 north\r\n", -2)
	second.Headings = []string{"Page 2"}

	out, err := f.into("atlas", pages(page("the south", 5), page("", 1), second))

	require.NoError(t, err)
	require.True(t, out.Created)
	require.Empty(t, f.embedder.taken(), "no model is asked")
	c := f.content("k")
	require.Equal(t, "the south\n\nthe  north", c.Text)
	require.Equal(t, []chunk.Chunk{
		{Start: 0, End: 9, Headings: []string{"Atlas"}}, {Start: 9, End: 9, Headings: []string{"Atlas"}},
		{Start: 11, End: 21, Headings: []string{"Atlas", "Page 2"}},
	}, c.Chunks)
	require.Equal(t, 3, c.Dimensions)
	require.Equal(t, []float32{1, 0, 0, 1, 0, 0, -1, 0, 0}, c.Vectors, "of length 1")
	codes := f.codes(c)
	coder := late.NewCoder(late.Kind{Dimensions: 2, Bits: 8})
	require.Equal(t, coder.Encode([]float32{7, 7, 0, -7}, make([]bool, 2)), codes[0])
	require.Equal(t, coder.Encode([]float32{-1, -1, 0, 1}, make([]bool, 2)), codes[2])
	require.Contains(t, f.awaiter.epochs, out.Epoch, "it is searchable")
}

// Token vectors alone have their mean for the passage's vector.
func TestTheMeanStandsForTokenVectors(t *testing.T) {
	f := newFixture(t)
	f.id = f.create("tokens", store.Settings{CodeBits: 1, Own: store.Own{Multi: 2}})
	_, err := f.into("tokens", pages(Passage{Vectors: []float32{3, 0, 0, 9}, Columns: 2}, Passage{Vectors: []float32{1, 0, -1, 0}, Columns: 2}))
	require.NoError(t, err)
	c := f.content("k")
	half := float32(math.Sqrt(0.5))
	require.InDeltaSlice(t, []float32{half, half, 0, 0}, c.Vectors, 1e-6)
	require.True(t, c.Coded)
}

// New vectors do not widen who may read: fields of the access row that are to be
// kept are kept.
func TestPassagesKeepTheirReaders(t *testing.T) {
	f := newFixture(t)
	f.id = f.create("atlas", bothKinds)
	d := pages(page("one", 1))
	d.Access = readableBy("user:a")
	_, err := f.into("atlas", d)
	require.NoError(t, err)
	d = pages(page("two", 2))
	d.Keeps = filter.ReadersField
	_, err = f.into("atlas", d)
	require.NoError(t, err)
	require.Equal(t, readableBy("user:a").Readers, f.content("k").Access.Readers)
}

// Every part of a passage is part of what makes a version.
func TestTheSamePassagesAreNoNewVersion(t *testing.T) {
	f := newFixture(t)
	f.create("atlas", bothKinds)
	given := func() Document { return pages(page("one", 1), page("two", 2)) }
	_, err := f.into("atlas", given())
	require.NoError(t, err)
	again, err := f.into("atlas", given())
	require.NoError(t, err)
	require.True(t, again.Unchanged)
	other := given()
	other.Access = filter.Access{Readers: filter.Readers{List: []filter.Reader{"user:ann"}}}
	again, err = f.into("atlas", other)
	require.NoError(t, err)
	require.True(t, again.AccessOnly)
	identities := map[[32]byte]bool{given().identity(): true}
	for i, change := range []func(*Document){
		func(d *Document) { d.Passages[1].Text = "three" },
		func(d *Document) { d.Passages[0].Vector[2] = 1e-9 },
		func(d *Document) { d.Passages[0].Vectors[3] = 8 },
		func(d *Document) { d.Passages[1].Headings = []string{"h"} },
		func(d *Document) { slices.Reverse(d.Passages) },
		func(d *Document) { d.Passages = d.Passages[:1] },
		func(d *Document) { d.Title = "Other" },
	} {
		d := given()
		change(&d)
		require.NotContains(t, identities, d.identity(), "change %d", i)
		identities[d.identity()] = true
		out, err := f.into("atlas", d)
		require.NoError(t, err)
		require.EqualValues(t, i+2, out.Version, "change %d", i)
	}
}

func TestPassagesThatAreRefused(t *testing.T) {
	f := newFixture(t)
	f.create("atlas", bothKinds)
	f.create("dense", store.Settings{Own: store.Own{Dense: 3}})
	f.create("tokens", store.Settings{CodeBits: 8, Own: store.Own{Multi: 2}})
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	changed := func(change func(*Passage)) Document {
		p := page("text", 1)
		change(&p)
		return pages(page("good", 1), p)
	}
	cases := []struct {
		collection string
		d          Document
		says       string
	}{
		{"atlas", pages(), "1 to 10000 passages"},
		{"atlas", markdown("k", "text"), "passages"},
		{"atlas", Document{Key: "k", Format: "text", Passages: []Passage{page("a", 1)}}, "no text or format"},
		{"atlas", pages(slices.Repeat([]Passage{page("a", 1)}, MaxPassages+1)...), "1 to 10000 passages"},
		{"atlas", changed(func(p *Passage) { p.Vector = p.Vector[:2] }), "passage 2: vector: 2 numbers; the collection's have 3"},
		{"atlas", changed(func(p *Passage) { p.Vector = nil }), "passage 2: vector: 0 numbers"},
		{"atlas", changed(func(p *Passage) { p.Vector[1] = nan }), "passage 2: vector"},
		{"atlas", changed(func(p *Passage) { p.Vector = make([]float32, 3) }), "nothing but zeros"},
		{"atlas", changed(func(p *Passage) { p.Vectors = nil }), "passage 2: vectors: 0 of them"},
		{"atlas", changed(func(p *Passage) { p.Columns = 4 }), "passage 2: vectors: 4 numbers each; the collection's have 2"},
		{"atlas", changed(func(p *Passage) { p.Columns = -2 }), "vectors"},
		{"atlas", changed(func(p *Passage) { p.Vectors[0] = inf }), "passage 2: vectors: vector 1 of 2"},
		{"atlas", changed(func(p *Passage) { p.Vectors[3] = 0 }), "vector 2 of 2"},
		{"atlas", changed(func(p *Passage) { p.Vectors = make([]float32, 2*MaxTokenVectors+2) }), "8193 of them"},
		{"atlas", changed(func(p *Passage) { p.Text = "\xff" }), "passage 2"},
		{"atlas", changed(func(p *Passage) { p.Headings = make([]string, MaxHeadings+1) }), "17 of them"},
		{"atlas", changed(func(p *Passage) { p.Headings = []string{"a\nb"} }), "headings"},
		{"atlas", changed(func(p *Passage) { p.Headings = []string{strings.Repeat("h", MaxTitleBytes+1)} }), "headings"},
		{"dense", pages(page("a", 1)), "vectors: the collection has none"},
		{"tokens", pages(page("a", 1)), "vector: the collection has none"},
		{library, pages(page("a", 1)), "the vectors of this collection are the model's"},
	}
	before, err := f.store.Epoch(t.Context())
	require.NoError(t, err)
	for _, c := range cases {
		_, err := f.into(c.collection, c.d)
		require.ErrorIs(t, err, store.ErrInvalid, c.says)
		require.ErrorContains(t, err, c.says)
	}
	after, err := f.store.Epoch(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, after, "nothing was written")
	require.Empty(t, f.embedder.taken())
}

// Whatever numbers and texts come: refused as invalid, or vectors of length 1
// (or a mean of nothing) and ranges inside the text.
func FuzzPassages(f *testing.F) {
	f.Add("text", "heading", []byte{0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 0, 192}, 2)
	f.Add("", "", []byte{1, 0, 0, 0, 0, 0, 128, 127}, 1)
	settings := store.Settings{CodeBits: 8, Own: store.Own{Multi: 2}}
	coder := late.NewCoder(late.Kind{Dimensions: 2, Bits: 8})
	f.Fuzz(func(t *testing.T, text, heading string, raw []byte, columns int) {
		var x []float32
		for ; len(raw) >= 4; raw = raw[4:] {
			x = append(x, math.Float32frombits(uint32(raw[0])|uint32(raw[1])<<8|uint32(raw[2])<<16|uint32(raw[3])<<24))
		}
		d := pages(Passage{Text: text, Vectors: x, Columns: columns}, Passage{Text: text, Headings: []string{heading}, Vectors: x, Columns: 2})
		v, err := preparePassages(d, settings)
		if err == nil {
			err = bring(d, settings.Own, coder, &v)
		}
		if err != nil {
			require.ErrorIs(t, err, store.ErrInvalid)
			return
		}
		require.NoError(t, v.Validate())
		for i := range v.Chunks {
			length := math.Hypot(float64(v.Vectors[2*i]), float64(v.Vectors[2*i+1]))
			require.True(t, length == 0 || math.Abs(length-1) < 1e-5, "%v", v.Vectors)
		}
	})
}
