package eval

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
)

type beirDocument struct {
	ID    string `json:"_id"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

type beirQuery struct {
	ID   string `json:"_id"`
	Text string `json:"text"`
}

// loadBEIR reads a folder as BEIR publishes them (Thakur et al. 2021):
// corpus.jsonl, queries.jsonl, and qrels/SPLIT.tsv with query, document and
// score. A document is relevant with a score above 0; grades are not told apart.
// One principal sees all.
func loadBEIR(dir string) (*Dataset, error) {
	d := &Dataset{Name: filepath.Base(dir), Matching: WholeDocument, Depth: 100, Cutoffs: []int{100}}
	documents, err := readLines[beirDocument](filepath.Join(dir, "corpus.jsonl"))
	if err != nil {
		return nil, err
	}
	empty := 0
	for _, doc := range documents {
		text := cmp.Or(strings.TrimSpace(doc.Text), strings.TrimSpace(doc.Title))
		if text == "" {
			empty++
			continue
		}
		d.Documents = append(d.Documents, Document{Tenant: "beir", Key: doc.ID, Version: 1, Title: doc.Title, Format: "text", Text: text})
	}
	d.oneReader("beir", "reader")
	if empty > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("%d documents without text are left out", empty))
	}
	return d, d.addQrels(dir)
}

// addQrels makes cases of the queries of every split that have something relevant.
func (d *Dataset) addQrels(dir string) error {
	queries, err := readLines[beirQuery](filepath.Join(dir, "queries.jsonl"))
	if err != nil {
		return err
	}
	splits, err := filepath.Glob(filepath.Join(dir, "qrels", "*.tsv"))
	if err != nil {
		return err
	}
	for _, file := range splits {
		relevant, err := readQrels(file)
		if err != nil {
			return err
		}
		split := strings.TrimSuffix(filepath.Base(file), ".tsv")
		for _, q := range queries {
			c := Case{ID: split + "-" + q.ID, Split: split, Query: q.Text, Principal: "reader"}
			for _, key := range relevant[q.ID] {
				if _, there := d.Visible["reader"][key]; there {
					c.Evidence = append(c.Evidence, Evidence{Documents: []string{key}, Version: 1})
				}
			}
			if len(c.Evidence) > 0 {
				d.Cases = append(d.Cases, c)
			}
		}
	}
	return nil
}

// readQrels are the relevant documents by query, in the order of the file.
func readQrels(path string) (map[string][]string, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	lines := csv.NewReader(bytes.NewReader(data))
	lines.Comma, lines.LazyQuotes, lines.FieldsPerRecord = '\t', true, 3
	relevant := map[string][]string{}
	for n := 1; ; n++ {
		line, err := lines.Read()
		if err == io.EOF {
			return relevant, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		score, err := strconv.Atoi(strings.TrimSpace(line[2]))
		if err != nil && n > 1 { // the first line names the columns
			return nil, fmt.Errorf("reading %s, line %d: score %q is no whole number", path, n, line[2])
		}
		if err == nil && score > 0 {
			relevant[line[0]] = append(relevant[line[0]], line[1])
		}
	}
}
