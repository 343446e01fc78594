package ingest

import (
	"crypto/sha256"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/document"
	"sluice/gpu"
	"sluice/store"
)

func TestIdentityIsOfFormatTitleAndText(t *testing.T) {
	base := Document{Key: "k", Format: "text", Title: "title", Text: []byte("words")}
	other := base
	other.Key, other.Access = "other", readableBy("user:a")
	require.Equal(t, base.identity(), other.identity())

	seen := map[[32]byte]string{base.identity(): "base"}
	for what, d := range map[string]Document{
		"format":                 {Format: "markdown", Title: "title", Text: []byte("words")},
		"title":                  {Format: "text", Title: "titles", Text: []byte("words")},
		"text":                   {Format: "text", Title: "title", Text: []byte("words ")},
		"format, title moved":    {Format: "textti", Title: "tle", Text: []byte("words")},
		"title, text moved":      {Format: "text", Title: "titlew", Text: []byte("ords")},
		"title in text's place":  {Format: "text", Text: []byte("titlewords")},
		"lengths do not collide": {Format: "text", Title: "title\x05\x00\x00\x00\x00\x00\x00\x00words"},
	} {
		require.NotContains(t, seen, d.identity(), what)
		seen[d.identity()] = what
	}
}

// A file that its parser has come to read otherwise is another document than the
// one that was stored of it; others are what they were.
func TestIdentityIsOfTheParser(t *testing.T) {
	for format, changed := range map[string]bool{"pdf": true, "docx": true, "docling": true, "markdown": false, "html": false, "text": false} {
		h := sha256.New()
		for _, part := range []string{format, "title", "words"} {
			hashPart(h, []byte(part))
		}
		first := [32]byte(h.Sum(nil))
		require.Equal(t, changed, first != Document{Format: format, Title: "title", Text: []byte("words")}.identity(), format)
	}
}

// informed is an embedder that only has a name.
type informed struct{ gpu.Embedder }

func (informed) Info() gpu.Info { return gpu.Info{Digest: "m"} }

func FuzzPrepare(f *testing.F) {
	for _, format := range document.Formats() {
		f.Add(format, "", "# A\n\ntext\n\n## B\n\n- one\n- two\n")
		f.Add(format, "title", "<h1>A</h1><p>text<table><tr><td>x</table>")
	}
	f.Add("docx", "t", "x")
	w := NewWriter(nil, informed{}, nil)
	f.Fuzz(func(t *testing.T, format, title, text string) {
		d := Document{Key: "k", Format: format, Title: title, Text: []byte(text)}
		if d.check() != nil {
			return
		}
		v, err := w.prepareText(t.Context(), store.Collection{}.Live(), d)
		if err != nil {
			require.ErrorIs(t, err, store.ErrInvalid)
			return
		}
		require.NotEmpty(t, v.Chunks)
		if err := v.Validate(); err != nil && !errors.Is(err, store.ErrInvalid) {
			t.Fatal(err)
		}
		for _, c := range v.Chunks {
			require.True(t, 0 <= c.Start && c.Start < c.End && c.End <= len(v.Text), "%+v", c)
			if v.Title != "" {
				require.Equal(t, v.Title, c.Headings[0])
			}
		}
	})
}
