package wire

import (
	"encoding/binary"
	"fmt"
)

// Hold has the worker keep bytes on its device under a number, for the requests
// that name it: rows of vectors, or bitmaps. The first of a number allocates
// Size, and what is not filled yet is undefined.
//
//	0   4  number
//	4   8  bytes of the whole
//	12  8  where these begin
//	20     bytes
type Hold struct {
	Number   uint32
	Size, At uint64
	Bytes    []byte
}

const holdHeader = 20

// AppendHold makes a frame in place of dst. fill appends the bytes.
func AppendHold(dst []byte, id, number uint32, size, at int, fill func(dst []byte) []byte) ([]byte, error) {
	dst = binary.LittleEndian.AppendUint32(begin(dst), number)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(size))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(at))
	return seal(fill(dst), KindHold, id)
}

// DecodeHold reads a payload; the bytes are its own, inside the whole.
func DecodeHold(payload []byte) (h Hold, err error) {
	if len(payload) < holdHeader {
		return h, fmt.Errorf("%w: memory of %d bytes", ErrFrame, len(payload))
	}
	h.Number, h.Size = binary.LittleEndian.Uint32(payload), binary.LittleEndian.Uint64(payload[4:])
	h.At, h.Bytes = binary.LittleEndian.Uint64(payload[12:]), payload[holdHeader:]
	if h.Size == 0 || h.Size > maxMemory || h.At > h.Size || uint64(len(h.Bytes)) > h.Size-h.At {
		return h, fmt.Errorf("%w: %d bytes at %d of memory of %d", ErrFrame, len(h.Bytes), h.At, h.Size)
	}
	return h, nil
}

// maxMemory is more than any device has.
const maxMemory = 1 << 42

// AppendDrop makes a frame in place of dst that gives memory back, of a number
// that may be unknown.
func AppendDrop(dst []byte, number uint32) ([]byte, error) {
	return seal(binary.LittleEndian.AppendUint32(begin(dst), number), KindDrop, 0)
}

// DecodeDrop reads a payload: a number.
func DecodeDrop(payload []byte) (uint32, error) {
	if len(payload) != 4 {
		return 0, fmt.Errorf("%w: a drop of %d bytes", ErrFrame, len(payload))
	}
	return binary.LittleEndian.Uint32(payload), nil
}
