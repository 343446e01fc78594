// Package safetensors reads the weights of a model: one .safetensors file, or
// several with an index. The format: an 8-byte little-endian header length, a
// JSON header (name → dtype, shape, data_offsets), then the tensors' bytes.
package safetensors

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// ErrFormat is wrapped by every complaint about a file's content.
var ErrFormat = errors.New("invalid safetensors file")

// maxHeader bounds the JSON header, as the format's reference does.
const maxHeader = 100 << 20

// Info describes one tensor; Start and End are byte offsets into the data
// that follows the header.
type Info struct {
	DType      string
	Shape      []int
	Start, End int64
}

// entry is one tensor as the header spells it.
type entry struct {
	DType   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// elementBits are the sizes of the dtypes of the format.
var elementBits = map[string]int64{
	"BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8,
	"I16": 16, "U16": 16, "F16": 16, "BF16": 16,
	"I32": 32, "U32": 32, "F32": 32, "I64": 64, "U64": 64, "F64": 64, "C64": 64,
}

// ParseHeader reads the JSON header of a file with dataSize bytes after it.
// The tensors must lie in those bytes without overlap or gap, each as long as
// its shape and dtype say.
func ParseHeader(header []byte, dataSize int64) (map[string]Info, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(header, &raw); err != nil {
		return nil, fmt.Errorf("%w: header: %w", ErrFormat, err)
	}
	delete(raw, "__metadata__")
	tensors := make(map[string]Info, len(raw))
	for name, message := range raw {
		info, err := parseEntry(message)
		if err != nil {
			return nil, fmt.Errorf("%w: tensor %q: %w", ErrFormat, name, err)
		}
		tensors[name] = info
	}
	return tensors, checkLayout(tensors, dataSize)
}

func parseEntry(message json.RawMessage) (Info, error) {
	var e entry
	if err := json.Unmarshal(message, &e); err != nil {
		return Info{}, err
	}
	bits, ok := elementBits[e.DType]
	if !ok {
		return Info{}, fmt.Errorf("unknown dtype %q", e.DType)
	}
	size, err := byteSize(e.Shape, bits)
	if err != nil {
		return Info{}, err
	}
	info := Info{e.DType, e.Shape, e.Offsets[0], e.Offsets[1]}
	if info.Start < 0 || info.End < info.Start || info.End-info.Start != size {
		return Info{}, fmt.Errorf("offsets [%d, %d) do not hold the %d bytes of %s %v",
			info.Start, info.End, size, e.DType, e.Shape)
	}
	return info, nil
}

// byteSize multiplies without overflow: no real tensor reaches 2^48 bytes.
func byteSize(shape []int, bits int64) (int64, error) {
	const limit = 1 << 48
	size := bits / 8
	for _, n := range shape {
		if n < 0 || int64(n) > limit || (n > 0 && size > limit/int64(n)) {
			return 0, fmt.Errorf("impossible shape %v", shape)
		}
		size *= int64(n)
	}
	return size, nil
}

func checkLayout(tensors map[string]Info, dataSize int64) error {
	names := slices.Collect(maps.Keys(tensors))
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(tensors[a].Start, tensors[b].Start),
			cmp.Compare(tensors[a].End, tensors[b].End), cmp.Compare(a, b))
	})
	var end int64
	for _, name := range names {
		t := tensors[name]
		switch {
		case t.Start != end:
			return fmt.Errorf("%w: tensor %q starts at byte %d, want %d: overlap or gap", ErrFormat, name, t.Start, end)
		case t.End > dataSize:
			return fmt.Errorf("%w: tensor %q ends at byte %d of %d: the file is truncated", ErrFormat, name, t.End, dataSize)
		}
		end = t.End
	}
	if end != dataSize {
		return fmt.Errorf("%w: %d bytes after the last tensor", ErrFormat, dataSize-end)
	}
	return nil
}
