package eval

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"sluice/eval/fidelity"
	"sluice/statistics"
)

// Parsed is a file beside its golden one. Only a file that could be read has scores.
type Parsed struct {
	File    string          `json:"file"`
	Format  string          `json:"format"`
	Pages   int             `json:"pages,omitempty"`
	Seconds float64         `json:"seconds"`
	Scores  fidelity.Scores `json:"scores"`
	Error   string          `json:"error,omitempty"`

	faults map[string]fidelity.Fault // by part
}

// ParseAxis is the fidelity of the files of a format: means over those that have
// the part, with their number. A file that is not read scores 0.
type ParseAxis struct {
	Format   string              `json:"format"`
	Files    int                 `json:"files"`
	Failed   int                 `json:"failed"`
	Pages    int                 `json:"pages"`
	Seconds  float64             `json:"seconds"` // one file after another
	Text     statistics.Estimate `json:"text"`
	Tables   statistics.Estimate `json:"tables"`
	Captions statistics.Estimate `json:"captions"`
	Order    statistics.Estimate `json:"order"`
	Whole    statistics.Estimate `json:"whole"`

	WithTables   int `json:"with_tables"`
	WithCaptions int `json:"with_captions"`
	WithOrder    int `json:"with_order"`
}

// parse reads all sources and their golden files.
func (a *Axes) parse(ctx context.Context, o AxesOptions) error {
	var twins []fidelity.Twin
	for _, dir := range o.Twins {
		found, err := fidelity.Twins(dir)
		if err != nil {
			return fmt.Errorf("looking for golden files: %w", err)
		}
		if len(found) == 0 {
			return fmt.Errorf("%s has neither PDF or HTML with Markdown of the same name, nor DoclingDocument files", dir)
		}
		twins = append(twins, found...)
	}
	for i, twin := range twins {
		parsed, err := parseTwin(ctx, o, twin)
		if err != nil {
			return fmt.Errorf("%s: %w", twin.Source, err)
		}
		a.Parsed = append(a.Parsed, parsed)
		if o.Progress != nil {
			o.Progress("parse", i+1, len(twins))
		}
	}
	for _, format := range []string{"pdf", "html", "docling"} {
		if files := a.parsedOf(format); len(files) > 0 {
			a.Parse = append(a.Parse, newParseAxis(format, files))
		}
	}
	return nil
}

// parseTwin fails where the golden file does, or the context ends; a source that
// is refused is a finding.
func parseTwin(ctx context.Context, o AxesOptions, twin fidelity.Twin) (Parsed, error) {
	raw, err := readFile(twin.Golden)
	if err != nil {
		return Parsed{}, err
	}
	want, err := fidelity.Golden(twin.GoldenFormat, raw)
	if err != nil {
		return Parsed{}, err
	}
	if raw, err = readFile(twin.Source); err != nil {
		return Parsed{}, err
	}
	p := Parsed{File: filepath.Base(twin.Source), Format: twin.Format}
	started := time.Now()
	doc, err := o.Parse(ctx, twin.Format, raw)
	p.Seconds, p.Pages = time.Since(started).Seconds(), len(doc.Pages)
	if ctx.Err() != nil {
		return p, ctx.Err()
	}
	if err != nil {
		p.Error = err.Error()
		return p, nil
	}
	got := fidelity.Of(doc)
	p.Scores, err = fidelity.Compare(want, got)
	p.faults = fidelity.Faults(want, got)
	return p, err
}

func (a *Axes) parsedOf(format string) []Parsed {
	return slices.DeleteFunc(slices.Clone(a.Parsed), func(p Parsed) bool { return p.Format != format })
}

func newParseAxis(format string, files []Parsed) ParseAxis {
	a := ParseAxis{Format: format, Files: len(files)}
	var text, whole []float64
	var tables, captions, order []*float64
	for _, f := range files {
		a.Pages, a.Seconds = a.Pages+f.Pages, a.Seconds+f.Seconds
		if f.Error != "" {
			a.Failed++
		}
		text, whole = append(text, f.Scores.Text), append(whole, f.Scores.Whole)
		tables, captions, order = append(tables, f.Scores.Tables), append(captions, f.Scores.Captions), append(order, f.Scores.Order)
	}
	a.Text, a.Whole = statistics.Mean(text), statistics.Mean(whole)
	a.Tables, a.WithTables = estimates(tables)
	a.Captions, a.WithCaptions = estimates(captions)
	a.Order, a.WithOrder = estimates(order)
	return a
}
