package ref

import (
	"encoding/binary"
	"math"
)

// MaxSim is late interaction: for every query token the best inner product
// with any token of a passage, and the mean of these. (Khattab and Zaharia,
// SIGIR 2020.) A passage token is a code row: a bit a dimension (dimension d is
// bit d%8 of byte d/8, set for +), padded to whole 16-bit words, then a
// little-endian float32 factor. Its inner product with q is estimated, without
// bias if the dimensions were rotated at random, as factor · Σ ±q[d]. (Gao and
// Long, SIGMOD 2024, section 3.2.) query has a row of dims elements a token.
//
// A best match counts at least −1; so does a passage or a query of no tokens.
func MaxSim(query []float32, dims int, codes []byte) float32 {
	if len(query) == 0 {
		return -1
	}
	var sum float64
	for at := 0; at < len(query); at += dims {
		best := -1.0
		for row := codes; len(row) > 0; row = row[CodeBytes(dims):] {
			best = max(best, estimate(query[at:at+dims], row[:CodeBytes(dims)]))
		}
		sum += best
	}
	return float32(sum / float64(len(query)/dims))
}

// CodeBytes is the length of a code row.
func CodeBytes(dims int) int { return (dims+15)/16*2 + 4 }

func estimate(q []float32, row []byte) float64 {
	var sum float64
	for d, x := range q {
		if row[d/8]>>(d%8)&1 == 0 {
			x = -x
		}
		sum += float64(x)
	}
	return sum * float64(math.Float32frombits(binary.LittleEndian.Uint32(row[len(row)-4:])))
}
