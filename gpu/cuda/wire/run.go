package wire

import (
	"encoding/binary"
	"fmt"

	"sluice/gpu"
)

// Want says what is asked for.
type Want uint32

// Norms come with Pooled.
const (
	WantPooled Want = 1 << iota
	WantTokens
	WantLogits

	wantAll = WantPooled | WantTokens | WantLogits
)

// Wanted is what out has room for.
func Wanted(out gpu.Output) (w Want) {
	if out.Pooled != nil {
		w |= WantPooled
	}
	if out.Tokens != nil {
		w |= WantTokens
	}
	if out.Logits != nil {
		w |= WantLogits
	}
	return w
}

// Run is a batch for a model.
//
//	0   4      the model's number
//	4   4      what is wanted
//	8   4      n, sequences
//	12  4      t, tokens
//	16  4·n    tokens of each sequence, at least 1
//	    4·t    token ids
//	    4·t    token type ids
type Run struct {
	Model int
	Want  Want
	Batch gpu.Batch
}

const runHeader = 16

// AppendRun makes a frame in place of dst.
func AppendRun(dst []byte, id uint32, number int, want Want, b *gpu.Batch) ([]byte, error) {
	dst = begin(dst)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(number))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(want))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(b.Len()))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(b.Tokens()))
	for i := range b.Len() {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(b.Offsets[i+1]-b.Offsets[i]))
	}
	dst = appendInts(appendInts(dst, b.IDs), b.Types)
	return seal(dst, KindRun, id)
}

func appendInts(dst []byte, x []int32) []byte {
	for _, v := range x {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
	}
	return dst
}

// RunModel is the number of the model that a payload names.
func RunModel(payload []byte) (int, error) {
	if len(payload) < runHeader {
		return 0, fmt.Errorf("%w: a run of %d bytes", ErrFrame, len(payload))
	}
	return int(binary.LittleEndian.Uint32(payload)), nil
}

// Decode reads a payload, reusing r's memory.
func (r *Run) Decode(payload []byte) error {
	var err error
	if r.Model, err = RunModel(payload); err != nil {
		return err
	}
	r.Want = Want(binary.LittleEndian.Uint32(payload[4:]))
	n, t := uint64(binary.LittleEndian.Uint32(payload[8:])), uint64(binary.LittleEndian.Uint32(payload[12:]))
	if rest := payload[runHeader:]; uint64(len(rest)) != 4*n+8*t || r.Want&^wantAll != 0 {
		return fmt.Errorf("%w: a run of %d sequences, %d tokens and %d bytes that wants %x", ErrFrame, n, t, len(payload), r.Want)
	}
	payload = payload[runHeader:]
	if err := r.offsets(payload[:4*n], int(t)); err != nil {
		return err
	}
	r.Batch.IDs = ints(r.Batch.IDs, payload[4*n:4*(n+t)])
	r.Batch.Types = ints(r.Batch.Types, payload[4*(n+t):])
	return nil
}

func (r *Run) offsets(lengths []byte, tokens int) error {
	at := 0
	r.Batch.Offsets = append(r.Batch.Offsets[:0], 0)
	for ; len(lengths) > 0; lengths = lengths[4:] {
		length := int(binary.LittleEndian.Uint32(lengths))
		if at += length; length < 1 || at > tokens {
			return fmt.Errorf("%w: a sequence of %d tokens", ErrFrame, length)
		}
		r.Batch.Offsets = append(r.Batch.Offsets, at)
	}
	if at != tokens {
		return fmt.Errorf("%w: sequences have %d tokens of %d", ErrFrame, at, tokens)
	}
	return nil
}

func ints(dst []int32, from []byte) []int32 {
	dst = dst[:0]
	for ; len(from) > 0; from = from[4:] {
		dst = append(dst, int32(binary.LittleEndian.Uint32(from)))
	}
	return dst
}
