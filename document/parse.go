package document

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Errors of Parse and Normalize.
var (
	ErrNotUTF8       = errors.New("the document is not valid UTF-8; convert it to UTF-8")
	ErrUnknownFormat = errors.New("unknown document format")
	ErrMalformed     = errors.New("the document is damaged or not what its format says")
	ErrTooManyBlocks = errors.New("the document has too many blocks; split it into smaller documents")
)

// parsers by format.
var parsers = map[string]func(raw []byte) (Document, error){
	"docling":  parseDocling,
	"html":     normalized(parseHTML),
	"markdown": normalized(parseMarkdown),
	"text":     normalized(parseText),
}

// normalized gives a parser normalised input.
func normalized(parse func(text string) (Document, error)) func(raw []byte) (Document, error) {
	return func(raw []byte) (Document, error) {
		text, err := Normalize(raw)
		if err != nil {
			return Document{}, err
		}
		return parse(text)
	}
}

// Formats lists the formats that Parse knows, sorted.
func Formats() []string {
	names := make([]string, 0, len(parsers))
	for name := range parsers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Parse parses raw as format. It fails with ErrUnknownFormat, ErrNotUTF8,
// ErrTooManyBlocks or ErrMalformed. Time and memory are linear in len(raw).
func Parse(format string, raw []byte) (Document, error) {
	parse, ok := parsers[format]
	if !ok {
		return Document{}, fmt.Errorf("%w %q; known are %s", ErrUnknownFormat, format, strings.Join(Formats(), ", "))
	}
	doc, err := guarded(parse, raw)
	if errors.Is(err, ErrNotUTF8) {
		return Document{}, err
	}
	if err != nil {
		return Document{}, fmt.Errorf("parsing %s: %w", format, err)
	}
	doc.Format = format
	return doc, nil
}

// guarded turns a panic of a parser into an error, so that one document cannot
// take down whoever parses it.
func guarded(parse func([]byte) (Document, error), raw []byte) (doc Document, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the parser failed on this document: %v", p)
		}
	}()
	return parse(raw)
}
