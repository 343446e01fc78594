#include "textflag.h"

// Loops take 16 elements at a time under mask K1; the last, shorter step
// narrows the mask. CX counts what is left, SI points to it.

#define MASK_LAST(full) \
	CMPQ  CX, $16; \
	JGE   full; \
	MOVQ  $-1, DX; \
	BZHIQ CX, DX, DX; \
	KMOVW DX, K1

// func geluAVX512(x *float32, n int, constants *[16]float32)
TEXT ·geluAVX512(SB), NOSPLIT, $0-24
	MOVQ         x+0(FP), SI
	MOVQ         n+8(FP), CX
	MOVQ         constants+16(FP), BX
	VBROADCASTSS (BX), Z16
	VBROADCASTSS 4(BX), Z17
	VBROADCASTSS 8(BX), Z18
	VBROADCASTSS 12(BX), Z19
	VBROADCASTSS 16(BX), Z20
	VBROADCASTSS 20(BX), Z21
	VBROADCASTSS 24(BX), Z22
	VBROADCASTSS 28(BX), Z23
	VBROADCASTSS 32(BX), Z24
	VBROADCASTSS 36(BX), Z25
	VBROADCASTSS 40(BX), Z26
	VBROADCASTSS 44(BX), Z27
	VBROADCASTSS 48(BX), Z28
	VBROADCASTSS 52(BX), Z29
	VBROADCASTSS 56(BX), Z30
	VBROADCASTSS 60(BX), Z31
	VPXORQ       Z15, Z15, Z15
	VSUBPS       Z17, Z15, Z14        // −bound
	VSUBPS       Z18, Z15, Z13        // −1
	KXNORW       K1, K1, K1

geluLoop:
	MASK_LAST(geluStep)

geluStep:
	VMOVUPS.Z   (SI), K1, Z0
	VMULPS      Z16, Z0, Z1           // z = x/√2, bounded
	VMINPS      Z17, Z1, Z1
	VMAXPS      Z14, Z1, Z1
	VMULPS      Z1, Z1, Z2            // t = z²
	VMOVAPS     Z20, Z3               // P(t)
	VFMADD213PS Z21, Z2, Z3
	VFMADD213PS Z22, Z2, Z3
	VFMADD213PS Z23, Z2, Z3
	VFMADD213PS Z24, Z2, Z3
	VFMADD213PS Z25, Z2, Z3
	VMOVAPS     Z26, Z4               // Q(t)
	VFMADD213PS Z27, Z2, Z4
	VFMADD213PS Z28, Z2, Z4
	VFMADD213PS Z29, Z2, Z4
	VFMADD213PS Z30, Z2, Z4
	VFMADD213PS Z31, Z2, Z4
	VMULPS      Z1, Z3, Z3
	VDIVPS      Z4, Z3, Z3            // erf, within [−1, 1]
	VMINPS      Z18, Z3, Z3
	VMAXPS      Z13, Z3, Z3
	VMULPS      Z19, Z0, Z0           // x/2 + x/2·erf
	VFMADD213PS Z0, Z0, Z3
	VMOVUPS     Z3, K1, (SI)
	ADDQ        $64, SI
	SUBQ        $16, CX
	JG          geluLoop
	VZEROUPPER
	RET

// func sigmoidAVX512(x *float32, n int, linear, cubic float32, constants *[12]float32)
TEXT ·sigmoidAVX512(SB), NOSPLIT, $0-32
	MOVQ         x+0(FP), SI
	MOVQ         n+8(FP), CX
	VBROADCASTSS linear+16(FP), Z16
	VBROADCASTSS cubic+20(FP), Z15
	MOVQ         constants+24(FP), BX
	VBROADCASTSS (BX), Z17
	VBROADCASTSS 4(BX), Z18
	VBROADCASTSS 8(BX), Z19
	VBROADCASTSS 12(BX), Z20
	VBROADCASTSS 16(BX), Z21
	VBROADCASTSS 20(BX), Z22
	VBROADCASTSS 24(BX), Z23
	VBROADCASTSS 28(BX), Z24
	VBROADCASTSS 32(BX), Z25
	VBROADCASTSS 36(BX), Z26
	VBROADCASTSS 40(BX), Z27
	VBROADCASTSS 44(BX), Z28
	VPXORQ       Z30, Z30, Z30
	VSUBPS       Z28, Z30, Z29        // −bound
	KXNORW       K1, K1, K1

sigmoidLoop:
	MASK_LAST(sigmoidStep)

sigmoidStep:
	VMOVUPS.Z    (SI), K1, Z0
	VMINPS       Z28, Z0, Z4          // y = x, bounded
	VMAXPS       Z29, Z4, Z4
	VMULPS       Z4, Z4, Z1           // −u = −y·(linear + cubic·y²)
	VFMADD213PS  Z16, Z15, Z1
	VMULPS       Z4, Z1, Z1
	VSUBPS       Z1, Z30, Z1
	VMULPS       Z17, Z1, Z2
	VRNDSCALEPS  $8, Z2, Z2           // k
	VFNMADD231PS Z18, Z2, Z1          // r
	VFNMADD231PS Z19, Z2, Z1
	VMOVAPS      Z20, Z3
	VFMADD213PS  Z21, Z1, Z3
	VFMADD213PS  Z22, Z1, Z3
	VFMADD213PS  Z23, Z1, Z3
	VFMADD213PS  Z24, Z1, Z3
	VFMADD213PS  Z25, Z1, Z3
	VFMADD213PS  Z26, Z1, Z3
	VFMADD213PS  Z27, Z1, Z3
	VSCALEFPS    Z2, Z3, Z3           // exp(−u)
	VADDPS       Z27, Z3, Z3
	VDIVPS       Z3, Z0, Z0
	VMOVUPS      Z0, K1, (SI)
	ADDQ         $64, SI
	SUBQ         $16, CX
	JG           sigmoidLoop
	VZEROUPPER
	RET

// func softmaxAVX512(x *float32, n int, scale float32, constants *[11]float32)
TEXT ·softmaxAVX512(SB), NOSPLIT, $0-32
	MOVQ         x+0(FP), SI
	MOVQ         n+8(FP), CX
	VBROADCASTSS scale+16(FP), Z16
	MOVQ         constants+24(FP), BX
	VBROADCASTSS (BX), Z17
	VBROADCASTSS 4(BX), Z18
	VBROADCASTSS 8(BX), Z19
	VBROADCASTSS 12(BX), Z20
	VBROADCASTSS 16(BX), Z21
	VBROADCASTSS 20(BX), Z22
	VBROADCASTSS 24(BX), Z23
	VBROADCASTSS 28(BX), Z24
	VBROADCASTSS 32(BX), Z25
	VBROADCASTSS 36(BX), Z26
	VBROADCASTSS 40(BX), Z27

	// The largest element, in every lane of Z0.
	VBROADCASTSS (SI), Z0
	KXNORW       K1, K1, K1

maxLoop:
	MASK_LAST(maxStep)

maxStep:
	VMOVUPS.Z (SI), K1, Z1
	VMAXPS    Z1, Z0, K1, Z0
	ADDQ      $64, SI
	SUBQ      $16, CX
	JG        maxLoop
	VSHUFF64X2 $0x4e, Z0, Z0, Z1
	VMAXPS     Z1, Z0, Z0
	VSHUFF64X2 $0xb1, Z0, Z0, Z1
	VMAXPS     Z1, Z0, Z0
	VSHUFPS    $0x4e, Z0, Z0, Z1
	VMAXPS     Z1, Z0, Z0
	VSHUFPS    $0xb1, Z0, Z0, Z1
	VMAXPS     Z1, Z0, Z0

	// exp(scale·(x − max)) = 2^k·exp(r), |r| ≤ ln(2)/2; the sums in Z5.
	MOVQ   x+0(FP), SI
	MOVQ   n+8(FP), CX
	VPXORQ Z5, Z5, Z5
	KXNORW K1, K1, K1

expLoop:
	MASK_LAST(expStep)

expStep:
	VMOVUPS.Z    (SI), K1, Z1
	VSUBPS       Z0, Z1, Z1
	VMULPS       Z16, Z1, Z1
	VMULPS       Z17, Z1, Z2
	VRNDSCALEPS  $8, Z2, Z2           // k
	VFNMADD231PS Z18, Z2, Z1          // r
	VFNMADD231PS Z19, Z2, Z1
	VMOVAPS      Z20, Z3
	VFMADD213PS  Z21, Z1, Z3
	VFMADD213PS  Z22, Z1, Z3
	VFMADD213PS  Z23, Z1, Z3
	VFMADD213PS  Z24, Z1, Z3
	VFMADD213PS  Z25, Z1, Z3
	VFMADD213PS  Z26, Z1, Z3
	VFMADD213PS  Z27, Z1, Z3
	VSCALEFPS    Z2, Z3, Z3
	VMOVUPS      Z3, K1, (SI)
	VADDPS       Z3, Z5, K1, Z5
	ADDQ         $64, SI
	SUBQ         $16, CX
	JG           expLoop
	VSHUFF64X2 $0x4e, Z5, Z5, Z1
	VADDPS     Z1, Z5, Z5
	VSHUFF64X2 $0xb1, Z5, Z5, Z1
	VADDPS     Z1, Z5, Z5
	VSHUFPS    $0x4e, Z5, Z5, Z1
	VADDPS     Z1, Z5, Z5
	VSHUFPS    $0xb1, Z5, Z5, Z1
	VADDPS     Z1, Z5, Z5

	// Divide by the sum.
	VDIVPS Z5, Z27, Z5
	MOVQ   x+0(FP), SI
	MOVQ   n+8(FP), CX
	KXNORW K1, K1, K1

divLoop:
	MASK_LAST(divStep)

divStep:
	VMOVUPS.Z (SI), K1, Z1
	VMULPS    Z5, Z1, Z1
	VMOVUPS   Z1, K1, (SI)
	ADDQ      $64, SI
	SUBQ      $16, CX
	JG        divLoop
	VZEROUPPER
	RET
