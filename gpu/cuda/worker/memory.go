//go:build nvidia

package worker

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"gorgonia.org/cu"

	"sluice/gpu"
	"sluice/gpu/cuda/wire"
)

// memories are what a daemon holds on the device, by its numbers.
type memories struct {
	mu sync.Mutex
	of map[uint32]*memory
}

// memory is freed when it is dropped and no search uses it any more.
type memory struct {
	pointer cu.DevicePtr
	bytes   int
	users   int // and the daemon is one until it drops it
}

// hold fills memory, which is there from the first part on. Errors wrap
// gpu.ErrInput or errMemory, or else concern the device.
func (m *memories) hold(h wire.Hold) error {
	held, err := m.number(h)
	if err != nil || len(h.Bytes) == 0 {
		return err
	}
	if held.bytes != int(h.Size) {
		return fmt.Errorf("%w: memory %d has %d bytes, not %d", gpu.ErrInput, h.Number, held.bytes, h.Size)
	}
	if err := cu.MemcpyHtoD(held.pointer+cu.DevicePtr(h.At), unsafe.Pointer(&h.Bytes[0]), int64(len(h.Bytes))); err != nil {
		return err
	}
	return cu.NoStream.Synchronize() // slots' streams do not wait for the copy
}

// number is the memory of that number, made if need be.
func (m *memories) number(h wire.Hold) (*memory, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if held := m.of[h.Number]; held != nil {
		return held, nil
	}
	pointer, err := allocate(int(h.Size))
	if err != nil {
		return nil, err
	}
	m.of[h.Number] = &memory{pointer, int(h.Size), 1}
	return m.of[h.Number], nil
}

// borrow keeps memory alive until giveBack.
func (m *memories) borrow(number uint32) (*memory, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	held := m.of[number]
	if held == nil {
		return nil, fmt.Errorf("%w: there is no memory %d", gpu.ErrInput, number)
	}
	held.users++
	return held, nil
}

func (m *memories) giveBack(all ...*memory) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, held := range all {
		if held.users--; held.users == 0 {
			err = errors.Join(err, cu.MemFree(held.pointer))
		}
	}
	return err
}

func (m *memories) drop(number uint32) error {
	m.mu.Lock()
	held := m.of[number]
	delete(m.of, number)
	m.mu.Unlock()
	if held == nil {
		return nil
	}
	return m.giveBack(held)
}
