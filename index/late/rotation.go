package late

import (
	"math"
	"math/bits"
	"math/rand/v2"
)

const rounds = 8

// rotation returns the dims × dims orthogonal matrix that token vectors are
// rotated by; docs/formats/codes.md states how it is made. It is part of the
// format. Its arithmetic has no step that some CPU would round otherwise.
func rotation(dims int) []float32 {
	m := make([]float64, dims*dims)
	for i := range dims {
		m[i*dims+i] = 1
	}
	random := rand.NewPCG(0x736c75696365, uint64(dims))
	for range rounds {
		r := newRound(random, dims)
		for i := range dims {
			r.apply(m[i*dims : (i+1)*dims])
		}
	}
	out := make([]float32, len(m))
	for i, x := range m {
		out[i] = float32(x)
	}
	return out
}

// round is one step of the rotation: a permutation, signs, and a Hadamard
// transform of the first elements, as many as are a power of two.
type round struct {
	from  []int // where each element comes from
	signs []float64
	moved []float64
}

func newRound(random *rand.PCG, dims int) round {
	r := round{make([]int, dims), make([]float64, dims), make([]float64, dims)}
	for i := range dims { // Fisher and Yates, inside out
		j := int(random.Uint64() % uint64(i+1))
		r.from[i] = r.from[j]
		r.from[j] = i
	}
	for i := range r.signs {
		r.signs[i] = 1 - 2*float64(random.Uint64()>>63)
	}
	return r
}

func (r round) apply(v []float64) {
	for i, from := range r.from {
		r.moved[i] = v[from] * r.signs[i]
	}
	copy(v, r.moved)
	hadamard(v[:1<<(bits.Len(uint(len(v)))-1)])
}

// hadamard replaces v by its orthonormal Walsh–Hadamard transform.
func hadamard(v []float64) {
	for half := 1; half < len(v); half *= 2 {
		for at := 0; at < len(v); at += 2 * half {
			for i := at; i < at+half; i++ {
				v[i], v[i+half] = v[i]+v[i+half], v[i]-v[i+half]
			}
		}
	}
	scale := 1 / math.Sqrt(float64(len(v)))
	for i := range v {
		v[i] *= scale
	}
}
