package local

import "golang.org/x/sys/unix"

// preferLargePages asks for pages that spare the processor's address tables.
// It is a wish: without them searches are slower, nothing else.
func preferLargePages(b []byte) {
	unix.Madvise(b, unix.MADV_HUGEPAGE) //nolint:errcheck // a wish
}
