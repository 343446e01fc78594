// Package convert parses every format that is read, those too that need an
// engine: PDF, and office files by way of it.
package convert

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sluice/document"
	"sluice/document/pdf"
)

// Converter parses documents. Safe for concurrent use.
type Converter struct {
	pdf    *pdf.Reader
	office *office
}

// New returns a Converter that keeps compiled code in a directory ("": in none)
// and has as many PDFs read at a time as there are cores.
func New(cache string, cores int) *Converter {
	return &Converter{pdf: pdf.NewReader(cache, cores), office: newOffice()}
}

// Prepare begins what the first PDF on a machine would wait for, and reports
// whether there is such a thing.
func (c *Converter) Prepare() bool { return c.pdf.Prepare() }

// Close frees the engines. Nothing may be parsed any more.
func (c *Converter) Close() error { return c.pdf.Close() }

// Formats lists the formats that Parse knows, sorted.
func Formats() []string {
	return slices.Sorted(slices.Values(slices.Concat(document.Formats(), officeFormats, []string{"pdf"})))
}

// Parse parses raw as format. Its errors are those of document.Parse and of
// pdf.Reader, and ErrNoOffice.
func (c *Converter) Parse(ctx context.Context, format string, raw []byte) (document.Document, error) {
	switch {
	case format == "pdf":
		return c.pdf.Parse(ctx, raw)
	case slices.Contains(officeFormats, format):
		return c.parseOffice(ctx, format, raw)
	case !slices.Contains(document.Formats(), format):
		return document.Document{}, fmt.Errorf("%w %q; known are %s", document.ErrUnknownFormat, format, strings.Join(Formats(), ", "))
	}
	return document.Parse(format, raw)
}

func (c *Converter) parseOffice(ctx context.Context, format string, raw []byte) (document.Document, error) {
	printed, err := c.office.print(ctx, format, raw)
	if err != nil {
		return document.Document{}, err
	}
	doc, err := c.pdf.Parse(ctx, printed)
	doc.Format = format
	return doc, err
}
