//go:build nvidia

package worker

import (
	"errors"
	"fmt"
	"unsafe"

	"gorgonia.org/cu"

	"sluice/kernels/ref"
)

// errMemory is wrapped where the device's memory does not suffice.
var errMemory = errors.New("the device's memory does not suffice")

// allocate is cu.MemAlloc with an error that says so.
func allocate(bytes int) (cu.DevicePtr, error) {
	p, err := cu.MemAlloc(int64(bytes))
	if errors.Is(err, cu.OutOfMemory) {
		return 0, fmt.Errorf("%w for %d KiB more", errMemory, bytes>>10)
	}
	return p, err
}

// uploads are numbers on the device that stay there. The first error is kept.
type uploads struct {
	all   []cu.DevicePtr
	bytes int64
	err   error
}

func (u *uploads) fail(err error) {
	if u.err == nil {
		u.err = err
	}
}

// floats uploads x as it is; nothing is at address 0.
func (u *uploads) floats(x []float32) cu.DevicePtr {
	if len(x) == 0 {
		return 0
	}
	return u.upload(unsafe.Pointer(&x[0]), 4*len(x))
}

// halves uploads x in bfloat16.
func (u *uploads) halves(x []float32) cu.DevicePtr {
	if len(x) == 0 {
		return 0
	}
	bits := make([]uint16, len(x))
	for i, v := range x {
		bits[i] = ref.BF16(v)
	}
	return u.upload(unsafe.Pointer(&bits[0]), 2*len(bits))
}

// repeated uploads n numbers of bfloat16, those of bits again and again.
func (u *uploads) repeated(bits []uint16, n int) cu.DevicePtr {
	p := u.allocate(2 * n)
	for at := 0; at < n && u.err == nil; at += len(bits) {
		u.fail(cu.MemcpyHtoD(p+cu.DevicePtr(2*at), unsafe.Pointer(&bits[0]), int64(2*min(len(bits), n-at))))
	}
	return p
}

func (u *uploads) upload(from unsafe.Pointer, bytes int) cu.DevicePtr {
	p := u.allocate(bytes)
	if p != 0 {
		u.fail(cu.MemcpyHtoD(p, from, int64(bytes)))
	}
	return p
}

// allocate is 0 after an error.
func (u *uploads) allocate(bytes int) cu.DevicePtr {
	if u.err != nil {
		return 0
	}
	p, err := allocate(bytes)
	if err != nil {
		u.err = err
		return 0
	}
	u.all, u.bytes = append(u.all, p), u.bytes+int64(bytes)
	return p
}

// Close frees them.
func (u *uploads) Close() (err error) {
	for _, p := range u.all {
		err = errors.Join(err, cu.MemFree(p))
	}
	u.all = nil
	return err
}
