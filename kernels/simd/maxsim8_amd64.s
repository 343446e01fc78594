#include "textflag.h"

// COLUMNS4 adds the products of a unit of the row (Y8, widened to words) with
// four columns of the panel to sum: two partial sums a column.
#define COLUMNS4(offset, sum) \
	VPMOVSXBW offset(BX), Y9; \
	VPMADDWD  Y8, Y9, Y9; \
	VPADDD    Y9, sum, sum

// COLUMNS8 joins the partial sums of eight columns and writes them.
#define COLUMNS8(low, high, offset) \
	VPHADDD high, low, low; \
	VPERMQ  $0xD8, low, low; \
	VMOVDQU low, offset(DI)

// func codeDotAVX2(p *dotArgs)
TEXT ·codeDotAVX2(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), R8
	MOVQ 0(R8), DI
	MOVQ 8(R8), R9
	MOVQ 16(R8), SI
	MOVQ 24(R8), R10
	MOVQ 48(R8), DX

row:
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	VPXOR Y4, Y4, Y4
	VPXOR Y5, Y5, Y5
	VPXOR Y6, Y6, Y6
	VPXOR Y7, Y7, Y7
	MOVQ  SI, AX
	MOVQ  32(R8), BX
	MOVQ  40(R8), CX

unit:
	VPBROADCASTD (AX), X8
	VPMOVZXBW    X8, Y8
	COLUMNS4(0, Y0)
	COLUMNS4(16, Y1)
	COLUMNS4(32, Y2)
	COLUMNS4(48, Y3)
	COLUMNS4(64, Y4)
	COLUMNS4(80, Y5)
	COLUMNS4(96, Y6)
	COLUMNS4(112, Y7)
	ADDQ $4, AX
	ADDQ $128, BX
	DECQ CX
	JNZ  unit

	COLUMNS8(Y0, Y1, 0)
	COLUMNS8(Y2, Y3, 32)
	COLUMNS8(Y4, Y5, 64)
	COLUMNS8(Y6, Y7, 96)
	ADDQ R9, DI
	ADDQ R10, SI
	DECQ DX
	JNZ  row

	VZEROUPPER
	RET
