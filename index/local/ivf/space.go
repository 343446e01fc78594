// Package ivf finds nearest neighbours among the rows of an immutable set of
// vectors by inner product: exactly among few allowed rows, and approximately,
// by inverted lists of 1-bit codes, among many. It knows vectors, row numbers
// and allowed bits, nothing else.
//
// The method is of three parts. Lists: k-means cells, each row in two of them,
// the second chosen so that its residual is far from parallel to the first's
// (Sun et al., "SOAR", NeurIPS 2023). Codes: the signs of the rotated residual
// with two factors, which estimate an inner product without bias and with a
// known error (Gao and Long, "RaBitQ", SIGMOD 2024). Bytes: what the estimate
// cannot exclude is scored by 8-bit integers. The caller scores what is left in
// float32.
package ivf

import (
	"math"
	"math/bits"
	"math/rand/v2"

	"sluice/kernels/simd"
)

const (
	rotationSeed   = 0x736c756963652d72
	rotationRounds = 6
	granule        = 64 // dimensions are padded to a multiple
)

// Space is what all indexes of one number of dimensions share: the random
// rotation, after which no dimension is special, the effort of searches, and the
// kernels.
type Space struct {
	dims, padded int
	window       int                       // what one round of the rotation mixes
	signs        [rotationRounds][]float32 // by round
	effort       effort
	kernels      *simd.Set
}

// NewSpace returns the space of vectors with so many dimensions, whose searches
// of lists find such a share of the nearest rows on average.
func NewSpace(dims int, recall float64) *Space { return newSpace(dims, recall, simd.Best()) }

func newSpace(dims int, recall float64, kernels *simd.Set) *Space {
	padded := max(1, (dims+granule-1)/granule) * granule
	s := &Space{dims: dims, padded: padded, window: 1 << (bits.Len(uint(padded)) - 1), effort: effortFor(recall), kernels: kernels}
	random := rand.NewPCG(rotationSeed, uint64(padded))
	for round := range s.signs {
		s.signs[round] = make([]float32, s.window)
		for i := range s.signs[round] {
			s.signs[round][i] = 1 - 2*float32(random.Uint64()>>63)
		}
	}
	return s
}

// rotate sets dst, of padded dimensions, to the rotated vector: rounds of
// random signs and a Hadamard transform, of the first and the last window in turn.
func (s *Space) rotate(dst, vector []float32) {
	clear(dst[copy(dst, vector):])
	for round, signs := range s.signs {
		start := 0
		if round%2 == 1 {
			start = s.padded - s.window
		}
		s.kernels.Hadamard(dst[start:start+s.window], signs)
	}
}

// DotRows computes the inner products of a vector and some of the rows, by
// number; each is ref.Dot, bit for bit.
func (s *Space) DotRows(vector, rows []float32, slots []uint32, products []float32) {
	s.kernels.DotRows(vector, rows, slots, products)
}

// Query is a vector prepared for searches. Its memory is reused.
type Query struct {
	norm    float32 // length
	rotated []float32

	bytes  []int8  // rotated, in steps
	step   float32 // of bytes
	offset int32   // what the 128 in a row's bytes adds to a product

	coded  bool   // the next fields are set
	values []int8 // rotated, in 4 bits
	code   simd.CodeQuery
	shift  float32 // beside code.Scale
}

// A step of 4 bits, in standard deviations of a rotated query's dimension:
// nearly the best for a normal distribution.
const fourBitStep = 0.34

// Prepare makes q the query of a vector of the space's dimensions.
func (s *Space) Prepare(q *Query, vector []float32) {
	if len(q.rotated) != s.padded {
		q.rotated, q.bytes, q.values = make([]float32, s.padded), make([]int8, s.padded), make([]int8, s.padded)
	}
	s.rotate(q.rotated, vector)
	q.norm = float32(math.Sqrt(float64(s.kernels.Dot(q.rotated, q.rotated))))
	q.step = max(largest(q.rotated), tiny) / 127
	q.offset = 128 * roundTo(q.bytes, q.rotated, 1/q.step, -127, 127)
	q.coded = false
}

// encode prepares a query for estimates too, which few allowed rows don't need.
func (q *Query) encode() {
	if q.coded {
		return
	}
	root := float32(math.Sqrt(float64(len(q.rotated))))
	fine := max(fourBitStep*q.norm/root, tiny)
	sum := roundTo(q.values, q.rotated, 1/fine, -8, 7)
	q.code.Reset(q.values)
	unit := fine / root
	q.code.Scale, q.shift = 2*unit, -unit*float32(sum)
	q.coded = true
}

// rounding is how far the query is from what its bytes say.
func (q *Query) rounding() float32 {
	var square float32
	for i, v := range q.rotated {
		d := v - float32(q.bytes[i])*q.step
		square += d * d
	}
	return float32(math.Sqrt(float64(square)))
}

// tiny keeps a division by a zero vector's size finite.
const tiny = 1e-20

func largest(x []float32) (most float32) {
	for _, v := range x {
		most = max(most, math.Float32frombits(math.Float32bits(v)&^(1<<31)))
	}
	return most
}

// roundTo rounds scale·x into dst, within bounds, and returns the sum.
func roundTo(dst []int8, x []float32, scale float32, least, most int32) (sum int32) {
	for i, v := range x {
		n := min(max(nearest(v*scale), least), most)
		dst[i] = int8(n)
		sum += n
	}
	return sum
}

// nearest rounds a number of magnitude below 2²² to the nearest integer, ties to even.
func nearest(v float32) int32 {
	const magic = 3 << 22
	return int32(math.Float32bits(v+magic)) - int32(math.Float32bits(magic))
}
