package eval

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

type multiCorpusQuery struct {
	ID    string            `json:"id"`
	Org   string            `json:"org"`
	Query string            `json:"query"`
	Type  string            `json:"type"`
	Facts []multiCorpusFact `json:"facts"`
}

type multiCorpusFact struct {
	Text  string `json:"text"`
	Doc   string `json:"doc"` // "<org>/md/<file>.md"
	Match string `json:"match"`
}

// multiCorpusTest are the organisations whose questions are the test split; no
// weight or depth may be chosen on them. The other three are the dev split.
var multiCorpusTest = []string{"velvera", "zxbank"}

// loadMultiCorpus reads RAG-Multi-Corpus: five organisations, each a tenant with
// one principal who sees its own documents and no other's. A question is a case
// if all its facts are marked exact and each occurs once in its document: of the
// others only a part of the evidence is known.
func loadMultiCorpus(dir string) (*Dataset, error) {
	d := &Dataset{Name: "rag-multi-corpus", Matching: Folded, Depth: 10, Cutoffs: []int{6}, Visible: map[string]map[string]uint32{}}
	orgs, err := os.ReadDir(filepath.Join(dir, "docs"))
	if err != nil {
		return nil, err
	}
	for _, org := range orgs {
		if err := d.addOrganisation(filepath.Join(dir, "docs", org.Name(), "md"), org.Name()); err != nil {
			return nil, err
		}
	}
	queries, err := readLines[multiCorpusQuery](filepath.Join(dir, "queries.jsonl"))
	if err != nil {
		return nil, err
	}
	d.addQueries(queries)
	return d, nil
}

func (d *Dataset) addOrganisation(dir, org string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		return err
	}
	visible := map[string]uint32{}
	for _, file := range files {
		text, err := readFile(file)
		if err != nil {
			return err
		}
		key := multiCorpusKey(filepath.Base(file))
		d.Documents = append(d.Documents, Document{Tenant: org, Key: key, Version: 1, Format: "markdown", Text: string(text)})
		visible[key] = 1
	}
	name := org + "-reader"
	d.Principals = append(d.Principals, Principal{Name: name, Tenant: org, Roles: []string{"read"}})
	d.Visible[name] = visible
	return nil
}

// multiCorpusKey is the file's name without its ending; some begin with a space.
func multiCorpusKey(file string) string {
	return strings.TrimSpace(strings.TrimSuffix(file, ".md"))
}

func (d *Dataset) addQueries(queries []multiCorpusQuery) {
	ambiguous := 0
	for _, q := range queries {
		if !q.exact() {
			continue
		}
		if !q.located(d.current(q.Org)) {
			ambiguous++
			continue
		}
		d.Cases = append(d.Cases, q.asCase())
	}
	d.Notes = append(d.Notes, fmt.Sprintf("%d of %d questions are cases: all facts exact; %d more left out, a fact of theirs not occurring exactly once", len(d.Cases), len(queries), ambiguous))
}

func (q multiCorpusQuery) exact() bool {
	other := func(f multiCorpusFact) bool { return f.Match != "exact" }
	return len(q.Facts) > 0 && !slices.ContainsFunc(q.Facts, other)
}

func (q multiCorpusQuery) located(documents map[string]Document) bool {
	for _, f := range q.Facts {
		if _, _, err := locate(documents[f.key()].Text, f.Text, Folded); err != nil {
			return false
		}
	}
	return true
}

func (f multiCorpusFact) key() string { return multiCorpusKey(path.Base(f.Doc)) }

func (q multiCorpusQuery) asCase() Case {
	c := Case{ID: q.ID, Split: "dev", Query: q.Query, Principal: q.Org + "-reader", Tags: []string{q.Org, strings.ToLower(q.Type)}}
	if slices.Contains(multiCorpusTest, q.Org) {
		c.Split = "test"
	}
	for _, f := range q.Facts {
		c.Evidence = append(c.Evidence, Evidence{Documents: []string{f.key()}, Version: 1, Quote: f.Text})
	}
	return c
}
