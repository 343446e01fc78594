package simd

import (
	"math"
	"unsafe"

	"sluice/kernels/ref"
)

// The kernels on 8- and 16-bit numbers for every CPU.

func portableNarrow() narrowSet {
	n := narrowSet{int8Dot: int8DotGo, bf16Dot: bf16DotGo, codeDot: int8DotGo, quantize: quantizeGo, roundRows: roundRowsGo,
		exponentials: exponentialsGo, rope: ropeGo, packKeys: packKeysGo, packValues: packValuesGo, stripRows: 32}
	for source := range n.finish {
		for activation := range n.finish[source] {
			for form := range n.finish[source][activation] {
				n.finish[source][activation][form] = func(p *finishArgs) { finishGo(p, source, activation, form) }
			}
		}
	}
	return n
}

func at[T any](p unsafe.Pointer, offset, n int) []T {
	return unsafe.Slice((*T)(unsafe.Add(p, offset)), n)
}

func int8DotGo(p *dotArgs) {
	dotGo(p, func(a, b unsafe.Pointer) float32 {
		return math.Float32frombits(uint32(int8DotColumn(at[uint8](a, 0, p.units*4), b)))
	})
}

// int8DotColumn multiplies a row with one column of a panel.
func int8DotColumn(a []uint8, b unsafe.Pointer) (sum int32) {
	for unit := 0; unit < len(a)/4; unit++ {
		column := at[int8](b, unit*panelBytes, 4)
		for i, v := range column {
			sum += int32(a[4*unit+i]) * int32(v)
		}
	}
	return sum
}

func bf16DotGo(p *dotArgs) {
	dotGo(p, func(a, b unsafe.Pointer) (sum float32) {
		row := at[uint16](a, 0, p.units*2)
		for unit := range p.units {
			for i, v := range at[uint16](b, unit*panelBytes, 2) {
				sum += ref.FromBF16(row[2*unit+i]) * ref.FromBF16(v)
			}
		}
		return sum
	})
}

// dotGo visits every sum; integers travel as the bits of floats.
func dotGo(p *dotArgs, sum func(a, b unsafe.Pointer) float32) {
	for row := range p.rows {
		c := at[float32](p.c, row*p.ldc, p.panel*panelColumns)
		for column := range c {
			b := column/panelColumns*p.units*panelBytes + column%panelColumns*unitBytes
			c[column] = sum(unsafe.Add(p.a, row*p.lda), unsafe.Add(p.b, b))
		}
	}
}

func finishGo(p *finishArgs, source, activation, form int) {
	var values [panelColumns]float32
	for row := range p.rows {
		linearGo(&values, p, row, source)
		switch activation {
		case gelu:
			ref.GELU(values[:])
		case gated:
			ref.Multiply(values[:], at[float32](p.gates, row*panelBytes, panelColumns))
		}
		if form == toBF16 {
			roundGo(at[uint16](p.out, row*p.ldOut, panelColumns), values[:])
		} else {
			copy(at[float32](p.out, row*p.ldOut, panelColumns), values[:])
		}
	}
}

func linearGo(values *[panelColumns]float32, p *finishArgs, row, source int) {
	sums := at[float32](p.acc, row*p.ldAcc, panelColumns)
	column := func(first *float32, i int) float32 { return at[float32](unsafe.Pointer(first), 4*i, 1)[0] }
	for i, sum := range sums {
		switch source {
		case fromInt8:
			steps := int32(math.Float32bits(sum)) + at[int32](unsafe.Pointer(p.offset), 4*i, 1)[0]
			value := float32(steps) * column(p.rowScale, row)
			values[i] = float32(math.FMA(float64(value), float64(column(p.scale, i)), float64(column(p.bias, i))))
		case fromBF16:
			values[i] = sum + column(p.bias, i)
		case fromScaled:
			values[i] = sum * column(p.rowScale, row)
		}
	}
}

func roundGo(dst []uint16, x []float32) {
	for i, v := range x {
		dst[i] = ref.BF16(v)
	}
}

func quantizeGo(r *Rows, from int, x []float32, rotated bool, scratch []float32) {
	for ; len(x) > 0; from, x = from+1, x[r.depth:] {
		row := scratch[:r.depth]
		copy(row, x)
		if rotated {
			ref.Rotate(row)
		}
		r.scale[from] = ref.Quantize(r.row(from)[:r.depth], row)
	}
}

func roundRowsGo(r *Rows, from int, x []float32) {
	for ; len(x) > 0; from, x = from+1, x[r.depth:] {
		roundGo(r.BF16(from, from+1)[:r.depth], x[:r.depth])
	}
}

func exponentialsGo(p *exponentialArgs) {
	inverse := unsafe.Slice(p.inverse, p.rows)
	padded := roundUp(p.keys, panelColumns)
	for row := range p.rows {
		s := at[float32](unsafe.Pointer(p.s), row*p.lds, p.keys)
		out := at[uint16](unsafe.Pointer(p.p), row*p.ldp, padded)
		clear(out[p.keys:])
		inverse[row] = exponentialRow(out, s, p.scale)
	}
}

func exponentialRow(out []uint16, s []float32, scale float32) float32 {
	top := s[0]
	for _, v := range s {
		top = max(top, v)
	}
	var sum float64
	for i, v := range s {
		e := math.Exp2(float64(scale) * (float64(v) - float64(top)))
		out[i] = ref.BF16(float32(e))
		sum += e
	}
	return float32(1 / sum)
}

func ropeGo(x []uint16, cos, sin []float32) {
	half := len(cos)
	for ; len(x) > 0; x = x[2*half:] {
		for k := range half {
			a, b := ref.FromBF16(x[k]), ref.FromBF16(x[half+k])
			x[k] = ref.BF16(float32(a*cos[k]) - float32(b*sin[k]))
			x[half+k] = ref.BF16(float32(b*cos[k]) + float32(a*sin[k]))
		}
	}
}

// number is a row's number at a column, zero beyond the rows and columns.
func (p *packArgs) number(row, column int) uint16 {
	if row >= p.rows || column >= p.columns {
		return 0
	}
	return at[uint16](unsafe.Pointer(p.src), row*p.ld+2*column, 1)[0]
}

func packKeysGo(p *packArgs) {
	keys, depth := roundUp(p.rows, panelColumns), roundUp(p.columns, panelColumns)
	dst := unsafe.Slice(p.dst, keys*depth)
	for i := range dst {
		panel, unit, key := i/(panelColumns*depth), i/(2*panelColumns)%(depth/2), i/2%panelColumns
		dst[i] = p.number(panel*panelColumns+key, 2*unit+i%2)
	}
}

func packValuesGo(p *packArgs) {
	keys, depth := roundUp(p.rows, panelColumns), roundUp(p.columns, panelColumns)
	dst := unsafe.Slice(p.dst, keys*depth)
	for i := range dst {
		panel, unit, column := i/(panelColumns*keys), i/(2*panelColumns)%(keys/2), i/2%panelColumns
		dst[i] = p.number(2*unit+i%2, panel*panelColumns+column)
	}
}
