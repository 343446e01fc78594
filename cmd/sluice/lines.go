package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"sluice/client"
)

// isLines reports a file that holds documents as the API takes them, one a line.
func isLines(name string) bool {
	e := extension(name)
	return e == ".ndjson" || e == ".jsonl"
}

// readLines yields the documents of such a file. The first that is malformed
// ends it.
func readLines(name string) iter.Seq2[client.Document, error] {
	return func(yield func(client.Document, error) bool) {
		f, err := os.Open(name)
		if err != nil {
			yield(client.Document{}, err)
			return
		}
		defer f.Close()
		decoder := json.NewDecoder(f)
		decoder.DisallowUnknownFields()
		decoder.UseNumber() // attributes keep their digits
		for n := 1; ; n++ {
			var line dumped
			err := decoder.Decode(&line)
			d := line.Document
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(d, fmt.Errorf("document %d of %s: %w", n, name, err))
				return
			}
			if !yield(d, nil) {
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
