package wire

import (
	"encoding/binary"
	"fmt"
)

// Search asks for the K rows of greatest inner product with each query, among
// those whose bit is set in its bitmap. Rows and bitmaps are memory that is
// held: Rows × Width IEEE halves, and 32-bit words of which row r has bit r%32
// of word r/32. There is no way to leave a bitmap out.
//
//	0   4      the rows' number
//	4   4      rows
//	8   4      width, a multiple of 8
//	12  4      k
//	16  4      n, queries
//	20  4·n    the number of each query's bitmap
//	    2·n·w  halves
type Search struct {
	Number         uint32
	Rows, Width, K int
	Bitmaps        []uint32
	Queries        []byte // n × Width halves, as they came
}

const searchHeader = 20

// Bounds of a search, which keep sizes small enough to multiply.
const (
	MaxQueries = 1 << 10
	maxRows    = 1 << 31
	maxWidth   = 1 << 16
	maxK       = 1 << 10
)

// AppendSearch makes a frame in place of dst.
func AppendSearch(dst []byte, id uint32, s Search) ([]byte, error) {
	dst = begin(dst)
	for _, n := range [5]int{int(s.Number), s.Rows, s.Width, s.K, len(s.Bitmaps)} {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
	}
	for _, number := range s.Bitmaps {
		dst = binary.LittleEndian.AppendUint32(dst, number)
	}
	return seal(append(dst, s.Queries...), KindSearch, id)
}

// Decode reads a payload, reusing s's memory.
func (s *Search) Decode(payload []byte) error {
	if len(payload) < searchHeader {
		return fmt.Errorf("%w: a search of %d bytes", ErrFrame, len(payload))
	}
	var head [5]int
	for i := range head {
		head[i] = int(binary.LittleEndian.Uint32(payload[4*i:]))
	}
	s.Number, s.Rows, s.Width, s.K = uint32(head[0]), head[1], head[2], head[3]
	n, rest := head[4], payload[searchHeader:]
	if s.Rows >= maxRows || s.Width == 0 || s.Width > maxWidth || s.Width%8 != 0 || s.K < 1 || s.K > maxK || n < 1 || n > MaxQueries ||
		len(rest) != 4*n+2*n*s.Width {
		return fmt.Errorf("%w: a search of %d queries, %d rows of %d for %d, of %d bytes", ErrFrame, n, s.Rows, s.Width, s.K, len(payload))
	}
	s.Bitmaps = s.Bitmaps[:0]
	for i := range n {
		s.Bitmaps = append(s.Bitmaps, binary.LittleEndian.Uint32(rest[4*i:]))
	}
	s.Queries = append(s.Queries[:0], rest[4*n:]...)
	return nil
}

// Found is the answer to a Search: K rows and products a query, the best first,
// of equal ones the smaller row; −1 after the last.
//
//	0   4    n, of all queries together
//	4   4·n  rows, int32
//	    4·n  products, float32
type Found struct {
	Rows     []int32
	Products []float32
}

// AppendFound makes a frame in place of dst.
func AppendFound(dst []byte, id uint32, f Found) ([]byte, error) {
	dst = binary.LittleEndian.AppendUint32(begin(dst), uint32(len(f.Rows)))
	return seal(appendFloats(appendInts(dst, f.Rows), f.Products), KindFound, id)
}

// Decode reads a payload into f, whose lengths are what was asked for.
func (f Found) Decode(payload []byte) error {
	n := len(f.Rows)
	if len(payload) != 4+8*n || int(binary.LittleEndian.Uint32(payload)) != n {
		return fmt.Errorf("%w: an answer of %d bytes to a search for %d rows", ErrFrame, len(payload), n)
	}
	payload = payload[4:]
	for i := range f.Rows {
		f.Rows[i] = int32(binary.LittleEndian.Uint32(payload[4*i:]))
	}
	floats(f.Products, payload[4*n:])
	return nil
}
