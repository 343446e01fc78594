package ref

import "math"

// Attention computes softmax(q·kᵀ/√d)·v per sequence and head. A row of qkv
// holds a token's query, key and value, heads × size each; the tokens of
// sequence s are rows offsets[s] to offsets[s+1], and attend to each other
// only. A row of dst has heads × size elements. (Vaswani et al.,
// arXiv:1706.03762.)
func Attention(dst, qkv []float32, offsets []int, heads, size int) {
	for s := range len(offsets) - 1 {
		for head := range heads {
			attend(dst, qkv, offsets[s], offsets[s+1], head*size, heads*size, size)
		}
	}
}

// attend handles one head of one sequence; the head's part of each row begins
// at column.
func attend(dst, qkv []float32, from, to, column, hidden, size int) {
	scores := make([]float32, to-from)
	part := func(token, which int) []float32 {
		at := token*3*hidden + which*hidden + column
		return qkv[at : at+size]
	}
	for i := from; i < to; i++ {
		for j := from; j < to; j++ {
			scores[j-from] = float32(Dot(part(i, 0), part(j, 1)))
		}
		Softmax(scores, float32(1/math.Sqrt(float64(size))))
		out := dst[i*hidden+column:][:size]
		for d := range out {
			var sum float64
			for j := from; j < to; j++ {
				sum += float64(scores[j-from]) * float64(part(j, 2)[d])
			}
			out[d] = float32(sum)
		}
	}
}
