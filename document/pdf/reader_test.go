package pdf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"sluice/document"
	"sluice/model/hub"
)

// shared keeps compiled code where the daemon keeps it: compiling takes long.
func shared(t testing.TB) *Reader {
	t.Helper()
	dir, err := hub.CacheDir()
	require.NoError(t, err)
	r := NewReader(filepath.Join(dir, "compiled"), 2)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// TestGolden runs testdata/golden/*: "read file=F" prints the blocks and the
// furniture of testdata/F.
func TestGolden(t *testing.T) {
	r := shared(t)
	datadriven.Walk(t, "testdata/golden", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var file string
			d.ScanArgs(t, "file", &file)
			doc, err := r.Parse(t.Context(), read(t, filepath.Join("testdata", file)))
			if err != nil {
				return "error: " + err.Error() + "\n"
			}
			require.NoError(t, document.Check(doc))
			var out strings.Builder
			fmt.Fprintf(&out, "title: %q, %d pages, slides: %v\n", doc.Title, len(doc.Pages), doc.Slides())
			dump(&out, doc.Text, doc.Blocks, "")
			for _, f := range doc.Furniture {
				fmt.Fprintf(&out, "%s on %d %q\n", f.Kind, f.Place.Page, f.Text)
			}
			return out.String()
		})
	})
}

func dump(out *strings.Builder, text string, blocks []*document.Block, indent string) {
	for _, b := range blocks {
		fmt.Fprintf(out, "%s%s", indent, b.Kind)
		for _, p := range b.Places {
			fmt.Fprintf(out, " %d:%.0f,%.0f-%.0f,%.0f", p.Page, p.Box.Left, p.Box.Top, p.Box.Right, p.Box.Bottom)
		}
		switch {
		case b.Kind == document.Section:
			fmt.Fprintf(out, " %d", b.Level)
		case b.Grid != nil:
			fmt.Fprintf(out, " caption %q header %d", b.Grid.Caption, b.Grid.Header)
			if m := b.Grid.Merge; m != nil {
				fmt.Fprintf(out, " pages %v of %v header from %d sure %.2f columns %v", m.SourcePages, m.OriginalTableIDs, m.InheritedHeaderFromPage, m.Confidence, m.ColumnAlignment)
			}
			fmt.Fprintf(out, "\n%s", text[b.Start:b.End])
		case len(b.Children) == 0:
			fmt.Fprintf(out, " %q", text[b.Start:b.End])
		}
		out.WriteByte('\n')
		dump(out, text, b.Children, indent+"  ")
	}
}

// TestBadFiles: what cannot be read is a clear error, and the next file is read.
func TestBadFiles(t *testing.T) {
	r := shared(t)
	whole := read(t, "testdata/tables.pdf")
	for name, c := range map[string]struct {
		raw  []byte
		want error
	}{
		"nothing":         {nil, document.ErrMalformed},
		"no PDF":          {[]byte("hello"), document.ErrMalformed},
		"half of one":     {whole[:len(whole)/2], document.ErrMalformed},
		"encrypted":       {read(t, "testdata/encrypted.pdf"), ErrEncrypted},
		"too many pages":  {manyPages(MaxPages + 1), ErrTooLarge},
		"10,000 of pages": {manyPages(10_000), ErrTooLarge},
	} {
		_, err := r.Parse(t.Context(), c.raw)
		require.ErrorIs(t, err, c.want, name)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.Parse(ended, whole)
	require.ErrorIs(t, err, context.Canceled)

	doc, err := r.Parse(t.Context(), whole)
	require.NoError(t, err)
	require.Contains(t, doc.Text, "Station 12")
}

// TestCancelled: a context that ends stops a file that takes long.
func TestCancelled(t *testing.T) {
	r := shared(t)
	_, err := r.Parse(t.Context(), read(t, "testdata/notes.pdf"))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = r.Parse(ctx, manyPages(MaxPages))
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// TestLimits: a file beyond any of the limits is refused by an error that names
// it, and one at the limits is read whole.
func TestLimits(t *testing.T) {
	r := shared(t)
	raw := drawing(3, "BT /F 9 Tf 9 9 Td (abcd) Tj ET 9 50 m 90 50 l S 9 60 m 90 60 l S")
	at := limits{chars: 12, pieces: 9, pageChars: 4, pageRuns: 1, pageObjects: 3}
	r.limits = at
	doc, err := r.Parse(t.Context(), raw)
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(doc.Text, "abcd"))
	for name, less := range map[string]func(*limits){
		"page 3":                   func(l *limits) { l.chars-- },
		"that was reached on page": func(l *limits) { l.pieces-- },
		"page 1 has 4 characters":  func(l *limits) { l.pageChars-- },
		"page 1 has 1 pieces":      func(l *limits) { l.pageRuns-- },
		"page 1 has 3 objects":     func(l *limits) { l.pageObjects-- },
	} {
		r.limits = at
		less(&r.limits)
		_, err := r.Parse(t.Context(), raw)
		require.ErrorIs(t, err, ErrTooLarge, name)
		require.ErrorContains(t, err, name)
	}
}

// PDFium has a sign of its own for a hyphen at the end of a line.
func TestPartedWord(t *testing.T) {
	doc, err := shared(t).Parse(t.Context(), drawing(1, "BT /F 9 Tf 9 60 Td (at the wa-) Tj 0 -11 Td (ter side) Tj ET"))
	require.NoError(t, err)
	require.Equal(t, "at the water side", doc.Text)
}

// TestStartsAgain: an engine that could not be started is started for the next file.
func TestStartsAgain(t *testing.T) {
	dir, err := hub.CacheDir()
	require.NoError(t, err)
	cache := filepath.Join(t.TempDir(), "compiled")
	require.NoError(t, os.WriteFile(cache, nil, 0o600))
	r := NewReader(cache, 2)
	_, err = r.Parse(t.Context(), manyPages(1))
	require.ErrorContains(t, err, "starting the PDF engine")

	require.NoError(t, os.Remove(cache))
	require.NoError(t, os.Symlink(filepath.Join(dir, "compiled"), cache))
	_, err = r.Parse(t.Context(), manyPages(1))
	require.NoError(t, err)
	require.NoError(t, r.Close())
	_, err = r.Parse(t.Context(), manyPages(1))
	require.ErrorIs(t, err, errClosed)
}

// A file that cannot wait any longer is given up; what it waited for goes on,
// and Close waits for that.
func TestStartIsNotTheFilesOwn(t *testing.T) {
	r := NewReader(filepath.Join(t.TempDir(), "compiled"), 2)
	r.starting = &starting{done: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.Parse(ctx, manyPages(1))
	require.ErrorIs(t, err, context.Canceled)
	closed := make(chan error)
	go func() { closed <- r.Close() }()
	select {
	case <-closed:
		t.Fatal("the engine is still being made")
	default:
	}
	r.starting.err = errors.New("no engine")
	close(r.starting.done)
	require.NoError(t, <-closed)
	require.False(t, r.Prepare(), "it is closed")
}

// drawing is a PDF of pages that all draw the same.
func drawing(pages int, content string) []byte {
	const first = 5 // number of the first page
	var body, kids strings.Builder
	body.WriteString("%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n")
	fmt.Fprintf(&body, "3 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\n4 0 obj<</Length %d>>stream\n%s\nendstream endobj\n", len(content), content)
	for i := range pages {
		fmt.Fprintf(&kids, "%d 0 R ", first+i)
		fmt.Fprintf(&body, "%d 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Resources<</Font<</F 3 0 R>>>>/Contents 4 0 R>>endobj\n", first+i)
	}
	fmt.Fprintf(&body, "2 0 obj<</Type/Pages/Count %d/Kids[%s]>>endobj\ntrailer<</Root 1 0 R>>\n%%%%EOF", pages, kids.String())
	return []byte(body.String())
}

// manyPages is a PDF of empty pages.
func manyPages(n int) []byte { return drawing(n, "") }

func FuzzParse(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.pdf")
	require.NoError(f, err)
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(raw)
	}
	r := shared(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if doc, err := r.Parse(ctx, raw); err == nil {
			require.NoError(t, document.Check(doc))
		}
	})
}

// FuzzLayout checks what is made of any lines, apart from the engine.
func FuzzLayout(f *testing.F) {
	f.Add([]byte("\x00\x10\x20\x30abc\x01"), uint8(3))
	f.Fuzz(func(t *testing.T, raw []byte, pages uint8) {
		all := make([]*page, pages%4+1)
		for i := range all {
			all[i] = &page{number: i + 1, width: 300, height: 300}
		}
		for at := 0; at+6 < len(raw); at += 6 {
			p := all[int(raw[at])%len(all)]
			box := document.Box{Left: float64(raw[at+1]), Top: float64(raw[at+2]), Right: float64(raw[at+1]) + float64(raw[at+3]%64), Bottom: float64(raw[at+2]) + float64(raw[at+4]%16)}
			texts := []string{"A line of prose that is long enough", "- item", "7", "1. one", "Table 1: x", "cell-", string(markOpen) + "3" + string(markClose) + " note", "Figure 2: y"}
			if raw[at+5] > 200 {
				p.addObject(raw[at+5] > 240, box)
				continue
			}
			p.runs = append(p.runs, lettered(run{text: texts[int(raw[at+5])%len(texts)], box: box, size: 4 + float64(raw[at+4]%16), bold: raw[at+5]&16 > 0, mono: raw[at+5]&32 > 0}))
		}
		doc, err := assemble(t.Context(), all)
		require.NoError(t, err)
		require.NoError(t, document.Check(doc))
	})
}

// lettered gives a run the characters of its text, of one width.
func lettered(r run) run {
	text := []rune(r.text)
	step := width(r.box) / float64(len(text))
	for i, c := range text {
		box := r.box
		box.Left, box.Right = r.box.Left+float64(i)*step, r.box.Left+float64(i+1)*step
		r.chars = append(r.chars, char{c, box})
	}
	return r
}
