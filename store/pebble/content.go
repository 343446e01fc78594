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

func readWritten(d *encode.Decoder) written { return written{d.Hash(), d.Uint32()} }

// decodeContent fills in the text and chunks of content from a body: written, zstd frame.
func decodeContent(codec encode.Codec, content *store.Content, body []byte) error {
	d := encode.Decoder{Body: body}
	if w := readWritten(&d); d.Err == nil && w != writtenBy(content.Record) {
		return fmt.Errorf("%w: the text is of another version than the record", store.ErrCorrupt)
	}
	if d.Err != nil {
		return d.Err
	}
	return codec.DecodeText(content, d.Body)
}

// decodeVectors fills in the vectors of content from a body: written, dimensions, components.
func decodeVectors(content *store.Content, body []byte) error {
	d := encode.Decoder{Body: body}
	if w := readWritten(&d); d.Err == nil && w != writtenBy(content.Record) {
		return fmt.Errorf("%w: the vectors are of another version than the record", store.ErrCorrupt)
	}
	if d.Err != nil {
		return d.Err
	}
	return encode.DecodeVectors(content, d.Body)
}
