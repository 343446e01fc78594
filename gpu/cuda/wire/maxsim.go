package wire

import (
	"encoding/binary"
	"fmt"
)

// MaxSim asks for the score of late interaction of each passage with a query:
// see kernels/ref.MaxSim. It is answered by an Answer whose pooled vectors are
// the scores.
//
//	0   4      dimensions, a multiple of 32
//	4   4      t, the query's tokens, at least 1
//	8   4      n, passages
//	12  4·n    tokens of each passage
//	    4·t·d  the query, float32
//	           code rows, d/8 + 4 bytes each
type MaxSim struct {
	Dimensions, Tokens int
	Offsets            []int32 // in rows, one more than there are passages
	Query, Codes       []byte  // as they came
}

const (
	maxSimHeader  = 12
	maxDimensions = 1 << 12
)

// RowBytes is the length of a token's code.
func RowBytes(dimensions int) int { return dimensions/8 + 4 }

// AppendMaxSim makes a frame in place of dst, of passages that are whole code rows.
func AppendMaxSim(dst []byte, id uint32, query []float32, dimensions int, passages [][]byte) ([]byte, error) {
	dst = begin(dst)
	for _, n := range [3]int{dimensions, len(query) / dimensions, len(passages)} {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
	}
	for _, rows := range passages {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(rows)/RowBytes(dimensions)))
	}
	dst = appendFloats(dst, query)
	for _, rows := range passages {
		dst = append(dst, rows...)
	}
	return seal(dst, KindMaxSim, id)
}

// Decode reads a payload, reusing m's memory; Query and Codes are the payload's.
func (m *MaxSim) Decode(payload []byte) error {
	if len(payload) < maxSimHeader {
		return fmt.Errorf("%w: late interaction of %d bytes", ErrFrame, len(payload))
	}
	m.Dimensions, m.Tokens = int(binary.LittleEndian.Uint32(payload)), int(binary.LittleEndian.Uint32(payload[4:]))
	n, rest := int(binary.LittleEndian.Uint32(payload[8:])), payload[maxSimHeader:]
	if m.Dimensions < 32 || m.Dimensions > maxDimensions || m.Dimensions%32 != 0 || m.Tokens < 1 ||
		m.Tokens > len(rest) || n > len(rest)/4 || len(rest) < 4*n+4*m.Tokens*m.Dimensions {
		return fmt.Errorf("%w: late interaction of %d tokens of %d with %d passages, of %d bytes", ErrFrame, m.Tokens, m.Dimensions, n, len(payload))
	}
	codes := rest[4*n:]
	m.Query, m.Codes = codes[:4*m.Tokens*m.Dimensions], codes[4*m.Tokens*m.Dimensions:]
	return m.offsets(rest[:4*n])
}

func (m *MaxSim) offsets(lengths []byte) error {
	at, rows := 0, len(m.Codes)/RowBytes(m.Dimensions)
	m.Offsets = append(m.Offsets[:0], 0)
	for ; len(lengths) > 0; lengths = lengths[4:] {
		if at += int(binary.LittleEndian.Uint32(lengths)); at > rows {
			break
		}
		m.Offsets = append(m.Offsets, int32(at))
	}
	if at*RowBytes(m.Dimensions) != len(m.Codes) {
		return fmt.Errorf("%w: passages have %d of %d bytes of code rows", ErrFrame, at*RowBytes(m.Dimensions), len(m.Codes))
	}
	return nil
}
