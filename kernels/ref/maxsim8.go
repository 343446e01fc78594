package ref

import (
	"encoding/binary"
	"math"
)

// MaxSim8 is MaxSim on codes of 8 bits: a passage token is what Quantize makes
// of its dims elements, padded to whole 16 bytes, then the little-endian float32
// scale. query has a row of dims elements a token, each what QuantizeWeights
// makes of it, and scales the scale of each.
func MaxSim8(query []int8, scales []float32, dims int, codes []byte) float32 {
	if len(scales) == 0 {
		return -1
	}
	var sum float64
	for token, scale := range scales {
		best := -1.0
		for row := codes; len(row) > 0; row = row[Code8Bytes(dims):] {
			dot := float64(DotInt8(row[:dims], query[token*dims:(token+1)*dims]))
			best = max(best, dot*float64(scale)*float64(Code8Scale(row[:Code8Bytes(dims)])))
		}
		sum += best
	}
	return float32(sum / float64(len(scales)))
}

// Code8Bytes is the length of a code row of 8 bits a dimension.
func Code8Bytes(dims int) int { return (dims+15)/16*16 + 4 }

// Code8Scale is the scale of a code row of 8 bits a dimension.
func Code8Scale(row []byte) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(row[len(row)-4:]))
}
