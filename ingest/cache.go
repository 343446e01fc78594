package ingest

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"sluice/gpu"
	"sluice/index/late"
	"sluice/store"
)

// errCached: the cache has a value that this program did not write.
var errCached = errors.New("a cached embedding has another form")

// embeddingKey is a hash over all that decides what a text is embedded as, and
// the tenant: how long a write takes must not tell what others have written. The
// model's digest covers weights, tokenizer, pooling and precision. No coder: no
// token codes.
func embeddingKey(info gpu.Info, coder *late.Coder, tenant, text string) store.EmbeddingKey {
	codes := ""
	if coder != nil {
		codes = coder.Kind.String()
	}
	h := sha256.New()
	for _, part := range []string{tenant, info.Digest, fmt.Sprint(info.Pooling, " ", info.Dimensions, " ", info.Precision), info.Prompts.Document(), codes, text} {
		hashPart(h, []byte(part))
	}
	return store.EmbeddingKey(h.Sum(nil))
}

// encode is the cache's value: 1 byte, whether the text was cut; uvarint
// dimensions; components as little-endian float32; the rest are token codes.
func (e embedded) encode() []byte {
	b := make([]byte, 1, 1+binary.MaxVarintLen64+4*len(e.vector)+len(e.codes))
	if e.cut {
		b[0] = 1
	}
	b = binary.AppendUvarint(b, uint64(len(e.vector)))
	for _, x := range e.vector {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return append(b, e.codes...)
}

// decodeEmbedded copies what it returns.
func decodeEmbedded(b []byte) (embedded, error) {
	if len(b) < 2 || b[0] > 1 {
		return embedded{}, errCached
	}
	n, size := binary.Uvarint(b[1:])
	if size <= 0 || n > uint64(len(b)-1-size)/4 {
		return embedded{}, errCached
	}
	e := embedded{cut: b[0] == 1, vector: make([]float32, n)}
	b = b[1+size:]
	for i := range e.vector {
		e.vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	if b = b[4*n:]; len(b) > 0 {
		e.codes = append([]byte(nil), b...)
	}
	return e, nil
}
