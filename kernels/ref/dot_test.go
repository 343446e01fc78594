package ref

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestDot(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for n := range 70 {
		a, b, exact, scale := make([]float32, n), make([]float32, n), 0.0, 0.0
		for i := range a {
			a[i], b[i] = float32(rng.NormFloat64()), float32(rng.NormFloat64())
			product := float64(a[i]) * float64(b[i])
			exact += product
			scale += math.Abs(product)
		}
		got := Dot(a, b)
		if math.Abs(float64(got)-exact) > 1e-6*scale {
			t.Errorf("%d dimensions: %v, exactly %v", n, got, exact)
		}
		if other := Dot(b, a); math.Float32bits(other) != math.Float32bits(got) {
			t.Errorf("%d dimensions: %v the other way round, %v", n, other, got)
		}
	}
}

// TestDotOrder pins the order of additions: in another order the sum has other bits.
func TestDotOrder(t *testing.T) {
	ones := make([]float32, 19)
	for i := range ones {
		ones[i] = 1
	}
	v := []float32{1e8, 3, -1e8, 5, 0.25, 7, 1, 1, 1, 1, 1, 1, 1, 1, 1e8, -1e8, 0.5, 0.25, 9}
	var lanes [8]float32
	for i := range 16 {
		lanes[i%8] += v[i]
	}
	want := ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]))
	for _, x := range v[16:] {
		want += x
	}
	if got := Dot(v, ones); math.Float32bits(got) != math.Float32bits(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func BenchmarkDot384(b *testing.B) {
	x, y := make([]float32, 384), make([]float32, 384)
	for i := range x {
		x[i], y[i] = float32(i), float32(i)
	}
	b.SetBytes(384 * 4)
	for b.Loop() {
		Dot(x, y)
	}
}
