package eval

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

type chunkingQuery struct {
	ID     string         `json:"id"`
	Corpus string         `json:"corpus"`
	Query  string         `json:"query"`
	Spans  []chunkingSpan `json:"spans"`
}

// chunkingSpan counts Unicode code points, not bytes.
type chunkingSpan struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	Quote string `json:"quote"`
}

// loadChunking reads Chroma's chunking evaluation: five long texts, and questions
// with the spans that answer them. One principal sees all; there is one split.
func loadChunking(dir string) (*Dataset, error) {
	d := &Dataset{Name: "chunking-evaluation", Matching: Verbatim, Depth: 10, Cutoffs: []int{6}}
	queries, err := readLines[chunkingQuery](filepath.Join(dir, "queries.jsonl"))
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for _, q := range queries {
		if _, known := texts[q.Corpus]; !known {
			if !filepath.IsLocal(q.Corpus) {
				return nil, fmt.Errorf("question %s: corpus %q is not inside the data set", q.ID, q.Corpus)
			}
			text, err := readFile(filepath.Join(dir, q.Corpus+".md"))
			if err != nil {
				return nil, err
			}
			texts[q.Corpus] = string(text)
			d.Documents = append(d.Documents, Document{Tenant: "chunking", Key: q.Corpus, Version: 1, Format: "text", Text: string(text)})
		}
		c := Case{ID: q.ID, Split: testSplit, Query: q.Query, Principal: "reader", Tags: []string{q.Corpus}}
		for _, span := range q.Spans {
			e, err := span.evidence(q.Corpus, texts[q.Corpus])
			if err != nil {
				return nil, fmt.Errorf("question %s: %w", q.ID, err)
			}
			c.Evidence = append(c.Evidence, e)
		}
		d.Cases = append(d.Cases, c)
	}
	d.oneReader("chunking", "reader")
	return d, nil
}

// evidence is the quote at the span's place, told apart from others by how often
// it occurs before.
func (s chunkingSpan) evidence(corpus, text string) (Evidence, error) {
	start, end := codePoint(text, s.Start), codePoint(text, s.End)
	if s.Quote == "" || start < 0 || end < start || text[start:end] != s.Quote {
		return Evidence{}, fmt.Errorf("the code points %d to %d of %s are not the quote", s.Start, s.End, corpus)
	}
	e := Evidence{Documents: []string{corpus}, Version: 1, Quote: s.Quote}
	if places := placesOf(text, s.Quote); len(places) > 1 {
		e.Occurrence = 1 + slices.Index(places, start)
	}
	return e, nil
}

// codePoint is the byte at which the n-th code point starts, or the end; -1 if
// there are not so many.
func codePoint(text string, n int) int {
	if n < 0 {
		return -1
	}
	at := 0
	for range n {
		if at == len(text) {
			return -1
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}

// placesOf are the bytes at which a quote starts, overlapping places included.
func placesOf(text, quote string) []int {
	var places []int
	for from := 0; quote != ""; {
		at := strings.Index(text[from:], quote)
		if at < 0 {
			break
		}
		places = append(places, from+at)
		from += at + 1
	}
	return places
}

// oneReader is a principal who sees every document.
func (d *Dataset) oneReader(tenant, name string) {
	d.Principals = []Principal{{Name: name, Tenant: tenant, Roles: []string{"read"}}}
	visible := map[string]uint32{}
	for _, doc := range d.Documents {
		visible[doc.Key] = doc.Version
	}
	d.Visible = map[string]map[string]uint32{name: visible}
}
