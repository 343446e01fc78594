package simd

import (
	"fmt"
	"testing"
	"time"
	"unsafe"
)

func best(f func()) float64 {
	f()
	m := 1e9
	t0 := time.Now()
	for i := 0; i < 400 || time.Since(t0) < 60*time.Millisecond; i++ {
		s := time.Now()
		f()
		m = min(m, time.Since(s).Seconds())
	}
	return m
}
func TestBestDot(t *testing.T) {
	Supported()
	for _, sh := range [][3]int{{32, 6, 1}, {64, 6, 1}, {96, 6, 1}, {256, 6, 1}, {32, 6, 8}, {32, 6, 32}, {96, 6, 32}, {32, 24, 1}, {32, 24, 4}, {32, 24, 12}, {96, 24, 1}, {96, 24, 4}, {96, 24, 12}} {
		rows, k, panels := sh[0], sh[1]*16, sh[2]
		a := alignedBytes(rows * k * 4)
		w := alignedBytes(panels * k * 128)
		c := alignedBytes(rows * 128)
		run := func() {
			p := dotArgs{c: unsafe.Pointer(&c[0]), ldc: 128, a: unsafe.Pointer(&a[0]), lda: k * 4, b: unsafe.Pointer(&w[0]), units: k, rows: rows, panel: 1}
			for range panels {
				int8AMX(&p)
				p.b = unsafe.Add(p.b, k*128)
			}
		}
		ops := float64(rows * panels * 32 * k * 4 * 2)
		s := best(run)
		fmt.Printf("dot %v %.0f GOP/s %.1f ns/step\n", sh, ops/s/1e9, s*1e9/float64(rows/32*sh[1]*panels))
	}
	for _, s := range Supported()[:2] {
	for _, number := range []Number{Int8, BF16} {
		for _, sh := range [][3]int{{32, 384, 1536}, {96, 384, 1536}, {256, 384, 1536}, {32, 1536, 384}, {96, 1536, 384}, {256, 1536, 384}} {
			rows, depth, columns := sh[0], sh[1], sh[2]
			m := pack(number, normals(1, columns*depth), normals(2, columns), depth, false)
			var a Rows
			a.Reset(number, rows, depth)
			s.SetRows(&a, normals(3, rows*depth), 0, rows, false, make([]float32, depth))
			out := make([]float32, rows*columns)
			var scratch Scratch
			x := best(func() { s.Product(out, &a, m, 0, rows, false, &scratch) })
			y := best(func() { s.Product(out, &a, m, 0, rows, true, &scratch) })
			ops := float64(rows*depth*columns*2) / 1e9
			fmt.Printf("product %d %v %.0f GOP/s, gelu %.0f\n", number, sh, ops/x, ops/y)
		}
	}}
}
