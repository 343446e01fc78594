#include "textflag.h"

// Both kernels walk over the code rows; of each, a 16-bit word of signs (AX)
// selects an entry of 64 bytes in each of the next four tables of 1,024 bytes
// (BX). SHIFT brings a word's four bits to where they are an entry's offset.

#define INDEX(shift, amount, index) \
	MOVL  AX, index; \
	shift $amount, index; \
	ANDL  $0x3C0, index

// func maxSimAVX512(best *lanes, tables *float32, words int, codes *byte, tokens int)
TEXT ·maxSimAVX512(SB), NOSPLIT, $0-40
	MOVQ best+0(FP), DI
	MOVQ tables+8(FP), R12
	MOVQ words+16(FP), R13
	MOVQ codes+24(FP), SI
	MOVQ tokens+32(FP), DX
	VMOVUPS (DI), Z5

token512:
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	MOVQ   R12, BX
	MOVQ   R13, CX

word512:
	MOVWLZX (SI), AX
	INDEX(SHLL, 6, R8)
	INDEX(SHLL, 2, R9)
	INDEX(SHRL, 2, R10)
	INDEX(SHRL, 6, R11)
	VADDPS  (BX)(R8*1), Z0, Z0
	VADDPS  1024(BX)(R9*1), Z1, Z1
	VADDPS  2048(BX)(R10*1), Z2, Z2
	VADDPS  3072(BX)(R11*1), Z3, Z3
	ADDQ    $2, SI
	ADDQ    $4096, BX
	DECQ    CX
	JNZ     word512

	VADDPS       Z1, Z0, Z0
	VADDPS       Z3, Z2, Z2
	VADDPS       Z2, Z0, Z0
	VBROADCASTSS (SI), Z4
	VMULPS       Z4, Z0, Z0
	VMAXPS       Z5, Z0, Z5
	ADDQ         $4, SI
	DECQ         DX
	JNZ          token512

	VMOVUPS Z5, (DI)
	VZEROUPPER
	RET

// func maxSimAVX2(best *lanes, tables *float32, words int, codes *byte, tokens int)
TEXT ·maxSimAVX2(SB), NOSPLIT, $0-40
	MOVQ best+0(FP), DI
	MOVQ tables+8(FP), R12
	MOVQ words+16(FP), R13
	MOVQ codes+24(FP), SI
	MOVQ tokens+32(FP), DX
	VMOVUPS (DI), Y10
	VMOVUPS 32(DI), Y11

token256:
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS Y4, Y4, Y4
	VXORPS Y5, Y5, Y5
	VXORPS Y6, Y6, Y6
	VXORPS Y7, Y7, Y7
	MOVQ   R12, BX
	MOVQ   R13, CX

word256:
	MOVWLZX (SI), AX
	INDEX(SHLL, 6, R8)
	INDEX(SHLL, 2, R9)
	INDEX(SHRL, 2, R10)
	INDEX(SHRL, 6, R11)
	VADDPS  (BX)(R8*1), Y0, Y0
	VADDPS  32(BX)(R8*1), Y1, Y1
	VADDPS  1024(BX)(R9*1), Y2, Y2
	VADDPS  1056(BX)(R9*1), Y3, Y3
	VADDPS  2048(BX)(R10*1), Y4, Y4
	VADDPS  2080(BX)(R10*1), Y5, Y5
	VADDPS  3072(BX)(R11*1), Y6, Y6
	VADDPS  3104(BX)(R11*1), Y7, Y7
	ADDQ    $2, SI
	ADDQ    $4096, BX
	DECQ    CX
	JNZ     word256

	VADDPS       Y2, Y0, Y0
	VADDPS       Y3, Y1, Y1
	VADDPS       Y6, Y4, Y4
	VADDPS       Y7, Y5, Y5
	VADDPS       Y4, Y0, Y0
	VADDPS       Y5, Y1, Y1
	VBROADCASTSS (SI), Y8
	VMULPS       Y8, Y0, Y0
	VMULPS       Y8, Y1, Y1
	VMAXPS       Y10, Y0, Y10
	VMAXPS       Y11, Y1, Y11
	ADDQ         $4, SI
	DECQ         DX
	JNZ          token256

	VMOVUPS Y10, (DI)
	VMOVUPS Y11, 32(DI)
	VZEROUPPER
	RET
