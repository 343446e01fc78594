package ref

import "math"

// RotationStages lists the strides of the butterflies that Rotate applies to
// rows of depth elements: 16, 32, 64, 1 and 2, as far as they divide depth. A
// multiple of 128 thus falls into blocks of 2⁵ elements that mix.
func RotationStages(depth int) (strides []int) {
	for _, stride := range []int{16, 32, 64, 1, 2} {
		if depth%(2*stride) == 0 {
			strides = append(strides, stride)
		}
	}
	return strides
}

// Rotate multiplies x by a block Hadamard matrix H, which spreads a row's
// outliers over its block. HᵀH is 2ⁿ for n stages; H is its own transpose.
func Rotate(x []float32) {
	for _, stride := range RotationStages(len(x)) {
		for i := range x {
			if i&stride == 0 {
				a, b := x[i], x[i+stride]
				x[i], x[i+stride] = a+b, a-b
			}
		}
	}
}

// RotateWeights rotates a row of weights so that its product with a rotated x
// is that of the two unrotated: H·w/2ⁿ.
func RotateWeights(w []float32) {
	Rotate(w)
	scale := float32(1) / float32(int(1)<<len(RotationStages(len(w))))
	for i := range w {
		w[i] *= scale
	}
}

// tiniest bounds scales from below, so that a zero row has one.
const tiniest = 1e-20

// Quantize writes x to q in steps of the returned scale, 128 added: from 1 to
// 255, the largest magnitude of x being 127 steps.
func Quantize(q []byte, x []float32) (scale float32) {
	largest := largestMagnitude(x)
	inverse := 127 / largest
	for i, v := range x {
		q[i] = byte(128 + int(math.RoundToEven(float64(v*inverse))))
	}
	return largest * float32(1./127)
}

// QuantizeWeights does the same without the 128.
func QuantizeWeights(q []int8, w []float32) (scale float32) {
	largest := largestMagnitude(w)
	inverse := 127 / largest
	for i, v := range w {
		q[i] = int8(math.RoundToEven(float64(v * inverse)))
	}
	return largest * float32(1./127)
}

func largestMagnitude(x []float32) float32 {
	largest := float32(tiniest)
	for _, v := range x {
		largest = max(largest, float32(math.Abs(float64(v))))
	}
	return largest
}

// DotInt8 is the inner product of what Quantize and QuantizeWeights made, in
// steps of both scales.
func DotInt8(q []byte, w []int8) (sum int32) {
	w = w[:len(q)]
	for i, v := range q {
		sum += (int32(v) - 128) * int32(w[i])
	}
	return sum
}
