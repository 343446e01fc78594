// Package wire is what a daemon and a GPU worker say to each other over a Unix
// socket: frames of a header, and a payload of one message. Numbers are little
// endian.
//
//	0   4  "SLGW"
//	4   2  version
//	6   2  kind
//	8   4  id, of a request and its answer
//	12  4  bytes of payload, MaxPayload at most
//	16  4  CRC-32C of the first 16 bytes and the payload
//	20     payload
//
// Hello, Load and Loaded are JSON, as they come once; Run, Answer and Failure
// are laid out in run.go and answer.go, Hold and Drop in memory.go, Search and
// Found in search.go, MaxSim in maxsim.go.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
)

// Version is of the protocol: a daemon and a worker of different ones refuse
// each other.
const Version = 2

// MaxPayload bounds a frame.
const MaxPayload = 1 << 28

const (
	headerSize = 20
	magic      = "SLGW"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrFrame is wrapped where what arrives is no frame, or no message of its kind.
// Nothing that follows on that connection can be trusted.
var ErrFrame = errors.New("invalid frame")

// Kind is of a message.
type Kind uint16

// The worker sends Hello first, unasked, and to answer a Status. It answers a Load or a Hold by Loaded,
// a Run or a MaxSim by an Answer, a Search by Found, and each of these by a
// Failure; a Drop has no answer.
const (
	KindHello Kind = iota + 1
	KindLoad
	KindLoaded
	KindRun
	KindAnswer
	KindFailure
	KindHold
	KindDrop
	KindSearch
	KindFound
	KindMaxSim
	KindStatus
)

// Frame is a message as it arrives. Its payload is valid until the next Read.
type Frame struct {
	Kind    Kind
	ID      uint32
	Payload []byte
}

// Reader reads frames.
type Reader struct {
	r       io.Reader
	header  [headerSize]byte
	payload []byte
}

// NewReader reads from r, which it does not buffer.
func NewReader(r io.Reader) *Reader { return &Reader{r: r} }

// Read returns the next frame, io.EOF where the connection ended between two.
func (r *Reader) Read() (Frame, error) {
	if _, err := io.ReadFull(r.r, r.header[:]); err != nil {
		return Frame{}, err
	}
	f, size, err := parseHeader(&r.header)
	if err != nil {
		return Frame{}, err
	}
	if err := r.fill(size); err != nil {
		return Frame{}, fmt.Errorf("%w: cut off: %w", ErrFrame, err)
	}
	if got, want := checksum(r.header[:16], r.payload), binary.LittleEndian.Uint32(r.header[16:]); got != want {
		return Frame{}, fmt.Errorf("%w: CRC %08x, want %08x", ErrFrame, got, want)
	}
	f.Payload = r.payload
	return f, nil
}

func parseHeader(h *[headerSize]byte) (f Frame, size int, err error) {
	version, length := binary.LittleEndian.Uint16(h[4:]), binary.LittleEndian.Uint32(h[8+4:])
	f.Kind, f.ID = Kind(binary.LittleEndian.Uint16(h[6:])), binary.LittleEndian.Uint32(h[8:])
	switch {
	case string(h[:4]) != magic:
		err = fmt.Errorf("%w: it begins with %q", ErrFrame, h[:4])
	case version != Version:
		err = fmt.Errorf("%w: of version %d, this side speaks %d: install sluice and sluice-gpu of one release", ErrFrame, version, Version)
	case f.Kind < KindHello || f.Kind > KindStatus:
		err = fmt.Errorf("%w: of kind %d", ErrFrame, f.Kind)
	case length > MaxPayload:
		err = fmt.Errorf("%w: %d bytes, %d are allowed", ErrFrame, length, MaxPayload)
	}
	return f, int(length), err
}

// step bounds what is allocated ahead of what has arrived.
const step = 1 << 20

func (r *Reader) fill(size int) error {
	r.payload = r.payload[:0]
	for len(r.payload) < size {
		n := min(size-len(r.payload), max(step, cap(r.payload)-len(r.payload)))
		from := len(r.payload)
		r.payload = slices.Grow(r.payload, n)[:from+n]
		if _, err := io.ReadFull(r.r, r.payload[from:]); err != nil {
			return err
		}
	}
	return nil
}

func checksum(parts ...[]byte) (sum uint32) {
	for _, part := range parts {
		sum = crc32.Update(sum, castagnoli, part)
	}
	return sum
}

// begin makes room for a header; the payload is appended to what it returns.
func begin(dst []byte) []byte { return slices.Grow(dst[:0], headerSize)[:headerSize] }

// seal completes a frame whose payload is there.
func seal(frame []byte, kind Kind, id uint32) ([]byte, error) {
	payload := frame[headerSize:]
	if len(payload) > MaxPayload {
		return nil, fmt.Errorf("%w: %d bytes, %d are allowed", ErrFrame, len(payload), MaxPayload)
	}
	copy(frame, magic)
	binary.LittleEndian.PutUint16(frame[4:], Version)
	binary.LittleEndian.PutUint16(frame[6:], uint16(kind))
	binary.LittleEndian.PutUint32(frame[8:], id)
	binary.LittleEndian.PutUint32(frame[12:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(frame[16:], checksum(frame[:16], payload))
	return frame, nil
}
