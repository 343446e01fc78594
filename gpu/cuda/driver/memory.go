//go:build nvidia

package driver

//#include <cuda.h>
import "C"

import "unsafe"

// HostMemory is pinned memory of the host: copies from and to it run beside
// kernels. It must outlive the copies.
type HostMemory struct{ bytes []byte }

// NewHostMemory allocates pinned memory, filled with nothing in particular.
func NewHostMemory(bytes int) (HostMemory, error) {
	var p unsafe.Pointer
	if err := check(C.cuMemAllocHost(&p, C.size_t(bytes))); err != nil {
		return HostMemory{}, err
	}
	return HostMemory{unsafe.Slice((*byte)(p), bytes)}, nil
}

// Bytes is the memory itself.
func (m HostMemory) Bytes() []byte { return m.bytes }

// Pointer is the address of the first byte, as cu's copies take it.
func (m HostMemory) Pointer() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(m.bytes)) }

// Free gives the memory back; Bytes must not be used afterwards.
func (m HostMemory) Free() error { return check(C.cuMemFreeHost(m.Pointer())) }
