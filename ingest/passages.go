package ingest

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"math"
	"strings"

	"sluice/chunk"
	"sluice/document"
	"sluice/index"
	"sluice/index/late"
	"sluice/store"
)

// Bounds of a document that is brought as passages.
const (
	MaxPassages     = 10_000
	MaxTokenVectors = 8192 // of a passage
	MaxHeadings     = 16   // of a passage, each as long as a title at most
)

// What a document of passages has for format and chunker.
const (
	passagesFormat  = "passages"
	passagesChunker = "passages/1"
)

// Passage is a piece of a document with the vectors that its writer made. Its
// text may be empty, as that of a picture.
type Passage struct {
	Text     string
	Headings []string
	Vector   []float32 // nil: none
	Vectors  []float32 // those of its tokens, patches, …, row by row; nil: none
	Columns  int       // of Vectors
}

// preparePassages checks a document of passages and makes a version of it that
// lacks its vectors and codes.
func preparePassages(d Document, s store.Settings) (store.Version, error) {
	v := store.Version{
		Key: d.Key, Title: d.Title, Format: passagesFormat, Chunker: passagesChunker, Model: s.Model(""),
		Identity: d.identity(), Access: d.Access, Keeps: d.Keeps,
	}
	if len(d.Passages) == 0 || len(d.Passages) > MaxPassages {
		return v, fmt.Errorf("%w: the documents of this collection bring their vectors: send 1 to %d passages in place of text and format", store.ErrInvalid, MaxPassages)
	}
	if d.Format != "" || len(d.Text) > 0 {
		return v, fmt.Errorf("%w: a document of passages has no text or format beside them", store.ErrInvalid)
	}
	var text strings.Builder
	for i, p := range d.Passages {
		piece, err := p.append(&text)
		if err = errors.Join(p.check(s.Own), err); err != nil {
			return v, fmt.Errorf("%w: passage %d: %w", store.ErrInvalid, i+1, err)
		}
		v.Chunks = append(v.Chunks, piece)
	}
	v.Text, v.Chunks = text.String(), titled(d.Title, v.Chunks)
	return v, nil
}

// check compares the passage with what the collection takes.
func (p Passage) check(own store.Own) error {
	rows := 0
	if p.Columns > 0 {
		rows = len(p.Vectors) / p.Columns
	}
	switch {
	case own.Dense == 0 && p.Vector != nil:
		return errors.New("vector: the collection has none; leave it out")
	case len(p.Vector) != own.Dense:
		return fmt.Errorf("vector: %d numbers; the collection's have %d", len(p.Vector), own.Dense)
	case own.Multi == 0 && p.Vectors != nil:
		return errors.New("vectors: the collection has none; leave them out")
	case own.Multi > 0 && (rows < 1 || rows > MaxTokenVectors):
		return fmt.Errorf("vectors: %d of them; 1 to %d are possible", rows, MaxTokenVectors)
	case own.Multi > 0 && p.Columns != own.Multi:
		return fmt.Errorf("vectors: %d numbers each; the collection's have %d", p.Columns, own.Multi)
	case len(p.Headings) > MaxHeadings:
		return fmt.Errorf("headings: %d of them; at most %d are possible", len(p.Headings), MaxHeadings)
	}
	for _, h := range p.Headings {
		if h == "" || len(h) > MaxTitleBytes || !plain(h) {
			return fmt.Errorf("headings: one is empty, longer than %d bytes, or not plain text", MaxTitleBytes)
		}
	}
	return nil
}

// append adds the passage's normalised text to the document's, with a blank
// line between two.
func (p Passage) append(text *strings.Builder) (chunk.Chunk, error) {
	normal, err := document.Normalize([]byte(p.Text))
	if err != nil {
		return chunk.Chunk{}, err
	}
	if normal != "" && text.Len() > 0 {
		text.WriteString("\n\n")
	}
	start := text.Len()
	text.WriteString(normal)
	return chunk.Chunk{Start: start, End: text.Len(), Headings: p.Headings}, nil
}

// bring fills in the vectors of a document of passages and, where there is a
// coder, the token codes.
func bring(d Document, own store.Own, coder *late.Coder, v *store.Version) error {
	v.Dimensions = cmp.Or(own.Dense, own.Multi)
	for i, p := range d.Passages {
		vector, tokens, err := p.unit(own)
		if err != nil {
			return fmt.Errorf("%w: passage %d: %w", store.ErrInvalid, i+1, err)
		}
		v.Vectors = append(v.Vectors, vector...)
		if coder != nil {
			v.Codes = append(v.Codes, coder.Encode(tokens, make([]bool, len(tokens)/own.Multi)))
		}
	}
	return nil
}

// unit returns the passage's vectors, each of length 1. One that brings those
// of its tokens alone has their mean for its vector.
func (p Passage) unit(own store.Own) (vector, tokens []float32, err error) {
	if own.Multi > 0 {
		if tokens, err = index.Unit(p.Vectors, own.Multi); err != nil {
			return nil, nil, fmt.Errorf("vectors: %w", err)
		}
	}
	if own.Dense == 0 {
		return index.Mean(tokens, own.Multi), tokens, nil
	}
	if vector, err = index.Unit(p.Vector, own.Dense); err != nil {
		return nil, nil, fmt.Errorf("vector: %w", err)
	}
	return vector, tokens, nil
}

// hashInto adds all that the passage is, each part behind its length.
func (p Passage) hashInto(h hash.Hash) {
	hashPart(h, []byte(p.Text))
	hashPart(h, binary.LittleEndian.AppendUint64(nil, uint64(len(p.Headings))))
	for _, heading := range p.Headings {
		hashPart(h, []byte(heading))
	}
	hashFloats(h, p.Vector)
	hashFloats(h, p.Vectors)
}

func hashPart(h hash.Hash, part []byte) {
	var size [8]byte
	binary.LittleEndian.PutUint64(size[:], uint64(len(part)))
	h.Write(size[:])
	h.Write(part)
}

func hashFloats(h hash.Hash, x []float32) {
	raw := make([]byte, 0, 4*len(x))
	for _, v := range x {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	hashPart(h, raw)
}
