package index

import (
	"fmt"
	"math"

	"sluice/kernels/ref"
)

// Unit returns the rows of dims elements, each scaled to length 1. It is
// an error that vectors is no whole number of rows, or that a row is not finite
// or of length 0.
func Unit(vectors []float32, dims int) ([]float32, error) {
	if dims < 1 || len(vectors)%dims != 0 {
		return nil, fmt.Errorf("%d numbers are no vectors of %d dimensions", len(vectors), dims)
	}
	unit := append(make([]float32, 0, len(vectors)), vectors...)
	for at := 0; at < len(unit); at += dims {
		length := ref.Normalize(unit[at : at+dims])
		if length == 0 || math.IsNaN(length) || math.IsInf(length, 0) {
			return nil, fmt.Errorf("vector %d of %d has a number that is not finite, or nothing but zeros", at/dims+1, len(unit)/dims)
		}
	}
	return unit, nil
}

// Mean returns the mean of the rows of dims elements, scaled to length 1: all
// zeros where they cancel out.
func Mean(vectors []float32, dims int) []float32 {
	sums := make([]float64, dims)
	for i, x := range vectors {
		sums[i%dims] += float64(x)
	}
	mean := make([]float32, dims)
	for i, sum := range sums {
		mean[i] = float32(sum / float64(max(1, len(vectors)/dims)))
	}
	ref.Normalize(mean)
	return mean
}
