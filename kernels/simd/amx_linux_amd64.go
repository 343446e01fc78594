package simd

import (
	"syscall"

	"golang.org/x/sys/cpu"
)

// hasAMX tells whether tiles can be used, and asks the kernel for them: a
// process may not touch their registers before.
func hasAMX() bool {
	const (
		reqXCompPerm = 0x1023
		tileData     = 18
	)
	if !cpu.X86.HasAMXTile || !cpu.X86.HasAMXInt8 || !cpu.X86.HasAMXBF16 {
		return false
	}
	_, _, errno := syscall.RawSyscall(syscall.SYS_ARCH_PRCTL, reqXCompPerm, tileData, 0)
	return errno == 0
}
