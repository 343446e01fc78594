package bench

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"sluice/index/text"
)

const (
	passageWords     = 80 // a passage ends with the sentence that reaches them
	passagesPerDoc   = 4
	passageClasses   = 1000
	queryTermsLeast  = 5
	queryTermsMost   = 10
	passageSeed      = 20
	passageQuerySeed = 21
)

// passageFilters are the shares of documents that a filter admits, in percent.
var passageFilters = []struct {
	name    string
	classes int
}{{"0.1", 1}, {"1", 10}, {"10", 100}, {"50", 500}}

// passage is a text and the access class of its document.
type passage struct {
	Text    string   `json:"text"`
	Terms   string   `json:"terms"`
	Class   int      `json:"class"`
	Filters []string `json:"filters"`
}

// makePassages cuts runs of sentences as they stand in the sources, and, until
// there are enough, joins two shorter runs from anywhere. Every document's
// class is drawn at random.
func makePassages(sentences []string, count int, analyzer text.Analyzer) []passage {
	rng := rand.New(rand.NewPCG(passageSeed, 0))
	passages := make([]passage, 0, count)
	class := 0
	add := func(body string) {
		if len(passages)%passagesPerDoc == 0 {
			class = rng.IntN(passageClasses)
		}
		p := passage{Text: body, Class: class, Filters: []string{}}
		for _, f := range passageFilters {
			if class < f.classes {
				p.Filters = append(p.Filters, f.name)
			}
		}
		var terms []string
		for term := range analyzer.Terms(body) {
			terms = append(terms, string(term))
		}
		p.Terms = strings.Join(terms, " ")
		passages = append(passages, p)
	}
	for at := 0; at < len(sentences) && len(passages) < count; {
		run, n := sentenceRun(sentences[at:], passageWords)
		add(run)
		at += n
	}
	for len(passages) < count {
		first, _ := sentenceRun(sentences[rng.IntN(len(sentences)):], passageWords/2)
		second, _ := sentenceRun(sentences[rng.IntN(len(sentences)):], passageWords/2)
		add(first + " " + second)
	}
	return passages
}

// sentenceRun joins the first sentences until they have so many words.
func sentenceRun(sentences []string, words int) (run string, n int) {
	var b strings.Builder
	for has := 0; n < len(sentences) && has < words; n++ {
		b.WriteString(sentences[n] + " ")
		has += strings.Count(sentences[n], " ") + 1
	}
	return b.String(), n
}

// lexicalQuery is a text and its terms, all different.
type lexicalQuery struct {
	text  string
	terms []string
}

// makeQueries takes words of one passage each, five to ten that are one term.
func makeQueries(passages []passage, count int, analyzer text.Analyzer) (queries []lexicalQuery) {
	rng := rand.New(rand.NewPCG(passageQuerySeed, 0))
	for len(queries) < count {
		want := queryTermsLeast + rng.IntN(queryTermsMost-queryTermsLeast+1)
		words := strings.Fields(passages[rng.IntN(len(passages))].Text)
		rng.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
		var q lexicalQuery
		for _, word := range words {
			clauses := analyzer.Parse(strings.Join([]string{q.text, word}, " "))
			if len(clauses) == len(q.terms)+1 && clauses[len(clauses)-1].Kind == text.Word && len(q.terms) < want {
				q.text = strings.TrimSpace(q.text + " " + word)
				q.terms = append(q.terms, clauses[len(clauses)-1].Terms[0])
			}
		}
		if len(q.terms) == want {
			queries = append(queries, q)
		}
	}
	return queries
}

// cachedPassages returns the passages of the texts in a folder, which an
// earlier run may have left in the cache, and the file that has them.
func cachedPassages(data, cache string, count int, analyzer text.Analyzer) ([]passage, string, error) {
	all, err := readSentences(data)
	if err != nil {
		return nil, "", fmt.Errorf("reading texts: %w", err)
	}
	if len(all) == 0 {
		return nil, "", fmt.Errorf("no texts in %s", data)
	}
	h := sha256.New()
	fmt.Fprintln(h, count, passageWords, passagesPerDoc, passageSeed, analyzer.Identity())
	for _, sentence := range all {
		fmt.Fprintf(h, "%q", sentence)
	}
	path := filepath.Join(cache, fmt.Sprintf("passages-%x.jsonl", h.Sum(nil)[:8]))
	passages, err := readPassages(path)
	if errors.Is(err, fs.ErrNotExist) {
		passages = makePassages(all, count, analyzer)
		err = writePassages(path, passages)
	}
	return passages, path, err
}

func readPassages(path string) (passages []passage, err error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	for lines := json.NewDecoder(bufio.NewReaderSize(f, 1<<20)); lines.More(); {
		var p passage
		if err := lines.Decode(&p); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		passages = append(passages, p)
	}
	return passages, nil
}

// writePassages writes what the peers index.
func writePassages(path string, passages []passage) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	f, err := os.Create(filepath.Clean(path + ".tmp"))
	if err != nil {
		return err
	}
	defer func() {
		if closing := f.Close(); err == nil {
			err = closing
		}
		if err == nil {
			err = os.Rename(path+".tmp", path)
		}
	}()
	out := bufio.NewWriter(f)
	lines := json.NewEncoder(out)
	for _, p := range passages {
		if err := lines.Encode(p); err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
	}
	return out.Flush()
}
