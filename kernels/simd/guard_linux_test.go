package simd

import (
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// fenced returns n numbers that end where a page without access begins; the
// page before them has none either.
func fenced[T any](t testing.TB, n int) []T {
	t.Helper()
	page := os.Getpagesize()
	var number T
	size := n * int(unsafe.Sizeof(number))
	inner := roundUp(size, page)
	memory, err := unix.Mmap(-1, 0, inner+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Munmap(memory)) })
	require.NoError(t, unix.Mprotect(memory[:page], unix.PROT_NONE))
	require.NoError(t, unix.Mprotect(memory[page+inner:], unix.PROT_NONE))
	return unsafe.Slice((*T)(unsafe.Pointer(&memory[page+inner-size])), n)
}
