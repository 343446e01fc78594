package main

import (
	"encoding/json"
	"fmt"
	"iter"
	"os"

	"sluice/client"
)

// isLines reports a file that holds documents as the API takes them, one a line.
func isLines(name string) bool {
	e := extension(name)
	return e == ".ndjson" || e == ".jsonl"
}

// readLines yields the documents of such a file. Lines that are none are added
// to files, as unreadable; an error ends it.
func readLines(name string, files *folder) iter.Seq2[client.Document, error] {
	return func(yield func(client.Document, error) bool) {
		f, err := os.Open(name)
		if err != nil {
			yield(client.Document{}, err)
			return
		}
		defer f.Close()
		for l := range ndjson[dumped](f) {
			switch {
			case l.number == 0:
				yield(client.Document{}, fmt.Errorf("reading %s: %w", name, l.err))
				return
			case l.err != nil:
				files.unread(fmt.Sprintf("line %d", l.number), l.err)
			case !yield(l.value.Document, nil):
				return
			}
		}
	}
}

// queryVectors are those of a search, as the API takes them.
type queryVectors struct {
	Vector  client.Vector `json:"vector"`
	Vectors client.Matrix `json:"vectors"`
}

// readQueryVectors reads a file that holds them; no name, no vectors.
func readQueryVectors(name string) (v queryVectors, err error) {
	if name == "" {
		return v, nil
	}
	text, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		return v, fmt.Errorf("the vectors in %s: %w", name, err)
	}
	return v, nil
}
