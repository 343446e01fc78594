#include "textflag.h"

// func dotAVX(a, b *float32, eights int) float32
// Eight running sums, added pairwise: the order of ref.Dot.
TEXT ·dotAVX(SB), NOSPLIT, $0-28
	MOVQ   a+0(FP), SI
	MOVQ   b+8(FP), DX
	MOVQ   eights+16(FP), CX
	VXORPS Y0, Y0, Y0

dot:
	VMOVUPS (SI), Y1
	VMULPS  (DX), Y1, Y1
	VADDPS  Y1, Y0, Y0
	ADDQ    $32, SI
	ADDQ    $32, DX
	DECQ    CX
	JNZ     dot

	VHADDPS      Y0, Y0, Y0
	VHADDPS      Y0, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VADDSS       X1, X0, X0
	VMOVSS       X0, ret+24(FP)
	VZEROUPPER
	RET

// ROW sets to to the address of the row whose number is at slots.
#define ROW(slots, to) \
	MOVL  slots, to; \
	IMULQ 40(DI), to; \
	ADDQ  8(DI), to

// func dotRowsAVX(p *dotRowsArgs)
// Four rows at a time, each as in dotAVX, while the next four are fetched.
TEXT ·dotRowsAVX(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), DI
	MOVQ 0(DI), DX   // query
	MOVQ 16(DI), SI  // slots

fourRows:
	ROW(0(SI), R8)
	ROW(4(SI), R9)
	ROW(8(SI), R10)
	ROW(12(SI), R11)
	MOVQ R8, R12
	MOVQ R9, R13
	MOVQ R10, AX
	MOVQ R11, CX
	CMPQ 24(DI), $1
	JE   last
	ROW(16(SI), R12)
	ROW(20(SI), R13)
	ROW(24(SI), AX)
	ROW(28(SI), CX)

last:
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	XORQ   BX, BX

eight:
	VMOVUPS (DX)(BX*1), Y4
	VMULPS  (R8)(BX*1), Y4, Y5
	VMULPS  (R9)(BX*1), Y4, Y6
	VMULPS  (R10)(BX*1), Y4, Y7
	VMULPS  (R11)(BX*1), Y4, Y8
	PREFETCHT0 (R12)(BX*1)
	PREFETCHT0 (R13)(BX*1)
	VADDPS  Y5, Y0, Y0
	VADDPS  Y6, Y1, Y1
	VADDPS  Y7, Y2, Y2
	VADDPS  Y8, Y3, Y3
	PREFETCHT0 (AX)(BX*1)
	PREFETCHT0 (CX)(BX*1)
	ADDQ    $32, BX
	CMPQ    BX, 48(DI)
	JLT     eight

	VHADDPS      Y1, Y0, Y0
	VHADDPS      Y3, Y2, Y2
	VHADDPS      Y2, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VADDPS       X1, X0, X0
	MOVQ         32(DI), AX
	VMOVUPS      X0, (AX)
	ADDQ         $16, 32(DI)
	ADDQ         $16, SI
	DECQ         24(DI)
	JNZ          fourRows
	VZEROUPPER
	RET

// func fetchCache(b *byte, n int)
TEXT ·fetchCache(SB), NOSPLIT, $0-16
	MOVQ b+0(FP), SI
	MOVQ n+8(FP), CX

fetch:
	PREFETCHT0 (SI)
	ADDQ $64, SI
	SUBQ $64, CX
	JG   fetch
	RET

// BUTTERFLY adds a register's lanes pairwise, and subtracts them where K is set.
#define BUTTERFLY(shuffle, imm, k) \
	shuffle imm, Z0, Z0, Z1; \
	VADDPS  Z0, Z1, Z2; \
	VSUBPS  Z0, Z1, k, Z2; \
	VMOVAPS Z2, Z0

// func hadamardAVX512(x, signs *float32, n int)
// n is a power of two, at least 64.
TEXT ·hadamardAVX512(SB), NOSPLIT, $0-24
	MOVQ x+0(FP), DI
	MOVQ signs+8(FP), SI
	MOVQ n+16(FP), DX
	SHLQ $2, DX // bytes

	// The first stage multiplies by the signs.
	MOVQ DX, BX
	SHRQ $1, BX // stride
	LEAQ (DI)(BX*1), R8
	LEAQ (SI)(BX*1), R9
	XORQ AX, AX

first:
	VMOVUPS (DI)(AX*1), Z0
	VMULPS  (SI)(AX*1), Z0, Z0
	VMOVUPS (R8)(AX*1), Z1
	VMULPS  (R9)(AX*1), Z1, Z1
	VADDPS  Z1, Z0, Z2
	VSUBPS  Z1, Z0, Z3
	VMOVUPS Z2, (DI)(AX*1)
	VMOVUPS Z3, (R8)(AX*1)
	ADDQ    $64, AX
	CMPQ    AX, BX
	JLT     first

	// Stages whose stride is whole registers.
stage:
	SHRQ $1, BX
	CMPQ BX, $64
	JLT  inside
	MOVQ DI, SI         // block
	LEAQ (DI)(DX*1), R10 // end

block:
	LEAQ (SI)(BX*1), R8
	XORQ AX, AX

pair:
	VMOVUPS (SI)(AX*1), Z0
	VMOVUPS (R8)(AX*1), Z1
	VADDPS  Z1, Z0, Z2
	VSUBPS  Z1, Z0, Z3
	VMOVUPS Z2, (SI)(AX*1)
	VMOVUPS Z3, (R8)(AX*1)
	ADDQ    $64, AX
	CMPQ    AX, BX
	JLT     pair
	LEAQ    (R8)(BX*1), SI
	CMPQ    SI, R10
	JLT     block
	JMP     stage

	// The last four stages lie inside registers.
inside:
	MOVL       $0xff00, AX
	KMOVW      AX, K1
	MOVL       $0xf0f0, AX
	KMOVW      AX, K2
	MOVL       $0xcccc, AX
	KMOVW      AX, K3
	MOVL       $0xaaaa, AX
	KMOVW      AX, K4
	MOVQ       n+16(FP), AX
	VCVTSI2SDQ AX, X5, X5
	VSQRTSD    X5, X5, X5
	MOVQ       $0x3ff0000000000000, AX
	VMOVQ      AX, X6
	VDIVSD     X5, X6, X5
	VCVTSD2SS  X5, X5, X5
	VBROADCASTSS X5, Z5

register:
	VMOVUPS (DI), Z0
	BUTTERFLY(VSHUFF64X2, $0x4e, K1)
	BUTTERFLY(VSHUFF64X2, $0xb1, K2)
	BUTTERFLY(VSHUFPS, $0x4e, K3)
	BUTTERFLY(VSHUFPS, $0xb1, K4)
	VMULPS  Z5, Z0, Z0
	VMOVUPS Z0, (DI)
	ADDQ    $64, DI
	SUBQ    $64, DX
	JNZ     register
	VZEROUPPER
	RET

// Rows are fetched so many ahead of the one computed on.
#define AHEAD 10

// func dotBytesVNNI(p *dotBytesArgs)
TEXT ·dotBytesVNNI(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), DI
	MOVQ 0(DI), R8   // query
	MOVQ 8(DI), R9   // rows
	MOVQ 16(DI), SI  // slots
	MOVQ 24(DI), CX  // count
	MOVQ 32(DI), R10 // products
	MOVQ 40(DI), R11 // size

	// The rows before the AHEAD-th are not fetched by the loop.
	MOVQ  CX, R13
	XORQ  R12, R12
	CMPQ  R13, $AHEAD
	JLE   early
	MOVQ  $AHEAD, R13

early:
	MOVL  (SI)(R12*4), AX
	IMULQ R11, AX
	ADDQ  R9, AX
	XORQ  BX, BX

earlyLine:
	PREFETCHT0 (AX)(BX*1)
	ADDQ $64, BX
	CMPQ BX, R11
	JLT  earlyLine
	INCQ R12
	CMPQ R12, R13
	JLT  early

row512:
	MOVL  (SI), AX
	IMULQ R11, AX
	ADDQ  R9, AX
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	XORQ  BX, BX
	CMPQ  CX, $AHEAD
	JLE   tail512
	MOVL  4*AHEAD(SI), R12
	IMULQ R11, R12
	ADDQ  R9, R12
	TESTQ $64, R11
	JZ    pair512
	VMOVDQU32 (AX), Z2
	VPDPBUSD (R8), Z2, Z0
	PREFETCHT0 (R12)
	ADDQ $64, BX
	CMPQ BX, R11
	JGE  done512

pair512:
	VMOVDQU32 (AX)(BX*1), Z2
	VMOVDQU32 64(AX)(BX*1), Z3
	VPDPBUSD (R8)(BX*1), Z2, Z0
	VPDPBUSD 64(R8)(BX*1), Z3, Z1
	PREFETCHT0 (R12)(BX*1)
	PREFETCHT0 64(R12)(BX*1)
	ADDQ $128, BX
	CMPQ BX, R11
	JLT  pair512
	JMP  done512

tail512:
	VMOVDQU32 (AX)(BX*1), Z2
	VPDPBUSD (R8)(BX*1), Z2, Z0
	ADDQ $64, BX
	CMPQ BX, R11
	JLT  tail512

done512:
	VPADDD Z1, Z0, Z0
	VEXTRACTI64X4 $1, Z0, Y1
	VPADDD Y1, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDD X1, X0, X0
	VPSHUFD $0x4e, X0, X1
	VPADDD X1, X0, X0
	VPSHUFD $0xb1, X0, X1
	VPADDD X1, X0, X0
	VMOVD X0, (R10)
	ADDQ $4, SI
	ADDQ $4, R10
	DECQ CX
	JNZ  row512
	VZEROUPPER
	RET

// func dotBytesAVX2(p *dotBytesArgs)
TEXT ·dotBytesAVX2(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), DI
	MOVQ 0(DI), R8
	MOVQ 8(DI), R9
	MOVQ 16(DI), SI
	MOVQ 24(DI), CX
	MOVQ 32(DI), R10
	MOVQ 40(DI), R11

row256:
	MOVL  (SI), AX
	IMULQ R11, AX
	ADDQ  R9, AX
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	XORQ  BX, BX

step256:
	VPMOVZXBW (AX)(BX*1), Y2
	VPMOVSXBW (R8)(BX*1), Y3
	VPMADDWD  Y3, Y2, Y2
	VPADDD    Y2, Y0, Y0
	VPMOVZXBW 16(AX)(BX*1), Y4
	VPMOVSXBW 16(R8)(BX*1), Y5
	VPMADDWD  Y5, Y4, Y4
	VPADDD    Y4, Y1, Y1
	ADDQ      $32, BX
	CMPQ      BX, R11
	JLT       step256

	VPADDD       Y1, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0x4e, X0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0xb1, X0, X1
	VPADDD       X1, X0, X0
	VMOVD        X0, (R10)
	ADDQ         $4, SI
	ADDQ         $4, R10
	DECQ         CX
	JNZ          row256
	VZEROUPPER
	RET

// COUNT adds the bits of 16 lanes of signs that the query's four planes select.
#define COUNT(signs, planes) \
	VMOVDQU32   signs(SI), Z4; \
	VPANDD.BCST planes(R8), Z4, Z5; \
	VPANDD.BCST planes+4(R8), Z4, Z6; \
	VPANDD.BCST planes+8(R8), Z4, Z7; \
	VPANDD.BCST planes+12(R8), Z4, Z8; \
	VPOPCNTD    Z5, Z5; \
	VPOPCNTD    Z6, Z6; \
	VPOPCNTD    Z7, Z7; \
	VPOPCNTD    Z8, Z8; \
	VPADDD      Z5, Z0, Z0; \
	VPADDD      Z6, Z1, Z1; \
	VPADDD      Z7, Z2, Z2; \
	VPADDD      Z8, Z3, Z3

// func scanAVX512(p *scanArgs)
TEXT ·scanAVX512(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), DI
	MOVQ 0(DI), SI   // blocks
	MOVQ 8(DI), CX   // count
	MOVQ 24(DI), R9  // words
	SHLQ $4, R9      // bytes of planes
	MOVQ 32(DI), R10 // estimates
	MOVQ 40(DI), R11 // masks
	MOVQ 48(DI), R12 // ahead
	VBROADCASTSS 56(DI), Z20 // scale
	VBROADCASTSS 60(DI), Z21 // shift
	VBROADCASTSS 64(DI), Z22 // base
	VBROADCASTSS 68(DI), Z23 // threshold

scan512:
	MOVQ   16(DI), R8
	LEAQ   (R8)(R9*1), DX
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3

word512:
	COUNT(0, 0)
	PREFETCHT0 (R12)
	COUNT(64, 16)
	PREFETCHT0 64(R12)
	ADDQ $32, R8
	ADDQ $128, SI
	ADDQ $128, R12
	CMPQ R8, DX
	JLT  word512

	PREFETCHT0 (R12)
	PREFETCHT0 64(R12)
	VPSLLD $1, Z1, Z1
	VPSLLD $2, Z2, Z2
	VPSLLD $3, Z3, Z3
	VPADDD Z1, Z0, Z0
	VPADDD Z2, Z0, Z0
	VPSUBD Z3, Z0, Z0
	VCVTDQ2PS Z0, Z0
	VFMADD132PS Z20, Z21, Z0    // scale·S + shift
	VADDPS (SI), Z22, Z1         // offset + base
	VFMADD132PS 64(SI), Z1, Z0   // · factor
	VMOVUPS Z0, (R10)
	VCMPPS $0x1e, Z23, Z0, K1    // greater
	KMOVW K1, AX
	MOVW  AX, (R11)
	ADDQ $128, SI
	ADDQ $128, R12
	ADDQ $64, R10
	ADDQ $2, R11
	DECQ CX
	JNZ  scan512
	VZEROUPPER
	RET

DATA counts<>+0(SB)/8, $0x0302020102010100
DATA counts<>+8(SB)/8, $0x0403030203020201
GLOBL counts<>(SB), RODATA|NOPTR, $16

// PLANE adds to Y4 the weighted bit counts of the bytes of Y3 that a plane selects.
#define PLANE(plane, weights, combine) \
	VPBROADCASTD plane(R8), Y5; \
	VPAND   Y5, Y3, Y5; \
	VPAND   Y5, Y8, Y6; \
	VPSRLW  $4, Y5, Y5; \
	VPAND   Y5, Y8, Y5; \
	VPSHUFB Y6, weights, Y6; \
	VPSHUFB Y5, weights, Y5; \
	combine Y6, Y4, Y4; \
	combine Y5, Y4, Y4

// HALF adds to sum what eight lanes of signs count.
#define HALF(signs, sum) \
	VMOVDQU    signs(SI), Y3; \
	VPXOR      Y4, Y4, Y4; \
	PLANE(0, Y10, VPADDB); \
	PLANE(4, Y11, VPADDB); \
	PLANE(8, Y12, VPADDB); \
	PLANE(12, Y13, VPSUBB); \
	VPMADDUBSW Y4, Y9, Y4; \
	VPMADDWD   Y4, Y14, Y4; \
	VPADDD     Y4, sum, sum

// FINISH turns the sums of eight lanes into estimates and a mask in AX.
#define FINISH(sum, at) \
	VCVTDQ2PS    sum, sum; \
	VBROADCASTSS 56(DI), Y3; \
	VBROADCASTSS 60(DI), Y4; \
	VFMADD132PS  Y3, Y4, sum; \
	VBROADCASTSS 64(DI), Y3; \
	VADDPS       at(SI), Y3, Y3; \
	VFMADD132PS  64+at(SI), Y3, sum; \
	VMOVUPS      sum, at(R10); \
	VBROADCASTSS 68(DI), Y3; \
	VCMPPS       $0x1e, Y3, sum, Y3; \
	VMOVMSKPS    Y3, AX

// func scanAVX2(p *scanArgs)
TEXT ·scanAVX2(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), DI
	MOVQ 0(DI), SI
	MOVQ 8(DI), CX
	MOVQ 24(DI), R9
	SHLQ $4, R9
	MOVQ 32(DI), R10
	MOVQ 40(DI), R11
	VBROADCASTI128 counts<>(SB), Y10
	VPADDB Y10, Y10, Y11
	VPADDB Y11, Y11, Y12
	VPADDB Y12, Y12, Y13
	MOVL $0x0f0f0f0f, AX
	VMOVD AX, X8
	VPBROADCASTD X8, Y8
	MOVL $0x01010101, AX
	VMOVD AX, X9
	VPBROADCASTD X9, Y9
	MOVL $0x00010001, AX
	VMOVD AX, X14
	VPBROADCASTD X14, Y14

scan256:
	MOVQ  16(DI), R8
	LEAQ  (R8)(R9*1), DX
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1

word256:
	HALF(0, Y0)
	HALF(32, Y1)
	ADDQ $16, R8
	ADDQ $64, SI
	CMPQ R8, DX
	JLT  word256

	FINISH(Y0, 0)
	MOVB AX, (R11)
	FINISH(Y1, 32)
	MOVB AX, 1(R11)
	ADDQ $128, SI
	ADDQ $64, R10
	ADDQ $2, R11
	DECQ CX
	JNZ  scan256
	VZEROUPPER
	RET

DATA lanes<>+0(SB)/4, $0
DATA lanes<>+4(SB)/4, $1
DATA lanes<>+8(SB)/4, $2
DATA lanes<>+12(SB)/4, $3
DATA lanes<>+16(SB)/4, $4
DATA lanes<>+20(SB)/4, $5
DATA lanes<>+24(SB)/4, $6
DATA lanes<>+28(SB)/4, $7
DATA lanes<>+32(SB)/4, $8
DATA lanes<>+36(SB)/4, $9
DATA lanes<>+40(SB)/4, $10
DATA lanes<>+44(SB)/4, $11
DATA lanes<>+48(SB)/4, $12
DATA lanes<>+52(SB)/4, $13
DATA lanes<>+56(SB)/4, $14
DATA lanes<>+60(SB)/4, $15
GLOBL lanes<>(SB), RODATA|NOPTR, $64

// func aboveAVX512(values *float32, sixteens int, threshold float32, indices *uint32) int
// A store may go beyond the indices found, never beyond those looked at.
TEXT ·aboveAVX512(SB), NOSPLIT, $0-40
	MOVQ values+0(FP), SI
	MOVQ sixteens+8(FP), CX
	VBROADCASTSS threshold+16(FP), Z0
	MOVQ indices+24(FP), DI
	VMOVDQU32 lanes<>(SB), Z1
	MOVL $16, AX
	VPBROADCASTD AX, Z2
	XORQ DX, DX

above:
	VMOVUPS (SI), Z3
	VCMPPS $0x1d, Z0, Z3, K1 // not less
	VPCOMPRESSD Z1, K1, Z4
	VMOVDQU32 Z4, (DI)(DX*4)
	KMOVW K1, AX
	POPCNTL AX, AX
	ADDQ AX, DX
	VPADDD Z2, Z1, Z1
	ADDQ $64, SI
	DECQ CX
	JNZ above
	MOVQ DX, ret+32(FP)
	VZEROUPPER
	RET
