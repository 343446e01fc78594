package simd

import (
	"encoding/binary"
	"math"

	"sluice/kernels/ref"
)

const (
	simLanes   = 16 // query tokens that are scored at once
	simEntries = 16 // of a table: one for each of the signs that four dimensions can have
	simWord    = 4 * simEntries * simLanes
)

// SimQuery is the token vectors of a query, prepared for MaxSim: per block of
// simLanes tokens and four dimensions, the sums ±q0±q1±q2±q3 for all signs.
// With them a passage token takes an addition for every four dimensions, and
// serves simLanes query tokens by it.
type SimQuery struct {
	tokens, words int // words: 16-bit words of a code row's signs
	tables        []float32
}

// Reset prepares the tokens × dims elements of vectors, reusing q's memory.
func (q *SimQuery) Reset(vectors []float32, dims int) {
	q.tokens, q.words = len(vectors)/dims, (dims+15)/16
	size := q.blocks() * q.words * simWord
	if cap(q.tables) < size {
		q.tables = make([]float32, size)
	}
	q.tables = q.tables[:size]
	clear(q.tables)
	for token := range q.tokens {
		q.setToken(token, vectors[token*dims:(token+1)*dims])
	}
}

func (q *SimQuery) blocks() int { return (q.tokens + simLanes - 1) / simLanes }

func (q *SimQuery) block(b int) []float32 {
	size := q.words * simWord
	return q.tables[b*size : (b+1)*size]
}

// setToken fills one lane of a block's tables.
func (q *SimQuery) setToken(token int, v []float32) {
	tables := q.block(token / simLanes)[token%simLanes:]
	for d := 0; d < len(v); d += 4 {
		var four [4]float32
		copy(four[:], v[d:])
		table := tables[d/4*simEntries*simLanes:]
		for signs, sum := range signed(four) {
			table[signs*simLanes] = sum
		}
	}
}

// signed returns the sums of q with every choice of signs; bit i is set for +q[i].
func signed(q [4]float32) (sums [simEntries]float32) {
	sums[0], sums[1] = -q[0], q[0]
	for i := 1; i < len(q); i++ {
		for signs := range 1 << i {
			sums[signs|1<<i] = sums[signs] + q[i]
			sums[signs] -= q[i]
		}
	}
	return sums
}

// simFunc returns, lane by lane, the best estimate over all code rows, or −1.
// Every lane has four running sums, one for each table of a word, that are
// added pairwise at the end: all versions give the same bits.
type simFunc func(tables []float32, words int, codes []byte) lanes

type lanes [simLanes]float32

var worst = lanes{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}

// MaxSim computes what ref.MaxSim does, in float32.
func (s *Set) MaxSim(q *SimQuery, codes []byte) float32 {
	if q.tokens == 0 {
		return -1
	}
	var sum float64
	for b := range q.blocks() {
		best := s.maxSim(q.block(b), q.words, codes)
		for _, x := range best[:min(simLanes, q.tokens-b*simLanes)] {
			sum += float64(x)
		}
	}
	return float32(sum / float64(q.tokens))
}

// maxSimGo is the kernel for every CPU.
func maxSimGo(tables []float32, words int, codes []byte) lanes {
	best := worst
	for stride := ref.CodeBytes(16 * words); len(codes) >= stride; codes = codes[stride:] {
		var sums [4]lanes
		for w := range words {
			signs := binary.LittleEndian.Uint16(codes[2*w:])
			for i := range sums {
				at := (4*w+i)*simEntries + int(signs>>(4*i))%simEntries
				ref.Add(sums[i][:], tables[at*simLanes:][:simLanes])
			}
		}
		factor := math.Float32frombits(binary.LittleEndian.Uint32(codes[2*words:]))
		for l, x := range best {
			sum := (sums[0][l] + sums[1][l]) + (sums[2][l] + sums[3][l])
			if v := sum * factor; v > x {
				best[l] = v
			}
		}
	}
	return best
}
