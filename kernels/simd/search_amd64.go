package simd

import (
	"unsafe"

	"golang.org/x/sys/cpu"

	"sluice/kernels/ref"
)

// search512 needs AVX-512 with VNNI and VPOPCNTDQ.
func search512() searchSet {
	if !cpu.X86.HasAVX512VPOPCNTDQ || !hasVNNI() {
		return search256()
	}
	return searchSet{dot: dot256, dotRows: dotRows256, hadamard: hadamard512, dotBytes: dotBytes512, scan: scan512, above: above512, fetch: fetchLines}
}

func search256() searchSet {
	s := portableSearch()
	s.dot, s.dotRows, s.dotBytes, s.scan, s.fetch = dot256, dotRows256, dotBytes256, scan256, fetchLines
	return s
}

func dot256(a, b []float32) float32 {
	if len(a) < 8 {
		return ref.Dot(a, b)
	}
	sum := dotAVX(&a[0], &b[0], len(a)/8)
	for i := len(a) &^ 7; i < len(a); i++ {
		sum += float32(a[i] * b[i])
	}
	return sum
}

// dotRowsArgs: products of fours × 4 rows, size bytes each, by number, up to
// the last whole eight of their dimensions.
type dotRowsArgs struct {
	query    *float32
	rows     *float32
	slots    *uint32
	fours    int
	products *float32
	size     int
	end      int // bytes of those dimensions
}

func dotRows256(query, rows []float32, slots []uint32, products []float32) {
	dims := len(query)
	if dims < 8 {
		dotRowsGo(query, rows, slots, products)
		return
	}
	for _, slot := range slots {
		_ = rows[int(slot)*dims:][:dims]
	}
	whole := len(slots) &^ 3
	if whole > 0 {
		p := dotRowsArgs{&query[0], &rows[0], &slots[0], whole / 4, &products[0], 4 * dims, 4 * (dims &^ 7)}
		dotRowsAVX(&p)
	}
	for i, slot := range slots[whole:] {
		products[whole+i] = dotAVX(&query[0], &rows[int(slot)*dims], dims/8)
	}
	for at := dims &^ 7; at < dims; at++ {
		for i, slot := range slots {
			products[i] += float32(query[at] * rows[int(slot)*dims+at])
		}
	}
}

func fetchLines(b []byte) { fetchCache(&b[0], len(b)) }

func hadamard512(x, signs []float32) {
	if len(x) < 64 {
		ref.Hadamard(x, signs)
		return
	}
	hadamardAVX512(&x[0], &signs[0], len(x))
}

// dotBytesArgs: products of rows, size bytes each, by number.
type dotBytesArgs struct {
	query    *int8
	rows     unsafe.Pointer
	slots    *uint32
	count    int
	products *int32
	size     int
}

func newDotBytes(query []int8, rows []byte, slots []uint32, products []int32) dotBytesArgs {
	for _, slot := range slots {
		_ = rows[int(slot)*len(query):][:len(query)]
	}
	return dotBytesArgs{&query[0], unsafe.Pointer(&rows[0]), &slots[0], len(slots), &products[0], len(query)}
}

func dotBytes512(query []int8, rows []byte, slots []uint32, products []int32) {
	p := newDotBytes(query, rows, slots, products)
	dotBytesVNNI(&p)
}

func dotBytes256(query []int8, rows []byte, slots []uint32, products []int32) {
	p := newDotBytes(query, rows, slots, products)
	dotBytesAVX2(&p)
}

// scanArgs: estimates and masks of count blocks of words × 16 signs.
type scanArgs struct {
	blocks                        *byte
	count                         int
	planes                        *[4]uint32
	words                         int
	estimates                     *float32
	masks                         *uint16
	ahead                         *byte
	scale, shift, base, threshold float32
}

func newScan(q *CodeQuery, blocks, ahead []byte, base, shift, threshold float32, estimates []float32, masks []uint16) scanArgs {
	_ = estimates[:16*len(masks)]
	_ = blocks[:len(masks)*(len(q.planes)+2)*64]
	if len(ahead) == 0 {
		ahead = blocks
	}
	return scanArgs{&blocks[0], len(masks), &q.planes[0], len(q.planes), &estimates[0], &masks[0], &ahead[0],
		q.Scale, shift, base, threshold}
}

func scan512(q *CodeQuery, blocks, ahead []byte, base, shift, threshold float32, estimates []float32, masks []uint16) {
	p := newScan(q, blocks, ahead, base, shift, threshold, estimates, masks)
	scanAVX512(&p)
}

func scan256(q *CodeQuery, blocks, ahead []byte, base, shift, threshold float32, estimates []float32, masks []uint16) {
	p := newScan(q, blocks, ahead, base, shift, threshold, estimates, masks)
	scanAVX2(&p)
}

func above512(values []float32, threshold float32, indices []uint32) int {
	whole := len(values) &^ 15
	n := 0
	if whole > 0 {
		n = aboveAVX512(&values[0], whole/16, threshold, &indices[0])
	}
	for i := whole; i < len(values); i++ {
		if values[i] >= threshold {
			indices[n] = uint32(i)
			n++
		}
	}
	return n
}

//go:noescape
func dotAVX(a, b *float32, eights int) float32

//go:noescape
func dotRowsAVX(p *dotRowsArgs)

//go:noescape
func fetchCache(b *byte, n int)

//go:noescape
func hadamardAVX512(x, signs *float32, n int)

//go:noescape
func dotBytesVNNI(p *dotBytesArgs)

//go:noescape
func dotBytesAVX2(p *dotBytesArgs)

//go:noescape
func scanAVX512(p *scanArgs)

//go:noescape
func scanAVX2(p *scanArgs)

//go:noescape
func aboveAVX512(values *float32, sixteens int, threshold float32, indices *uint32) int
