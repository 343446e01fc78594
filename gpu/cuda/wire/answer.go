package wire

import (
	"encoding/binary"
	"fmt"
	"math"

	"sluice/gpu"
	"sluice/kernels/ref"
)

// Answer is what a run gives: as much as was asked for, nothing else.
//
//	0   4    p, numbers of pooled vectors
//	4   4    n, norms
//	8   4    l, logits
//	12  4    t, numbers of token vectors
//	16  4·p  float32
//	    4·n  float32
//	    4·l  float32
//	    2·t  bfloat16, as the device has them
type Answer struct {
	Pooled, Norms, Logits []float32
	Tokens                []uint16
}

const answerHeader = 16

// AppendAnswer makes a frame in place of dst.
func AppendAnswer(dst []byte, id uint32, a Answer) ([]byte, error) {
	dst = begin(dst)
	for _, n := range [4]int{len(a.Pooled), len(a.Norms), len(a.Logits), len(a.Tokens)} {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
	}
	dst = appendFloats(appendFloats(appendFloats(dst, a.Pooled), a.Norms), a.Logits)
	for _, v := range a.Tokens {
		dst = binary.LittleEndian.AppendUint16(dst, v)
	}
	return seal(dst, KindAnswer, id)
}

func appendFloats(dst []byte, x []float32) []byte {
	for _, v := range x {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
	}
	return dst
}

// DecodeAnswer fills out, which must be what was asked for. Norms that out has
// no room for are left out.
func DecodeAnswer(payload []byte, out gpu.Output) error {
	if len(payload) < answerHeader {
		return fmt.Errorf("%w: an answer of %d bytes", ErrFrame, len(payload))
	}
	var counts [4]int
	for i := range counts {
		counts[i] = int(binary.LittleEndian.Uint32(payload[4*i:]))
	}
	norms := counts[1]
	if out.Norms != nil {
		norms = len(out.Norms)
	}
	if want := [4]int{len(out.Pooled), norms, len(out.Logits), len(out.Tokens)}; counts != want ||
		len(payload) != answerHeader+4*(counts[0]+counts[1]+counts[2])+2*counts[3] {
		return fmt.Errorf("%w: an answer of %v numbers and %d bytes, want %v", ErrFrame, counts, len(payload), want)
	}
	payload = floats(out.Pooled, payload[answerHeader:])
	if floats(out.Norms, payload); out.Norms == nil {
		payload = payload[4*norms:]
	} else {
		payload = payload[4*len(out.Norms):]
	}
	payload = floats(out.Logits, payload)
	for i := range out.Tokens {
		out.Tokens[i] = ref.FromBF16(binary.LittleEndian.Uint16(payload[2*i:]))
	}
	return nil
}

// floats fills dst and returns what follows.
func floats(dst []float32, from []byte) []byte {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(from[4*i:]))
	}
	return from[4*len(dst):]
}

// Failure says why a request has no answer: four bytes of Code, and a text.
type Failure struct {
	Code Code
	Text string
}

// Code is a kind of failure.
type Code uint32

// After CodeDevice the worker ends: its device's context is spoilt.
const (
	CodeInput  Code = iota + 1 // the request is wrong
	CodeMemory                 // the device's memory does not suffice, even for one sequence
	CodeModel                  // the model cannot be loaded
	CodeDevice                 // the device failed
)

func (f Failure) Error() string { return f.Text }

const maxText = 1 << 12

// AppendFailure makes a frame in place of dst.
func AppendFailure(dst []byte, id uint32, f Failure) ([]byte, error) {
	dst = binary.LittleEndian.AppendUint32(begin(dst), uint32(f.Code))
	return seal(append(dst, f.Text[:min(len(f.Text), maxText)]...), KindFailure, id)
}

// DecodeFailure reads a payload.
func DecodeFailure(payload []byte) (Failure, error) {
	if len(payload) < 4 || len(payload) > 4+maxText {
		return Failure{}, fmt.Errorf("%w: a failure of %d bytes", ErrFrame, len(payload))
	}
	code := Code(binary.LittleEndian.Uint32(payload))
	if code < CodeInput || code > CodeDevice {
		return Failure{}, fmt.Errorf("%w: a failure of kind %d", ErrFrame, code)
	}
	return Failure{code, string(payload[4:])}, nil
}
