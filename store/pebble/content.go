package pebble

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/klauspost/compress/zstd"

	"sluice/chunk"
	"sluice/store"
)

// codec compresses chunks and text.
type codec struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

func newCodec() (codec, error) {
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		return codec{}, fmt.Errorf("zstd: %w", err)
	}
	// Chunks and headings come on top of the text that MaxVersionBytes bounds.
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(2*store.MaxVersionBytes), zstd.WithDecoderConcurrency(0))
	if err != nil {
		return codec{}, fmt.Errorf("zstd: %w", err)
	}
	return codec{encoder, decoder}, nil
}

func (c codec) close() error {
	c.decoder.Close()
	return c.encoder.Close()
}

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

func (d *decoder) written() written { return written{d.hash(), d.uint32()} }

// encodeText returns the chunks and the text as a zstd frame.
func (c codec) encodeText(text string, chunks []chunk.Chunk) []byte {
	b := make([]byte, 0, len(text)+16*len(chunks)+16)
	b = binary.AppendUvarint(b, uint64(len(chunks)))
	for _, c := range chunks {
		b = binary.AppendUvarint(b, uint64(c.Start))
		b = binary.AppendUvarint(b, uint64(c.End-c.Start)|indexBit(c.Index))
		b = appendStrings(b, c.Headings)
		if c.Index != "" {
			b = appendString(b, c.Index)
		}
	}
	b = append(b, text...)
	return c.encoder.EncodeAll(b, make([]byte, 0, len(b)/2))
}

func (c codec) deflate(plain []byte) []byte { return c.encoder.EncodeAll(plain, nil) }

func (c codec) inflate(body []byte) ([]byte, error) {
	plain, err := c.decoder.DecodeAll(body, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrCorrupt, err)
	}
	return plain, nil
}

// indexed marks, in the length of a chunk, that an index text follows.
const indexed = 1 << 32

func indexBit(index string) uint64 {
	if index == "" {
		return 0
	}
	return indexed
}

// decodeContent fills in the text and chunks of content from a body: written, zstd frame.
func (c codec) decodeContent(content *store.Content, body []byte) error {
	d := decoder{body: body}
	if w := d.written(); d.err == nil && w != writtenBy(content.Record) {
		return fmt.Errorf("%w: the text is of another version than the record", store.ErrCorrupt)
	}
	if d.err != nil {
		return d.err
	}
	plain, err := c.inflate(d.body)
	if err != nil {
		return err
	}
	d.body = plain
	var chunks []chunk.Chunk
	if n := d.length(); n > 0 {
		chunks = make([]chunk.Chunk, n)
	}
	for i := range chunks {
		chunks[i].Start = int(d.uint32())
		length := d.uvarint()
		chunks[i].End = chunks[i].Start + int(length&(indexed-1))
		chunks[i].Headings = decodeStrings[string](&d)
		if length&indexed != 0 {
			chunks[i].Index = d.string()
		}
	}
	if d.err != nil {
		return d.err
	}
	content.Text, content.Chunks = string(d.body), chunks
	return checkChunks(content)
}

func checkChunks(c *store.Content) error {
	if len(c.Chunks) != int(c.Rows) {
		return fmt.Errorf("%w: %d chunks for %d rows", store.ErrCorrupt, len(c.Chunks), c.Rows)
	}
	for i, chunk := range c.Chunks {
		if chunk.End > len(c.Text) {
			return fmt.Errorf("%w: chunk %d ends at %d of a text of %d bytes", store.ErrCorrupt, i, chunk.End, len(c.Text))
		}
	}
	return nil
}

// encodeVectors returns the dimensions and the components as little-endian float32.
func encodeVectors(dimensions int, vectors []float32) []byte {
	b := binary.AppendUvarint(make([]byte, 0, binary.MaxVarintLen64+4*len(vectors)), uint64(dimensions))
	for _, v := range vectors {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// decodeVectors fills in the vectors of content from a body: written, dimensions, components.
func decodeVectors(content *store.Content, body []byte) error {
	d := decoder{body: body}
	w := d.written()
	dimensions := int(d.uint32())
	if d.err != nil {
		return d.err
	}
	if w != writtenBy(content.Record) {
		return fmt.Errorf("%w: the vectors are of another version than the record", store.ErrCorrupt)
	}
	if len(d.body) != 4*dimensions*int(content.Rows) {
		return fmt.Errorf("%w: %d bytes of vectors for %d rows × %d dimensions", store.ErrCorrupt, len(d.body), content.Rows, dimensions)
	}
	content.Dimensions = dimensions
	if len(d.body) == 0 {
		return nil
	}
	content.Vectors = make([]float32, len(d.body)/4)
	for i := range content.Vectors {
		content.Vectors[i] = math.Float32frombits(binary.LittleEndian.Uint32(d.body[4*i:]))
	}
	return nil
}
