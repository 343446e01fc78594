package main

import (
	"bufio"
	"bytes"
	"encoding/json"
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
				yield(client.Document{}, l.fault(name))
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
		return v, fmt.Errorf("the vectors in %s, which are {\"vector\": […]} or {\"vectors\": [[…]]}: %w", name, err)
	}
	return v, nil
}

// numbered is the value of a line, or what is wrong with it; line 0 is the file.
type numbered[T any] struct {
	number int
	value  T
	err    error
}

// fault says where in the file what is wrong.
func (l numbered[T]) fault(file string) error {
	if l.number == 0 {
		return fmt.Errorf("reading %s: %w", file, l.err)
	}
	return fmt.Errorf("%s, line %d: %w", file, l.number, l.err)
}

// ndjson yields the lines that are not blank.
func ndjson[T any](file io.Reader) iter.Seq[numbered[T]] {
	return func(yield func(numbered[T]) bool) {
		scanner := bufio.NewScanner(file)
		scanner.Buffer(nil, maxAccessLine)
		for n := 1; scanner.Scan(); n++ {
			if len(bytes.TrimSpace(scanner.Bytes())) == 0 {
				continue
			}
			l := numbered[T]{number: n}
			decoder := json.NewDecoder(bytes.NewReader(scanner.Bytes()))
			decoder.DisallowUnknownFields()
			decoder.UseNumber() // attributes keep their digits
			l.err = decoder.Decode(&l.value)
			if !yield(l) {
				return
			}
		}
		if err := scanner.Err(); err != nil {
			yield(numbered[T]{err: err})
		}
	}
}
