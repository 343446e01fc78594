package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// readFile reads a whole file of at most maxFile bytes.
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readBounded(file, path)
}

func readBounded(r io.Reader, name string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("reading %s: more than %d bytes", name, maxFile)
	}
	return data, nil
}

// readLines decodes a file of one JSON object per line.
func readLines[T any](path string) ([]T, error) { return decodeLines[T](path, false) }

// readStrict is readLines for labels of which none may be overlooked: it refuses
// unknown names.
func readStrict[T any](path string) ([]T, error) { return decodeLines[T](path, true) }

func decodeLines[T any](path string, strict bool) ([]T, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	if strict {
		decoder.DisallowUnknownFields()
	}
	var items []T
	for {
		var item T
		if err := decoder.Decode(&item); errors.Is(err, io.EOF) {
			return items, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading %s, object %d: %w", path, len(items)+1, err)
		}
		items = append(items, item)
	}
}
