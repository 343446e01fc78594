package ref

// MeanPool sets dst to the mean of the rows of x, each of len(dst) elements.
// There is at least one row.
func MeanPool(dst, x []float32) {
	rows := len(x) / len(dst)
	for d := range dst {
		var sum float64
		for row := range rows {
			sum += float64(x[row*len(dst)+d])
		}
		dst[d] = float32(sum / float64(rows))
	}
}

// CLSPool sets dst to the first row of x.
func CLSPool(dst, x []float32) {
	copy(dst, x[:len(dst)])
}

// LastPool sets dst to the last row of x.
func LastPool(dst, x []float32) {
	copy(dst, x[len(x)-len(dst):])
}
