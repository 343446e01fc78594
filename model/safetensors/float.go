package safetensors

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
)

// chunk is how many bytes are widened at a time.
const chunk = 1 << 20

// Float32 reads a tensor stored as F32, F16 or BF16, widened to float32. Its
// shape must be the given one.
func (a *Archive) Float32(name string, shape ...int) ([]float32, error) {
	t, ok := a.tensors[name]
	if !ok {
		return nil, fmt.Errorf("%w: no tensor %q", ErrFormat, name)
	}
	if !slices.Equal(t.Shape, shape) {
		return nil, fmt.Errorf("%s: %w: tensor %q has shape %v, want %v", t.file.Name(), ErrFormat, name, t.Shape, shape)
	}
	widen, ok := widenings[t.DType]
	if !ok {
		return nil, fmt.Errorf("%s: %w: tensor %q is %s, want F32, F16 or BF16", t.file.Name(), ErrFormat, name, t.DType)
	}
	values, err := t.read(widen)
	if err != nil {
		return nil, fmt.Errorf("%s: reading tensor %q: %w", t.file.Name(), name, err)
	}
	return values, nil
}

func (t location) read(w widening) ([]float32, error) {
	values := make([]float32, (t.End-t.Start)/int64(w.size))
	r := io.NewSectionReader(t.file, t.data+t.Start, t.End-t.Start)
	buf := make([]byte, min(chunk, t.End-t.Start))
	for done := 0; done < len(values); {
		n := min(len(buf)/w.size, len(values)-done)
		if _, err := io.ReadFull(r, buf[:n*w.size]); err != nil {
			return nil, err
		}
		for i := range n {
			values[done+i] = w.float32(buf[i*w.size:])
		}
		done += n
	}
	return values, nil
}

// widening turns size bytes into the float32 of the same value.
type widening struct {
	size    int
	float32 func([]byte) float32
}

var widenings = map[string]widening{
	"F32":  {4, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }},
	"BF16": {2, func(b []byte) float32 { return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16) }},
	"F16":  {2, func(b []byte) float32 { return halfToFloat(binary.LittleEndian.Uint16(b)) }},
}

// halfToFloat widens an IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits.
func halfToFloat(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exponent, fraction := uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch exponent {
	case 0: // zero and subnormals: fraction × 2^-24, exact in float32
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)*0x1p-24))
	case 0x1f:
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}
