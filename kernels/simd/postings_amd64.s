#include "textflag.h"

// 0, 1, … 15
DATA lane<>+0x00(SB)/8, $0x0000000100000000
DATA lane<>+0x08(SB)/8, $0x0000000300000002
DATA lane<>+0x10(SB)/8, $0x0000000500000004
DATA lane<>+0x18(SB)/8, $0x0000000700000006
DATA lane<>+0x20(SB)/8, $0x0000000900000008
DATA lane<>+0x28(SB)/8, $0x0000000B0000000A
DATA lane<>+0x30(SB)/8, $0x0000000D0000000C
DATA lane<>+0x38(SB)/8, $0x0000000F0000000E
GLOBL lane<>(SB), RODATA|NOPTR, $64

// POINTS makes of frequencies (Z1) and lengths (Z2) the points of 16 postings
// (Z8), by the weight (Z22), base (Z23), slope (Z24) and ones (Z25). Its
// operations are those of Saturation.Points, one by one.
#define POINTS \
	VEXTRACTI64X4 $1, Z2, Y4; \
	VEXTRACTI64X4 $1, Z1, Y5; \
	VCVTUDQ2PD    Y2, Z6; \
	VCVTUDQ2PD    Y4, Z7; \
	VCVTUDQ2PD    Y1, Z8; \
	VCVTUDQ2PD    Y5, Z9; \
	VMULPD        Z24, Z6, Z6; \
	VMULPD        Z24, Z7, Z7; \
	VADDPD        Z23, Z6, Z6; \
	VADDPD        Z23, Z7, Z7; \
	VADDPD        Z8, Z6, Z6; \
	VADDPD        Z9, Z7, Z7; \
	VDIVPD        Z6, Z8, Z8; \
	VDIVPD        Z7, Z9, Z9; \
	VMULPD        Z22, Z8, Z8; \
	VMULPD        Z22, Z9, Z9; \
	VCVTTPD2UDQ   Z8, Y8; \
	VCVTTPD2UDQ   Z9, Y9; \
	VINSERTI64X4  $1, Y9, Z8, Z8; \
	VPADDD        Z25, Z8, Z8

// Sixteen numbers of width bits take 2·width bytes, so the bytes and shifts of
// the lanes (Z1, Z2) are the same in every step.

// func unpackAVX512(dst *uint32, packed *byte, width uint, n int, add uint32)
TEXT ·unpackAVX512(SB), NOSPLIT, $0-36
	MOVQ dst+0(FP), DI
	MOVQ packed+8(FP), SI
	MOVQ width+16(FP), CX
	MOVQ n+24(FP), DX
	MOVL add+32(FP), AX
	VPBROADCASTD AX, Z5

	MOVL         $1, AX
	SHLL         CX, AX
	DECL         AX
	VPBROADCASTD AX, Z3          // mask
	VPBROADCASTD CX, Z1
	VPMULLD      lane<>(SB), Z1, Z1
	MOVL         $7, AX
	VPBROADCASTD AX, Z2
	VPANDD       Z1, Z2, Z2
	VPSRLD       $3, Z1, Z1
	ADDQ         CX, CX

unpack16:
	KXNORW     K1, K1, K1
	VPXORD     Z4, Z4, Z4
	VPGATHERDD (SI)(Z1*1), K1, Z4
	VPSRLVD    Z2, Z4, Z4
	VPANDD     Z3, Z4, Z4
	VPADDD     Z5, Z4, Z4
	VMOVDQU32  Z4, (DI)
	ADDQ       CX, SI
	ADDQ       $64, DI
	SUBQ       $16, DX
	JNZ        unpack16
	VZEROUPPER
	RET

// func expandAVX512(dst *uint32, words *byte, n int, first uint32) int
TEXT ·expandAVX512(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ words+8(FP), SI
	MOVQ n+16(FP), DX
	MOVL first+24(FP), AX
	VPBROADCASTD AX, Z1
	VPADDD       lane<>(SB), Z1, Z1 // what the next sixteen bits stand for
	MOVL         $16, AX
	VPBROADCASTD AX, Z2
	SHLQ         $2, DX             // sixteens
	XORQ         R8, R8             // numbers written

expand16:
	MOVWLZX    (SI), AX
	POPCNTL    AX, BX
	JZ         expanded
	KMOVW      AX, K1
	VPCOMPRESSD Z1, K1, Z3
	VMOVDQU32  Z3, (DI)(R8*4)
	ADDQ       BX, R8
	CMPQ       R8, $128
	JGT        toomany

expanded:
	VPADDD Z2, Z1, Z1
	ADDQ   $2, SI
	DECQ   DX
	JNZ    expand16
	VZEROUPPER
	MOVQ   R8, ret+32(FP)
	RET

toomany:
	VZEROUPPER
	MOVQ $-1, ret+32(FP)
	RET

// func scoreAVX512(sums *PostingSums, lengths, slots, freqs *uint32, n int, lo, limit uint32, s *Saturation)
TEXT ·scoreAVX512(SB), NOSPLIT, $0-56
	MOVQ sums+0(FP), DI
	MOVQ lengths+8(FP), SI
	MOVQ slots+16(FP), R8
	MOVQ freqs+24(FP), R9
	MOVQ n+32(FP), DX
	MOVL lo+40(FP), AX
	VPBROADCASTD AX, Z20
	MOVL limit+44(FP), AX
	VPBROADCASTD AX, Z21
	MOVQ s+48(FP), BX
	VBROADCASTSD (BX), Z22   // weight
	VBROADCASTSD 8(BX), Z23  // base
	VBROADCASTSD 16(BX), Z24 // slope
	MOVL         $1, AX
	VPBROADCASTD AX, Z25
	MOVL         $0xFFFF, CX

score16:
	CMPQ DX, $16
	JGE  full
	MOVQ DX, CX
	MOVL $1, AX
	SHLL CX, AX
	DECL AX
	MOVL AX, CX

full:
	KMOVW       CX, K1
	VMOVDQU32.Z (R8), K1, Z0
	VMOVDQU32.Z (R9), K1, Z1
	VPSUBD      Z20, Z0, Z0        // counted from lo
	VPCMPUD     $1, Z21, Z0, K1, K1 // below the limit
	KMOVW       K1, K2
	KMOVW       K1, K3
	VPXORD      Z2, Z2, Z2
	VPGATHERDD  (SI)(Z0*4), K2, Z2 // lengths
	KMOVW       K1, K2
	VPXORD      Z3, Z3, Z3
	VPGATHERDD  (DI)(Z0*4), K2, Z3 // sums

	POINTS
	VPADDD        Z3, Z8, Z8
	VPSCATTERDD   Z8, K3, (DI)(Z0*4)

	ADDQ $64, R8
	ADDQ $64, R9
	SUBQ $16, DX
	JG   score16
	VZEROUPPER
	RET

// Four blocks of four peaks are sixteen lanes; the greatest of each four comes
// to all of them by two exchanges.

// func boundAVX512(dst *uint32, peaks *byte, fours int, s *Saturation)
TEXT ·boundAVX512(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ peaks+8(FP), SI
	MOVQ fours+16(FP), DX
	MOVQ s+24(FP), BX
	VBROADCASTSD (BX), Z22
	VBROADCASTSD 8(BX), Z23
	VBROADCASTSD 16(BX), Z24
	MOVL         $1, AX
	VPBROADCASTD AX, Z25
	MOVL         $0xFFFF, AX
	VPBROADCASTD AX, Z26
	VPTERNLOGD   $0xFF, Z27, Z27, Z27
	MOVL         $0x1111, AX
	KMOVW        AX, K2

bound4:
	VMOVDQU32   (SI), Z2
	VPANDD      Z26, Z2, Z1
	VPSRLD      $16, Z2, Z2
	VPCMPEQD    Z26, Z1, K1
	VMOVDQA32   Z27, K1, Z1
	POINTS
	VPSHUFD     $0xB1, Z8, Z9
	VPMAXUD     Z9, Z8, Z8
	VPSHUFD     $0x4E, Z8, Z9
	VPMAXUD     Z9, Z8, Z8
	VPADDD      Z25, Z8, Z8
	VPCOMPRESSD Z8, K2, Z9
	VMOVDQU     X9, (DI)
	ADDQ        $64, SI
	ADDQ        $16, DI
	DECQ        DX
	JNZ         bound4
	VZEROUPPER
	RET

// func reachAVX512(bits *[PostingWindow / 64]uint64, sums *PostingSums, need uint32)
TEXT ·reachAVX512(SB), NOSPLIT, $0-20
	MOVQ bits+0(FP), DI
	MOVQ sums+8(FP), SI
	MOVL need+16(FP), AX
	VPBROADCASTD AX, Z0
	MOVQ $128, DX

reach32:
	VMOVDQU32 (SI), Z1
	VMOVDQU32 64(SI), Z2
	VPCMPUD   $5, Z0, Z1, K1
	VPCMPUD   $5, Z0, Z2, K2
	KMOVW     K1, AX
	KMOVW     K2, BX
	SHLL      $16, BX
	ORL       BX, AX
	MOVL      AX, (DI)
	ADDQ      $128, SI
	ADDQ      $4, DI
	DECQ      DX
	JNZ       reach32
	VZEROUPPER
	RET
