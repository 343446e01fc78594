package ivf

import "math"

// Check compares the index with its vectors: each row's bytes may be no farther
// from it than the header says of the worst, and each row is in one list or two.
// The signs of the lists' codes are left to the checksums.
func (x *Index) Check(vector func(row int) []float32, report func(row int, fault string)) {
	rotated := make([]float32, x.space.padded)
	within := float64(x.worst)*1.001 + 1e-6 // another processor may round otherwise
	for row := range x.rows {
		x.space.rotate(rotated, vector(row))
		if !(x.distance(row, rotated) <= within) {
			report(row, "its vector codes are not those of its vector")
		}
	}
	if x.lists == 0 {
		return
	}
	for row, n := range x.occurrences() {
		if n < 1 || n > 2 {
			report(row, "it is in no list of vector codes, or in too many")
		}
	}
}

// distance is that between a rotated row and its bytes.
func (x *Index) distance(row int, rotated []float32) float64 {
	var square float64
	for i, b := range x.bytes[row*x.space.padded:][:x.space.padded] {
		d := float64(rotated[i]) - float64(int(b)-128)*float64(x.step)
		square += d * d
	}
	return math.Sqrt(square)
}

// occurrences says in how many lists each row is.
func (x *Index) occurrences() []uint8 {
	n := make([]uint8, x.rows)
	for _, row := range x.ids {
		if row != none && n[row] < math.MaxUint8 {
			n[row]++
		}
	}
	return n
}
