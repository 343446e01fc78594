package pebble

import (
	"encoding/binary"
	"fmt"

	"sluice/store"
	"sluice/store/encode"
)

// written identifies one writing of a document; record, content and vectors of
// a document carry the same.
type written struct {
	identity [32]byte
	firstRow uint32
}

func writtenBy(r store.Record) written { return written{r.Identity, r.FirstRow} }

func (w written) encode() []byte {
	return binary.AppendUvarint(w.identity[:len(w.identity):len(w.identity)], uint64(w.firstRow))
}

// afterWritten returns what follows the mark of the writing, which must be r's.
func afterWritten(r store.Record, body []byte) ([]byte, error) {
	d := encode.Decoder{Body: body}
	if w := (written{d.Hash(), d.Uint32()}); d.Err == nil && w != writtenBy(r) {
		return nil, fmt.Errorf("%w: the text is of another version than the record", store.ErrCorrupt)
	}
	return d.Body, d.Err
}

// decodeContent fills in the text and chunks of content from a body: written, zstd frame.
func (s *Store) decodeContent(content *store.Content, body []byte) error {
	frame, err := afterWritten(content.Record, body)
	if err != nil {
		return err
	}
	return s.codec.DecodeText(content, frame)
}

// decodeVectors fills in the vectors of content from a body: written, dimensions, components.
func decodeVectors(content *store.Content, body []byte) error {
	vectors, err := afterWritten(content.Record, body)
	if err != nil {
		return err
	}
	return encode.DecodeVectors(content, vectors)
}
