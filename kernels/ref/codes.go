package ref

import (
	"encoding/binary"
	"math"
)

// CodeLanes is how many vectors share a block of codes.
const CodeLanes = 16

// CodeBlock is the size in bytes of a block of codes of dims dimensions, a
// multiple of 64: for every 32 dimensions a uint32 of signs for each lane (bit
// i set where dimension 32·w+i is positive), then for each lane the float32
// offset, then for each lane the float32 factor; all little-endian.
func CodeBlock(dims int) int { return dims/32*4*CodeLanes + 8*CodeLanes }

// ScanBlock estimates the inner products of a query, whose dimensions are
// rounded to values from -8 to 7, with the vectors of a block:
//
//	offset + base + factor·(scale·S + shift), S being the sum of the values whose sign is set.
//
// With the offset, factor, scale and shift of Gao and Long, "RaBitQ", SIGMOD
// 2024, section 3, the estimate is unbiased.
func ScanBlock(values []int8, block []byte, scale, shift, base float32) (estimates [CodeLanes]float32) {
	words := len(values) / 32
	float := func(i int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(block[4*i:])) }
	for lane := range estimates {
		sum := 0
		for d, v := range values {
			if binary.LittleEndian.Uint32(block[4*(d/32*CodeLanes+lane):])>>(d%32)&1 == 1 {
				sum += int(v)
			}
		}
		offset, factor := float(words*CodeLanes+lane), float((words+1)*CodeLanes+lane)
		estimates[lane] = offset + base + factor*(scale*float32(sum)+shift)
	}
	return estimates
}
