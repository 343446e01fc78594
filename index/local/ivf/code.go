package ivf

import (
	"encoding/binary"
	"math"

	"sluice/kernels/ref"
)

// encode writes the code of a rotated vector around a rotated centre into one
// lane of a block. With r = x − c, ō its signs over √d and the factor
// f = ‖r‖/⟨ō, r/‖r‖⟩, ⟨q,x⟩ is estimated by ⟨q,c⟩ + f·⟨ō,q⟩ + (⟨c,r⟩ − f·⟨ō,c⟩),
// whose last part, the offset, does not depend on q.
func encode(block []byte, lane int, x, c []float32) {
	var square, absolute, along, signed float32
	for w := 0; w < len(x)/32; w++ {
		var signs uint32
		xs, cs := x[32*w:][:32], c[32*w:][:32]
		for i, v := range xs {
			r := v - cs[i]
			sign := math.Float32bits(r) & (1 << 31)
			signs |= (sign>>31 ^ 1) << i
			square += r * r
			absolute += math.Float32frombits(math.Float32bits(r) &^ (1 << 31))
			along += cs[i] * r
			signed += math.Float32frombits(math.Float32bits(cs[i]) ^ sign)
		}
		binary.LittleEndian.PutUint32(block[4*(w*ref.CodeLanes+lane):], signs)
	}
	root := float32(math.Sqrt(float64(len(x))))
	factor := square * root / max(absolute, tiny)
	setFactors(block, lane, len(x)/32, along-factor*signed/root, factor)
}

func setFactors(block []byte, lane, words int, offset, factor float32) {
	binary.LittleEndian.PutUint32(block[4*(words*ref.CodeLanes+lane):], math.Float32bits(offset))
	binary.LittleEndian.PutUint32(block[4*((words+1)*ref.CodeLanes+lane):], math.Float32bits(factor))
}

func addOffset(block []byte, lane, words int, more float32) {
	at := block[4*(words*ref.CodeLanes+lane):]
	binary.LittleEndian.PutUint32(at, math.Float32bits(math.Float32frombits(binary.LittleEndian.Uint32(at))+more))
}

// impossible is an estimate that no threshold lets pass: an empty lane's.
const impossible = -math.MaxFloat32

// toBytes writes x in steps, 128 added, and returns how far that is from x, squared.
func toBytes(dst []byte, x []float32, step float32) (distance float64) {
	inverse := 1 / step
	var sum float32
	for i, v := range x {
		n := min(max(nearest(v*inverse), -127), 127)
		dst[i] = byte(n + 128)
		d := v - float32(n)*step
		sum += d * d
	}
	return float64(sum)
}
