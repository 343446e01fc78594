package server

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/valyala/fasthttp"

	"sluice/client"
	"sluice/gpu"
)

// Answers that are vectors are most of what an embedding request costs beside
// the model, so they are written here number by number; package client declares
// their form, and a test holds the two together.

// What a number of a vector takes: about that in digits, less than that as bytes
// in base64.
const (
	digits      = 12
	base64Bytes = 6

	maxNumber = len(",-123456780000000000000") // the longest
)

// appendVector appends the numbers, each with as many digits as tell it from
// all other float32.
func appendVector(dst []byte, v []float32) []byte {
	dst = append(dst, '[')
	for i, x := range v {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendNumber(dst, x)
	}
	return append(dst, ']')
}

func appendNumber(dst []byte, x float32) []byte {
	format, size := byte('f'), math.Abs(float64(x))
	if size != 0 && (size < 1e-6 || size >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, float64(x), format, -1, 32)
}

// appendBytes appends the vector's little-endian bytes as a string.
func appendBytes(dst []byte, v []float32) []byte {
	raw := make([]byte, 0, 4*len(v))
	for _, x := range v {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, raw)
	return append(dst, '"')
}

// appendVectors is a list of the embeddings' vectors.
func appendVectors(embeddings []gpu.Embedding) []byte {
	dst := roomFor(embeddings, digits)
	dst = append(dst, '[')
	for i, e := range embeddings {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendVector(dst, e.Vector)
	}
	return append(dst, "]\n"...)
}

func roomFor(embeddings []gpu.Embedding, numberBytes int) []byte {
	const around = 128 // a vector, or all of them
	numbers := 0
	for _, e := range embeddings {
		numbers += len(e.Vector)
	}
	return make([]byte, 0, numbers*numberBytes+(len(embeddings)+1)*around)
}

// appendEmbeddingResponse is a client.EmbeddingResponse.
func appendEmbeddingResponse(embeddings []gpu.Embedding, body client.EmbeddingRequest) ([]byte, error) {
	tokens, numberBytes, asBytes := 0, digits, body.EncodingFormat == "base64"
	if asBytes {
		numberBytes = base64Bytes
	}
	dst := append(roomFor(embeddings, numberBytes), `{"object":"list","data":[`...)
	for i, e := range embeddings {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendEmbedding(dst, i, e, asBytes)
		tokens += e.Tokens
	}
	dst, err := jsontext.AppendQuote(append(dst, `],"model":`...), body.Model)
	dst = append(dst, `,"usage":{"prompt_tokens":`...)
	dst = strconv.AppendInt(dst, int64(tokens), 10)
	dst = append(dst, `,"total_tokens":`...)
	dst = strconv.AppendInt(dst, int64(tokens), 10)
	return append(dst, "}}\n"...), err
}

// appendEmbedding is a client.Embedding.
func appendEmbedding(dst []byte, index int, e gpu.Embedding, bytes bool) []byte {
	dst = append(dst, `{"object":"embedding","index":`...)
	dst = strconv.AppendInt(dst, int64(index), 10)
	dst = append(dst, `,"embedding":`...)
	if bytes {
		dst = appendBytes(dst, e.Vector)
	} else {
		dst = appendVector(dst, e.Vector)
	}
	if e.Truncated {
		dst = append(dst, `,"truncated":true`...)
	}
	return append(dst, '}')
}

// reserve charges for so many numbers, and for what they take in the answer,
// about: the rest is charged when it is written.
func (p *pages) reserve(numbers int) error {
	const float32Bytes = 4
	if most := int(p.q.s.limits.TotalBytes); p.q.taken+numbers*(float32Bytes+digits) > most {
		return failf(fasthttp.StatusRequestEntityTooLarge, "inputs: their token vectors take more than limits.total_bytes, %d bytes; send fewer at a time", most)
	}
	if err := p.q.take(numbers * (float32Bytes + digits)); err != nil {
		return err
	}
	p.paid += numbers * digits
	return nil
}

// writeTokenVectors writes the vectors of a text's tokens into the list of the texts, at place i.
func (p *pages) writeTokenVectors(e gpu.Embedding, width, i int) error {
	if err := p.write(before(i) + "["); err != nil {
		return err
	}
	for n := range e.Tokens {
		if err := p.writeVector(e.TokenVectors[n*width:][:width], n > 0); err != nil {
			return err
		}
	}
	return p.write("]")
}

// writeVector writes the numbers of one vector, after others or not.
func (p *pages) writeVector(v []float32, others bool) error {
	if others {
		if err := p.write(","); err != nil {
			return err
		}
	}
	for i, x := range v {
		if err := p.room(maxNumber); err != nil {
			return err
		}
		p.last = appendNumber(append(p.last, before(i)...), x)
	}
	return p.write("]")
}
