package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What lies in the package is what the generator writes today; if this fails,
// run go generate in kernels/simd.
func TestOutputIsCurrent(t *testing.T) {
	for name, want := range generate() {
		got, err := os.ReadFile(filepath.Join("..", "..", name))
		require.NoError(t, err)
		require.Equal(t, want, string(got), name)
	}
}

// The bytes are those that GNU as makes of the same instructions.
func TestEncodings(t *testing.T) {
	f := &file{}
	f.vdpbf16ps(0, 26, 24)
	f.vdpbf16ps(23, 31, 9)
	f.vcvtne2ps2bf16(2, 0, 1)
	f.vcvtne2ps2bf16(25, 17, 12)
	f.tileload(6, regDX, regCX, 0)
	f.tileload(4, regSI, regR8, 0)
	f.tileload(7, regDX, regCX, 64)
	f.tilestore(3, regSI, regAX, 64)
	f.tilezero(2)
	f.tiledot("TDPBUSD", prefix66, 0x5e, 1, 4, 7)
	f.tiledot("TDPBF16PS", prefixF3, 0x5c, 3, 5, 6)
	require.Equal(t, []string{
		"LONG $0x402e9262; WORD $0xc052", // vdpbf16ps %zmm24,%zmm26,%zmm0
		"LONG $0x4006c262; WORD $0xf952", // vdpbf16ps %zmm9,%zmm31,%zmm23
		"LONG $0x4877f262; WORD $0xd072", // vcvtne2ps2bf16 %zmm0,%zmm1,%zmm2
		"LONG $0x481f2262; WORD $0xc972", // vcvtne2ps2bf16 %zmm17,%zmm12,%zmm25
		"BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x4b; BYTE $0x74; BYTE $0xa; BYTE $0x0",
		"BYTE $0xc4; BYTE $0xa2; BYTE $0x7b; BYTE $0x4b; BYTE $0x64; BYTE $0x6; BYTE $0x0",
		"BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x4b; BYTE $0x7c; BYTE $0xa; BYTE $0x40",
		"BYTE $0xc4; BYTE $0xe2; BYTE $0x7a; BYTE $0x4b; BYTE $0x5c; BYTE $0x6; BYTE $0x40",
		"LONG $0x497be2c4; BYTE $0xd0",
		"LONG $0x5e41e2c4; BYTE $0xcc",
		"LONG $0x5c4ae2c4; BYTE $0xdd",
	}, instructions(f.text.String()))
}

// instructions is the text's lines without comments.
func instructions(text string) (lines []string) {
	for line := range strings.Lines(text) {
		code, _, _ := strings.Cut(line, "//")
		lines = append(lines, strings.TrimSpace(code))
	}
	return lines
}
