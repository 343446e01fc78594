package convert

import (
	"archive/zip"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/document"
	"sluice/model/hub"
)

func converter(t *testing.T) *Converter {
	t.Helper()
	dir, err := hub.CacheDir()
	require.NoError(t, err)
	c := New(filepath.Join(dir, "compiled"), 2)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// packed is a zip archive with one file that claims to be of so many bytes.
func packed(t *testing.T, size uint64) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	_, err := w.CreateRaw(&zip.FileHeader{Name: "content.xml", UncompressedSize64: size})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func TestParse(t *testing.T) {
	c := converter(t)
	require.Equal(t, []string{"docling", "docx", "html", "markdown", "pdf", "pptx", "text", "xlsx"}, Formats())
	doc, err := c.Parse(t.Context(), "markdown", []byte("# A"))
	require.NoError(t, err)
	require.Equal(t, "A", doc.Title)
	raw, err := os.ReadFile("../pdf/testdata/notes.pdf")
	require.NoError(t, err)
	doc, err = c.Parse(t.Context(), "pdf", raw)
	require.NoError(t, err)
	require.Equal(t, "Notes and lists", doc.Title)
	_, err = c.Parse(t.Context(), "rtf", nil)
	require.ErrorIs(t, err, document.ErrUnknownFormat)
	require.ErrorContains(t, err, "docx")
}

// TestOffice runs a program in the place of LibreOffice: it prints a PDF that
// is there, to the folder that it is given.
func TestOffice(t *testing.T) {
	printed, err := filepath.Abs("../pdf/testdata/slides.pdf")
	require.NoError(t, err)
	dir := t.TempDir()
	program := filepath.Join(dir, "soffice")
	write := func(script string) {
		require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"+script), 0o755))
	}
	c := converter(t)
	c.office.program = program

	write(`while [ "$1" != --outdir ]; do shift; done; cp ` + printed + ` "$2/document.pdf"`)
	doc, err := c.Parse(t.Context(), "pptx", packed(t, 10))
	require.NoError(t, err)
	require.Equal(t, "pptx", doc.Format)
	require.Contains(t, doc.Text, "What the towns do")
	require.True(t, doc.Slides())

	write("echo the file is strange; exit 1")
	_, err = c.Parse(t.Context(), "docx", packed(t, 10))
	require.ErrorIs(t, err, document.ErrMalformed)
	require.ErrorContains(t, err, "the file is strange")

	write("exec sleep 60")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Parse(ctx, "docx", packed(t, 10))
	require.ErrorIs(t, err, context.Canceled)
}

func TestOfficeRefuses(t *testing.T) {
	c := converter(t)
	c.office.program = ""
	_, err := c.Parse(t.Context(), "docx", packed(t, 10))
	require.ErrorIs(t, err, ErrNoOffice)
	_, err = c.Parse(t.Context(), "xlsx", []byte("\xd0\xcf\x11\xe0 encrypted"))
	require.ErrorIs(t, err, document.ErrMalformed)
	_, err = c.Parse(t.Context(), "docx", packed(t, maxUnpacked+1))
	require.ErrorContains(t, err, "unpacks to more")
}
