package simd

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/kernels/ref"
)

func TestDotIsTheOraclesBitForBit(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		rapid.Check(t, func(rt *rapid.T) {
			n := rapid.IntRange(0, 200).Draw(rt, "dimensions")
			seed := rapid.Uint64().Draw(rt, "seed")
			a, b := fenced[float32](t, n), fenced[float32](t, n)
			copy(a, normals(seed, n))
			copy(b, normals(seed+1, n))
			require.Equal(rt, math.Float32bits(ref.Dot(a, b)), math.Float32bits(s.Dot(a, b)))
		})
	})
}

func TestDotRowsIsDotBitForBit(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		rapid.Check(t, func(rt *rapid.T) {
			dims := rapid.IntRange(1, 70).Draw(rt, "dimensions")
			count := rapid.IntRange(0, 14).Draw(rt, "slots")
			seed := rapid.Uint64().Draw(rt, "seed")
			const rows = 9
			data, query := fenced[float32](t, rows*dims), fenced[float32](t, dims)
			copy(data, normals(seed, rows*dims))
			copy(query, normals(seed+1, dims))
			slots, products := fenced[uint32](t, count), fenced[float32](t, count)
			for i := range slots {
				slots[i] = uint32(seed>>i) % rows
			}
			s.DotRows(query, data, slots, products)
			for i, slot := range slots {
				want := ref.Dot(query, data[int(slot)*dims:][:dims])
				require.Equal(rt, math.Float32bits(want), math.Float32bits(products[i]), "row %d", slot)
			}
		})
		require.Panics(t, func() { s.DotRows(make([]float32, 8), make([]float32, 16), []uint32{2}, make([]float32, 1)) })
	})
}

func TestHadamardIsTheOraclesBitForBit(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		for n := 1; n <= 2048; n *= 2 {
			signs := make([]float32, n)
			for i := range signs {
				signs[i] = 1 - 2*float32(i*i%7%2)
			}
			want, got := normals(uint64(n), n), fenced[float32](t, n)
			copy(got, want)
			length := ref.Dot(want, want)
			ref.Hadamard(want, signs)
			s.Hadamard(got, signs)
			require.Equal(t, want, slices.Clone(got), "n = %d", n)
			require.InEpsilon(t, length, ref.Dot(got, got), 1e-5, "a rotation keeps lengths")
		}
	})
}

func fillRandomly(r *rand.Rand, b []byte) {
	for i := range b {
		b[i] = byte(r.Uint32())
	}
}

func TestDotBytesIsExact(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		rapid.Check(t, func(rt *rapid.T) {
			size := 64 * rapid.IntRange(1, 9).Draw(rt, "dimensions/64")
			count := rapid.IntRange(0, 30).Draw(rt, "slots")
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
			const rows = 20
			data, query := fenced[byte](t, rows*size), fenced[int8](t, size)
			fillRandomly(r, data)
			for d := range query {
				query[d] = int8(r.IntN(255) - 127)
			}
			slots, products := fenced[uint32](t, count), fenced[int32](t, count)
			for i := range slots {
				slots[i] = uint32(r.IntN(rows))
			}
			s.DotBytes(query, data, slots, products)
			for i, slot := range slots {
				want := int32(0)
				for d, q := range query {
					want += int32(q) * int32(data[int(slot)*size+d])
				}
				require.Equal(rt, want, products[i])
			}
		})
	})
}

func TestDotBytesRefusesForeignRows(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		require.Panics(t, func() { s.DotBytes(make([]int8, 64), make([]byte, 128), []uint32{2}, make([]int32, 1)) })
	})
}

// codeBlocks are random signs with random offsets and factors.
func codeBlocks(r *rand.Rand, blocks []byte, dims int) {
	fillRandomly(r, blocks)
	size := ref.CodeBlock(dims)
	for at := size - 8*ref.CodeLanes; at < len(blocks); at += size {
		for i := range 2 * ref.CodeLanes {
			binary.LittleEndian.PutUint32(blocks[at+4*i:], math.Float32bits(float32(r.NormFloat64())))
		}
	}
}

func fourBits(r *rand.Rand, dims int) []int8 {
	values := make([]int8, dims)
	for i := range values {
		values[i] = int8(r.IntN(16) - 8)
	}
	return values
}

func TestScanCodesIsTheOracles(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		var q CodeQuery
		rapid.Check(t, func(rt *rapid.T) {
			dims := 64 * rapid.IntRange(1, 9).Draw(rt, "dimensions/64")
			count := rapid.IntRange(0, 9).Draw(rt, "blocks")
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 2))
			size := ref.CodeBlock(dims)
			blocks := fenced[byte](t, count*size)
			codeBlocks(r, blocks, dims)
			values := fourBits(r, dims)
			q.Reset(values)
			q.Scale = r.Float32()
			base, shift, threshold := float32(r.NormFloat64()), float32(r.NormFloat64()), float32(10*r.NormFloat64())
			estimates, masks := fenced[float32](t, count*ref.CodeLanes), fenced[uint16](t, count)
			s.ScanCodes(&q, blocks, blocks[:count/2*size], base, shift, threshold, estimates, masks)
			for b, mask := range masks {
				want := ref.ScanBlock(values, blocks[b*size:][:size], q.Scale, shift, base)
				for lane, e := range estimates[b*ref.CodeLanes:][:ref.CodeLanes] {
					require.InDelta(rt, want[lane], e, 1e-5*float64(dims))
					require.Equal(rt, e > threshold, mask>>lane&1 == 1)
				}
			}
		})
	})
}

func TestAbove(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		rapid.Check(t, func(rt *rapid.T) {
			n := rapid.IntRange(0, 100).Draw(rt, "values")
			values, indices := fenced[float32](t, n), fenced[uint32](t, n)
			copy(values, normals(rapid.Uint64().Draw(rt, "seed"), n))
			threshold := float32(0)
			if n > 0 {
				threshold = values[n/2]
			}
			var want []uint32
			for i, v := range values {
				if v >= threshold {
					want = append(want, uint32(i))
				}
			}
			require.Equal(rt, want, append([]uint32(nil), indices[:s.Above(values, threshold, indices)]...))
		})
	})
}

func TestSearchKernelsDoNotAllocate(t *testing.T) {
	const dims = 384
	r := rand.New(rand.NewPCG(1, 1))
	blocks, rows, values := make([]byte, 4*ref.CodeBlock(dims)), make([]byte, 4*dims), fourBits(r, dims)
	codeBlocks(r, blocks, dims)
	x, y := normals(1, 256), normals(2, 256)
	slots, products := []uint32{3, 1, 2}, make([]int32, 3)
	estimates, masks, indices := make([]float32, 64), make([]uint16, 4), make([]uint32, 64)
	first, floats := make([]uint32, 1), make([]float32, 1)
	everySet(t, func(t *testing.T, s *Set) {
		var q CodeQuery
		q.Reset(values)
		require.Zero(t, testing.AllocsPerRun(10, func() {
			q.Reset(values)
			s.ScanCodes(&q, blocks, nil, 0, 0, 0, estimates, masks)
			s.DotBytes(values, rows, slots, products)
			s.Above(estimates, 0, indices)
			s.Hadamard(x, y)
			s.Dot(x, y)
			s.DotRows(x, y, first, floats)
			s.Fetch(rows)
		}))
	})
}

func BenchmarkSearch(b *testing.B) {
	const dims = 384
	r := rand.New(rand.NewPCG(1, 1))
	blocks, rows, values := make([]byte, 64*ref.CodeBlock(dims)), make([]byte, 64*dims), fourBits(r, dims)
	codeBlocks(r, blocks, dims)
	x, y := normals(1, dims), normals(2, dims)
	slots, products := make([]uint32, 64), make([]int32, 64)
	for i := range slots {
		slots[i] = uint32(i * 37 % 64)
	}
	estimates, masks, indices := make([]float32, 1024), make([]uint16, 64), make([]uint32, 1024)
	vectors := normals(3, 64*dims)
	var q CodeQuery
	q.Reset(values)
	for _, s := range Supported() {
		for name, run := range map[string]func(){
			"scan-64":     func() { s.ScanCodes(&q, blocks, nil, 0, 0, 0, estimates, masks) },
			"bytes-64":    func() { s.DotBytes(values, rows, slots, products) },
			"above-1024":  func() { s.Above(estimates, 100, indices) },
			"hadamard":    func() { s.Hadamard(x[:256], y) },
			"rows-64":     func() { s.DotRows(x, vectors, slots, estimates) },
			"dot":         func() { s.Dot(x, y) },
			"query-reset": func() { q.Reset(values) },
		} {
			b.Run(fmt.Sprintf("%s/%s", name, s.Level), func(b *testing.B) {
				for b.Loop() {
					run()
				}
			})
		}
	}
}

// BenchmarkScanFromMemory scans lists of 256 rows in random order, each for one
// query or for two: what a query costs once the codes do not fit the caches, and
// what queries that shared a pass over them would spare.
func BenchmarkScanFromMemory(b *testing.B) {
	const dims, list, part = 384, 16, 8
	r := rand.New(rand.NewPCG(1, 1))
	var q CodeQuery
	q.Reset(fourBits(r, dims))
	estimates, masks := make([]float32, part*ref.CodeLanes), make([]uint16, part)
	size, s := ref.CodeBlock(dims), Best()
	for _, megabytes := range []int{1, 34, 112, 300} {
		codes := make([]byte, megabytes<<20/size*size)
		codeBlocks(r, codes[:list*size], dims)
		for at := list * size; at < len(codes); at += copy(codes[at:], codes[:list*size]) {
		}
		of := func(at int) []byte { return codes[at*size:][:part*size] }
		for _, queries := range []int{1, 2} {
			b.Run(fmt.Sprintf("%dMB/queries-%d", megabytes, queries), func(b *testing.B) {
				next := 0
				for b.Loop() {
					at := next
					next = r.IntN(len(codes)/size - list)
					for block := 0; block < list; block += part {
						s.ScanCodes(&q, of(at+block), of(next+block), 0, 0, 1e9, estimates, masks)
					}
					for block := 0; block < list*(queries-1); block += part {
						s.ScanCodes(&q, of(at+block), nil, 0, 0, 1e9, estimates, masks)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*queries*list*ref.CodeLanes), "ns/row")
			})
		}
	}
}
