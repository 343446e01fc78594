package main

import "fmt"

// Instructions that Go's assembler lacks, as bytes.

// evex encodes an EVEX.512.0F38.W0 instruction of three registers, dst being
// modrm.reg, a EVEX.vvvv and b modrm.rm.
func evex(prefix, opcode, dst, a, b int) string {
	inverted := func(register, bit int) int { return ^register >> bit & 1 }
	p0 := inverted(dst, 3)<<7 | inverted(b, 4)<<6 | inverted(b, 3)<<5 | inverted(dst, 4)<<4 | 2
	p1 := ^a&15<<3 | 4 | prefix
	p2 := 0x40 | inverted(a, 4)<<3
	modrm := 0xc0 | dst&7<<3 | b&7
	return fmt.Sprintf("LONG $%#x; WORD $%#x", 0x62|p0<<8|p1<<16|p2<<24, opcode|modrm<<8)
}

// The prefixes that VEX and EVEX hold in two bits.
const (
	prefixNone = iota
	prefix66
	prefixF3
	prefixF2
)

// vdpbf16ps adds to every float of dst the dot product of two pairs.
func (f *file) vdpbf16ps(dst, a, b int) {
	f.op("%s // VDPBF16PS Z%d, Z%d, Z%d", evex(prefixF3, 0x52, dst, a, b), b, a, dst)
}

// vcvtne2ps2bf16 rounds the floats of low and high to one register.
func (f *file) vcvtne2ps2bf16(dst, low, high int) {
	f.op("%s // VCVTNE2PS2BF16 Z%d, Z%d, Z%d", evex(prefixF2, 0x72, dst, high, low), low, high, dst)
}

// General registers by their number in an encoding.
const (
	regAX = 0
	regCX = 1
	regDX = 2
	regBX = 3
	regSI = 6
	regR8 = 8
)

// tile encodes VEX.128.0F38.W0 with a tile and a memory operand: rows at base
// + displacement, stride bytes apart. base is below R8.
func tile(prefix, opcode, reg, base, stride, displacement int) string {
	p0 := 0xe2
	if stride >= 8 {
		p0 &^= 0x40
	}
	bytes := []int{0xc4, p0, 0x78 | prefix, opcode, 0x44 | reg<<3, stride&7<<3 | base, displacement}
	text := ""
	for _, b := range bytes {
		text += fmt.Sprintf("BYTE $%#x; ", b)
	}
	return text[:len(text)-2]
}

func (f *file) tileload(reg, base, stride, displacement int) {
	f.op("%s // TILELOADD to tile %d", tile(prefixF2, 0x4b, reg, base, stride, displacement), reg)
}

func (f *file) tilestore(reg, base, stride, displacement int) {
	f.op("%s // TILESTORED of tile %d", tile(prefixF3, 0x4b, reg, base, stride, displacement), reg)
}

func (f *file) tilezero(reg int) {
	f.op("LONG $%#x; BYTE $%#x // TILEZERO of tile %d", 0x497be2c4, 0xc0|reg<<3, reg)
}

// tiledot multiplies tile a by tile b into tile dst.
func (f *file) tiledot(name string, prefix, opcode, dst, a, b int) {
	third := ^b&15<<3 | prefix
	f.op("LONG $%#x; BYTE $%#x // %s of tiles %d, %d into %d", 0xe2c4|third<<16|opcode<<24, 0xc0|dst<<3|a, name, a, b, dst)
}
