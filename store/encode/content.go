package encode

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/klauspost/compress/zstd"

	"sluice/chunk"
	"sluice/store"
)

// Codec compresses chunks and text. It is safe for concurrent use.
type Codec struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

// NewCodec returns a Codec; Close it.
func NewCodec() (Codec, error) {
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		return Codec{}, fmt.Errorf("zstd: %w", err)
	}
	// Chunks and headings come on top of the text that MaxVersionBytes bounds.
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(2*store.MaxVersionBytes), zstd.WithDecoderConcurrency(0))
	if err != nil {
		return Codec{}, fmt.Errorf("zstd: %w", err)
	}
	return Codec{encoder, decoder}, nil
}

// Close ends the codec.
func (c Codec) Close() error {
	c.decoder.Close()
	return c.encoder.Close()
}

// Text returns the chunks and the text as a zstd frame.
func (c Codec) Text(text string, chunks []chunk.Chunk) []byte {
	b := make([]byte, 0, len(text)+16*len(chunks)+16)
	b = binary.AppendUvarint(b, uint64(len(chunks)))
	for _, c := range chunks {
		b = binary.AppendUvarint(b, uint64(c.Start))
		b = binary.AppendUvarint(b, uint64(c.End-c.Start)|indexBit(c.Index))
		b = AppendStrings(b, c.Headings)
		if c.Index != "" {
			b = AppendString(b, c.Index)
		}
	}
	b = append(b, text...)
	return c.encoder.EncodeAll(b, make([]byte, 0, len(b)/2))
}

// Deflate compresses.
func (c Codec) Deflate(plain []byte) []byte { return c.encoder.EncodeAll(plain, nil) }

// Inflate reverses Deflate.
func (c Codec) Inflate(frame []byte) ([]byte, error) {
	plain, err := c.decoder.DecodeAll(frame, nil)
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

// DecodeText fills in the text and chunks of content, whose record is there, from a frame.
func (c Codec) DecodeText(content *store.Content, frame []byte) error {
	plain, err := c.Inflate(frame)
	if err != nil {
		return err
	}
	d := Decoder{Body: plain}
	var chunks []chunk.Chunk
	if n := d.Length(); n > 0 {
		chunks = make([]chunk.Chunk, n)
	}
	for i := range chunks {
		chunks[i].Start = int(d.Uint32())
		length := d.Uvarint()
		chunks[i].End = chunks[i].Start + int(length&(indexed-1))
		chunks[i].Headings = Strings[string](&d)
		if length&indexed != 0 {
			chunks[i].Index = d.Text()
		}
	}
	if d.Err != nil {
		return d.Err
	}
	content.Text, content.Chunks = string(d.Body), chunks
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

// Vectors returns the dimensions and the components as little-endian float32.
func Vectors(dimensions int, vectors []float32) []byte {
	b := binary.AppendUvarint(make([]byte, 0, binary.MaxVarintLen64+4*len(vectors)), uint64(dimensions))
	for _, v := range vectors {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// DecodeVectors fills in the vectors of content, whose record is there.
func DecodeVectors(content *store.Content, body []byte) error {
	d := Decoder{Body: body}
	dimensions := int(d.Uint32())
	if d.Err != nil {
		return d.Err
	}
	if len(d.Body) != 4*dimensions*int(content.Rows) {
		return fmt.Errorf("%w: %d bytes of vectors for %d rows × %d dimensions", store.ErrCorrupt, len(d.Body), content.Rows, dimensions)
	}
	content.Dimensions = dimensions
	if len(d.Body) == 0 {
		return nil
	}
	content.Vectors = make([]float32, len(d.Body)/4)
	for i := range content.Vectors {
		content.Vectors[i] = math.Float32frombits(binary.LittleEndian.Uint32(d.Body[4*i:]))
	}
	return nil
}
