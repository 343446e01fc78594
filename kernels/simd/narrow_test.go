package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"sluice/kernels/ref"
)

func fencedCopy[T any](t testing.TB, x []T) []T {
	c := fenced[T](t, len(x))
	copy(c, x)
	return c
}

// dotCase makes random operands, every buffer ending at a fence.
func dotCase(t *testing.T, seed uint64, rows, units, panels int, random func(r *rand.Rand) uint32) dotArgs {
	r := rand.New(rand.NewPCG(seed, 3))
	touched := roundUp(rows, 16)
	a, b := fenced[uint32](t, touched*units), fenced[uint32](t, panels*units*panelColumns)
	for i := range a {
		a[i] = random(r)
	}
	for i := range b {
		b[i] = random(r)
	}
	c := fenced[uint32](t, touched*panels*panelColumns)
	return dotArgs{c: unsafe.Pointer(&c[0]), ldc: panels * panelBytes, a: unsafe.Pointer(&a[0]), lda: units * unitBytes,
		b: unsafe.Pointer(&b[0]), units: units, rows: rows, panel: panels}
}

func TestInt8DotIsExact(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		for rows := 1; rows <= 50; rows++ {
			units, panels := 16*(1+rows%3), 1+rows%2
			p := dotCase(t, uint64(rows), rows, units, panels, (*rand.Rand).Uint32)
			s.narrow.int8Dot(&p)
			got := append([]int32(nil), at[int32](p.c, 0, rows*panels*panelColumns)...)
			int8DotGo(&p)
			require.Equal(t, at[int32](p.c, 0, len(got)), got, "%d rows", rows)
		}
	})
}

// bf16Pair is two normal numbers, outliers, subnormals and zeros among them.
func bf16Pair(r *rand.Rand) uint32 {
	one := func() uint32 {
		x := float32(r.NormFloat64())
		switch r.IntN(30) {
		case 0:
			x *= 20
		case 1:
			x *= 1e-39
		case 2:
			x = 0
		}
		return uint32(ref.BF16(x))
	}
	return one() | one()<<16
}

func TestBF16Dot(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		for rows := 1; rows <= 50; rows++ {
			units, panels := 16*(1+rows%3), 1+rows%2
			p := dotCase(t, uint64(rows), rows, units, panels, bf16Pair)
			s.narrow.bf16Dot(&p)
			got := append([]float32(nil), at[float32](p.c, 0, rows*panels*panelColumns)...)
			bf16DotGo(&p)
			for i, want := range at[float32](p.c, 0, len(got)) {
				require.InDelta(t, want, got[i], 2e-3, "%d rows, sum %d", rows, i)
			}
		}
	})
}

// The bits of a row's sums do not depend on how many rows there are.
func TestDotRowsAreIndependent(t *testing.T) {
	const units, panels, rows = 48, 2, 29
	everySet(t, func(t *testing.T, s *Set) {
		p := dotCase(t, 5, rows+16, units, panels, bf16Pair)
		p.rows = rows
		s.narrow.bf16Dot(&p)
		together := append([]float32(nil), at[float32](p.c, 0, rows*panels*panelColumns)...)
		for first := range rows {
			q := p
			q.a, q.rows = unsafe.Add(p.a, first*p.lda), 1+first%7
			q.rows = min(q.rows, rows-first)
			s.narrow.bf16Dot(&q)
			n := q.rows * panels * panelColumns
			require.Equal(t, together[first*panels*panelColumns:][:n], at[float32](q.c, 0, n), "rows from %d", first)
		}
	})
}

func TestQuantizeIsTheReferences(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		for _, depth := range []int{1, 7, 32, 48, 100, 128, 384, 768, 1536} {
			for _, rotated := range []bool{false, true} {
				const rows = 6
				x := normals(uint64(depth), rows*depth)
				clear(x[:depth])
				for i := range x[depth : 2*depth] {
					x[depth+i] *= 1e-39
				}
				x[2*depth] = 1e30
				var got Rows
				got.Reset(Int8, rows, depth)
				s.SetRows(&got, fencedCopy(t, x), 0, rows, rotated, fenced[float32](t, depth))
				for row := range rows {
					values, want := append([]float32(nil), x[row*depth:][:depth]...), make([]byte, depth)
					if rotated {
						ref.Rotate(values)
					}
					scale := ref.Quantize(want, values)
					require.Equal(t, want, got.row(row)[:depth], "depth %d, row %d", depth, row)
					require.Equal(t, scale, got.scale[row], "depth %d, row %d", depth, row)
				}
			}
		}
	})
}

func TestRoundRows(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		for _, depth := range []int{1, 32, 33, 384} {
			x := normals(9, 5*depth)
			for i := 0; i < len(x); i += 3 {
				x[i] *= 1e-39
			}
			var got Rows
			got.Reset(BF16, 5, depth)
			s.SetRows(&got, fencedCopy(t, x), 1, 5, false, nil)
			for i, v := range x[depth:] {
				number := got.BF16(1+i/depth, 2+i/depth)[i%depth]
				if ref.BF16(v)&0x7fff == 0 { // subnormal: CPUs may keep them where instructions are composed
					require.InDelta(t, 0, ref.FromBF16(number), 1.2e-38)
					continue
				}
				require.Equal(t, ref.BF16(v), number, "%v", v)
			}
		}
	})
}

func TestAddNorm(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		for _, columns := range []int{1, 48, 64, 384, 1024} {
			const rows = 5
			x, y := normals(1, rows*columns), normals(2, rows*columns)
			gain, bias := normals(3, columns), normals(4, columns)
			clear(x[:columns])
			clear(y[:columns])
			want := append([]float32(nil), x...)
			ref.Add(want, y)
			ref.LayerNorm(want, gain, bias, 1e-12)
			got := fencedCopy(t, x)
			s.AddNorm(got, fencedCopy(t, y), fencedCopy(t, gain), fencedCopy(t, bias), 1e-12)
			for i := range want {
				require.InDelta(t, want[i], got[i], 1e-5*(1+math.Abs(float64(want[i]))), "%d columns, element %d", columns, i)
			}
		}
	})
}

func TestNorm(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		for _, columns := range []int{1, 48, 64, 384, 1024} {
			x, gain, bias := normals(1, 5*columns), normals(3, columns), normals(4, columns)
			clear(x[:columns])
			want := append([]float32(nil), x...)
			ref.LayerNorm(want, gain, bias, 1e-12)
			got := fencedCopy(t, x)
			s.Norm(got, fencedCopy(t, gain), fencedCopy(t, bias), 1e-12)
			for i := range want {
				require.InDelta(t, want[i], got[i], 1e-5*(1+math.Abs(float64(want[i]))), "%d columns, element %d", columns, i)
			}
		}
	})
}

func TestAdd(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		for n := range 70 {
			x, y := normals(1, n), normals(2, n)
			want := append([]float32{}, y...)
			ref.Add(want, x)
			got := fencedCopy(t, y)
			s.Add(got, fencedCopy(t, x))
			require.Equal(t, want, append([]float32{}, got...))
		}
	})
}

// product computes x·wᵀ + bias with ref's arithmetic.
func refProduct(number Number, x, w, bias []float32, depth int, rotated bool) []float32 {
	rows, columns := len(x)/depth, len(bias)
	y := make([]float32, rows*columns)
	for row := range rows {
		a := append([]float32(nil), x[row*depth:][:depth]...)
		for column := range columns {
			b := append([]float32(nil), w[column*depth:][:depth]...)
			y[row*columns+column] = bias[column] + refDot(number, append([]float32(nil), a...), b, rotated)
		}
	}
	return y
}

func refDot(number Number, a, b []float32, rotated bool) float32 {
	if number == BF16 {
		p, q := make([]uint16, len(a)), make([]uint16, len(b))
		roundGo(p, a)
		roundGo(q, b)
		return float32(ref.DotBF16(p, q))
	}
	if rotated {
		ref.Rotate(a)
		ref.RotateWeights(b)
	}
	p, q := make([]byte, len(a)), make([]int8, len(b))
	scale := ref.Quantize(p, a) * ref.QuantizeWeights(q, b)
	return float32(ref.DotInt8(p, q)) * scale
}

func pack(number Number, w, bias []float32, depth int, rotated bool) *Weights {
	if number == BF16 {
		return PackBF16(w, bias, depth)
	}
	return PackInt8(w, bias, depth, rotated)
}

func TestProduct(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		for _, number := range []Number{Int8, BF16} {
			for i, shape := range [][3]int{{1, 1, 1}, {5, 48, 40}, {17, 128, 64}, {100, 384, 33}, {13, 130, 97}, {33, 256, 32}} {
				rows, depth, columns := shape[0], shape[1], shape[2]
				t.Run(fmt.Sprintf("%d/%v", number, shape), func(t *testing.T) {
					checkProduct(t, s, number, uint64(i), rows, depth, columns)
				})
			}
		}
	})
}

func checkProduct(t *testing.T, s *Set, number Number, seed uint64, rows, depth, columns int) {
	x, w, bias := normals(seed, rows*depth), normals(seed+1, columns*depth), normals(seed+2, columns)
	rotated := seed%2 == 0
	want := refProduct(number, x, w, bias, depth, rotated)
	m := pack(number, w, bias, depth, rotated)
	var a, out Rows
	a.Reset(number, rows, depth)
	out.Reset(BF16, rows, columns)
	s.SetRows(&a, x, 0, rows, rotated, make([]float32, depth))
	for _, activate := range []bool{false, true} {
		expected := append([]float32(nil), want...)
		if activate {
			ref.GELU(expected)
		}
		got := fenced[float32](t, rows*columns)
		var scratch Scratch
		s.Product(got, &a, m, 0, rows, activate, &scratch)
		s.ProductBF16(&out, 0, &a, m, 0, rows, activate, &scratch)
		for i, v := range expected {
			near := 1e-4 + 1e-5*math.Abs(float64(want[i])) + 1e-5*float64(depth)
			require.InDelta(t, v, got[i], near, "element %d, activated %t", i, activate)
			rounded := ref.FromBF16(out.BF16(i/columns, i/columns+1)[i%columns])
			require.InDelta(t, v, rounded, near+math.Abs(float64(v))/200, "element %d, activated %t", i, activate)
		}
	}
}

// Contract: a row's bits depend on nothing but the row.
func TestProductRowsAreIndependent(t *testing.T) {
	const rows, depth, columns = 131, 384, 96
	everySet(t, func(t *testing.T, s *Set) {
		for _, number := range []Number{Int8, BF16} {
			x := normals(3, rows*depth)
			m := pack(number, normals(1, columns*depth), normals(2, columns), depth, true)
			var a Rows
			a.Reset(number, rows, depth)
			s.SetRows(&a, x, 0, rows, true, make([]float32, depth))
			together, alone := make([]float32, rows*columns), make([]float32, rows*columns)
			var scratch Scratch
			s.Product(together, &a, m, 0, rows, true, &scratch)
			for from := 0; from < rows; {
				to := min(rows, from+1+from%19)
				s.SetRows(&a, x, from, to, true, make([]float32, depth))
				s.Product(alone[from*columns:], &a, m, from, to, true, &scratch)
				from = to
			}
			require.Equal(t, together, alone)
		}
	})
}

func TestAttend(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		for _, shape := range []struct{ heads, size int }{{2, 8}, {3, 32}, {2, 64}, {2, 33}} {
			checkAttention(t, s, shape.heads, shape.size, []int{0, 1, 48, 97, 230, 294})
		}
	})
}

func checkAttention(t *testing.T, s *Set, heads, size int, offsets []int) {
	hidden, tokens := heads*size, offsets[len(offsets)-1]
	rounded, x := roundedNormals(tokens * 3 * hidden)
	want := make([]float32, tokens*hidden)
	ref.Attention(want, rounded, offsets, heads, size)
	var qkv, narrow Rows
	qkv.Reset(BF16, tokens, 3*hidden)
	narrow.Reset(BF16, tokens, hidden)
	s.SetRows(&qkv, x, 0, tokens, false, nil)
	got := fenced[float32](t, tokens*hidden)
	var scratch AttentionScratch
	for i := range len(offsets) - 1 {
		for head := range heads {
			h := Head{From: offsets[i], To: offsets[i+1], Column: head * size, Size: size, Hidden: hidden}
			middle := (h.From + h.To) / 2
			s.Attend(got, &qkv, &h, h.From, middle, &scratch)
			s.Attend(got, &qkv, &h, middle, h.To, &scratch)
			s.AttendBF16(&narrow, &qkv, &h, h.From, h.To, &scratch)
		}
	}
	for i, v := range want {
		require.InDelta(t, v, got[i], 2e-2, "size %d, element %d", size, i)
		require.InDelta(t, got[i], ref.FromBF16(narrow.BF16(i/hidden, i/hidden+1)[i%hidden]), 1e-6+math.Abs(float64(got[i]))/200)
	}
}

func roundedNormals(n int) (rounded, x []float32) {
	r := rand.New(rand.NewPCG(8, 8))
	rounded, x = make([]float32, n), make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
		rounded[i] = ref.FromBF16(ref.BF16(x[i]))
	}
	return rounded, x
}

// Scores far apart, huge or equal: no overflow, no NaN, nothing beyond the keys.
func TestExponentials(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		for keys := 1; keys < 100; keys++ {
			const rows = 3
			padded := roundUp(keys, panelColumns)
			scores, p, inverse := fenced[float32](t, rows*padded), fenced[uint16](t, rows*padded), fenced[float32](t, rows)
			copy(scores, normals(uint64(keys), len(scores)))
			for i := range keys {
				scores[padded+i] = float32(i%2)*2e38 - 1e38
				scores[2*padded+i] = -3e30
			}
			s.narrow.exponentials(&exponentialArgs{p: &p[0], ldp: padded * 2, s: &scores[0], lds: padded * 4, keys: keys, rows: rows, inverse: &inverse[0], scale: 0.3})
			for row := range rows {
				want := make([]uint16, padded)
				sum := exponentialRow(want, scores[row*padded:][:keys], 0.3)
				require.InEpsilon(t, sum, inverse[row], 1e-5)
				for i := range padded {
					require.InDelta(t, ref.FromBF16(want[i]), ref.FromBF16(p[row*padded+i]), 4e-3, "row %d, key %d of %d", row, i, keys)
				}
			}
		}
	})
}

func TestPacksAreTheReferences(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		for rows := 1; rows < 70; rows++ {
			for _, columns := range []int{32, 64, 96} {
				keys := roundUp(rows, panelColumns)
				src := fenced[uint16](t, keys*columns)
				for i := range src {
					src[i] = uint16(i * 7)
				}
				got, want := fenced[uint16](t, keys*columns), make([]uint16, keys*columns)
				p := packArgs{dst: &got[0], src: &src[0], ld: columns * 2, rows: rows, columns: columns}
				q := p
				q.dst = &want[0]
				s.narrow.packValues(&p)
				packValuesGo(&q)
				require.Equal(t, want, append([]uint16{}, got...), "values of %d rows", rows)
				s.narrow.packKeys(&p)
				q.rows = keys
				packKeysGo(&q)
				for i := range want { // what lies in the panels beyond the keys is never used
					if key := i/(panelColumns*columns)*panelColumns + i/2%panelColumns; key < rows {
						require.Equal(t, want[i], got[i], "keys of %d rows, number %d", rows, i)
					}
				}
			}
		}
	})
}

func BenchmarkProduct(b *testing.B) {
	for _, s := range Supported()[:1] {
		for _, number := range []Number{Int8, BF16} {
			for _, shape := range [][3]int{{32, 384, 1536}, {96, 384, 1536}, {256, 384, 1536}, {32, 1536, 384}, {96, 1536, 384}, {256, 1536, 384}} {
				b.Run(fmt.Sprintf("%s/%d/%d×%d×%d", s.Level, number, shape[0], shape[1], shape[2]), func(b *testing.B) {
					benchmarkProduct(b, s, number, shape[0], shape[1], shape[2])
				})
			}
		}
	}
}

func benchmarkProduct(b *testing.B, s *Set, number Number, rows, depth, columns int) {
	m := pack(number, normals(1, columns*depth), normals(2, columns), depth, false)
	var a Rows
	a.Reset(number, rows, depth)
	s.SetRows(&a, normals(3, rows*depth), 0, rows, false, make([]float32, depth))
	out := make([]float32, rows*columns)
	var scratch Scratch
	for b.Loop() {
		s.Product(out, &a, m, 0, rows, false, &scratch)
	}
	b.ReportMetric(2*float64(rows*depth*columns*b.N)/b.Elapsed().Seconds()/1e9, "GOP/s")
}
