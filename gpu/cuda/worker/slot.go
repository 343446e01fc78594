//go:build nvidia

package worker

import (
	"errors"
	"fmt"
	"unsafe"

	"gorgonia.org/cu"

	"sluice/gpu"
	"sluice/gpu/cuda/driver"
	"sluice/gpu/cuda/kernel"
	"sluice/gpu/cuda/wire"
	"sluice/kernels/ref"
)

// Slot runs one batch or search at a time: a stream, with memory for it on the device and
// pinned memory on the host. While one slot copies, another computes.
type Slot struct {
	kernels *kernel.Set
	stream  cu.Stream
	memory  cu.DevicePtr
	bytes   int // of memory
	refused int // bytes that the device did not have; 0: none yet
	host    driver.HostMemory
	offsets []int // of the part that runs, from 0
	answer  wire.Answer
	found   wire.Found
}

// NewSlot makes one; memory comes with the first batches.
func (d *Device) NewSlot() (*Slot, error) {
	stream, err := cu.MakeStream(cu.NonBlocking)
	if err != nil {
		return nil, fmt.Errorf("making a stream: %w", err)
	}
	return &Slot{kernels: d.kernels, stream: stream}, nil
}

// Close gives back what the slot has.
func (s *Slot) Close() error {
	return errors.Join(s.free(), s.stream.Destroy())
}

func (s *Slot) free() (err error) {
	if s.bytes > 0 {
		err = cu.MemFree(s.memory)
	}
	if s.bytes = 0; len(s.host.Bytes()) > 0 {
		err = errors.Join(err, s.host.Free())
	}
	s.host = driver.HostMemory{}
	return err
}

// Run answers a request; the answer is the slot's until its next Run. A batch
// that the device has no memory for runs in halves. Errors wrap gpu.ErrInput or
// errMemory, or else concern the device.
func (s *Slot) Run(m *Model, r *wire.Run) (wire.Answer, error) {
	if err := r.Batch.Check(m.config); err != nil {
		return wire.Answer{}, err
	}
	if r.Want&wire.WantLogits != 0 && m.classifier == nil {
		return wire.Answer{}, fmt.Errorf("%w: logits are asked of a model without a classification head", gpu.ErrInput)
	}
	a := &s.answer
	a.Pooled, a.Norms, a.Logits, a.Tokens = a.Pooled[:0], a.Norms[:0], a.Logits[:0], a.Tokens[:0]
	err := halves(0, r.Batch.Len(), func(from, to int) error { return s.try(m, r, from, to) })
	return s.answer, err
}

// halves runs items from to to, in halves where the device has no memory for all.
func halves(from, to int, try func(from, to int) error) error {
	if from == to {
		return nil
	}
	err := try(from, to)
	if !errors.Is(err, errMemory) || to-from == 1 {
		return err
	}
	middle := (from + to) / 2
	if err := halves(from, middle, try); err != nil {
		return err
	}
	return halves(middle, to, try)
}

func (s *Slot) try(m *Model, r *wire.Run, from, to int) error {
	f, err := s.prepare(m, r, from, to)
	if err != nil {
		return err
	}
	if err := f.run(); err != nil {
		return err
	}
	s.collect(m, f.plan)
	return nil
}

// Seconds is how long a request keeps the device, from its first copy to its
// last, behind what before queues in the stream (nil: nothing).
func (s *Slot) Seconds(m *Model, r *wire.Run, before func(in cu.Stream) error) (float64, error) {
	f, err := s.prepare(m, r, 0, r.Batch.Len())
	if err != nil {
		return 0, err
	}
	if before != nil {
		if err := before(s.stream); err != nil {
			return 0, err
		}
	}
	return kernel.Seconds(s.stream, f.queue)
}

// prepare makes room for items from to to, and fills it.
func (s *Slot) prepare(m *Model, r *wire.Run, from, to int) (forward, error) {
	first, tiles := r.Batch.Offsets[from], 0
	s.offsets = s.offsets[:0]
	for i := from; i <= to; i++ {
		if s.offsets = append(s.offsets, r.Batch.Offsets[i]-first); i > from {
			tiles += kernel.Tiles(r.Batch.Offsets[i] - r.Batch.Offsets[i-1])
		}
	}
	p := m.plan(r.Want, to-from, s.offsets[to-from], tiles)
	if err := s.reserve(p.device, p.host); err != nil {
		return forward{}, fmt.Errorf("%w: a batch of %d tokens", err, p.tokens)
	}
	s.fill(m, p, r.Batch.IDs[first:first+p.tokens], r.Batch.Types[first:first+p.tokens])
	return forward{s, m, p}, nil
}

// reserve makes room of so many bytes on the device and the host. What the
// device has refused once it is not asked for again.
func (s *Slot) reserve(device, host int) (err error) {
	if device <= s.bytes && host <= len(s.host.Bytes()) {
		return nil
	}
	if s.refused > 0 && device >= s.refused {
		return errMemory
	}
	least := device
	device, host = max(device, s.bytes), max(host, len(s.host.Bytes()))
	if err := s.free(); err != nil {
		return err
	}
	if s.memory, err = allocate(device); errors.Is(err, errMemory) && device > least {
		device = least
		s.memory, err = allocate(device)
	}
	if err != nil {
		s.refused = device
		return err
	}
	s.bytes = device
	if s.host, err = driver.NewHostMemory(host); err != nil {
		return fmt.Errorf("%w: %d KiB of pinned memory of the host: %w", errMemory, host>>10, err)
	}
	return nil
}

// at is an address on the device.
func (s *Slot) at(offset int) cu.DevicePtr { return s.memory + cu.DevicePtr(offset) }

// copyOut brings what the device has to the host's memory.
func (s *Slot) copyOut(from cu.DevicePtr, to, bytes int) error {
	return cu.MemcpyDtoHAsync(unsafe.Pointer(&s.host.Bytes()[to]), from, int64(bytes), s.stream)
}

// fill writes the inputs.
func (s *Slot) fill(m *Model, p plan, ids, types []int32) {
	copy(view[int32](s, p.ids, p.tokens), ids)
	kinds := view[int32](s, p.types, p.tokens)
	if copy(kinds, types); m.config.Types < 2 {
		clear(kinds)
	}
	positions, offsets := view[int32](s, p.positions, p.tokens), view[int32](s, p.offsets, p.sequences+1)
	for i, at := range s.offsets {
		if offsets[i] = int32(at); i > 0 {
			number(positions[s.offsets[i-1]:at], ids[s.offsets[i-1]:at], m.config.Offset)
		}
	}
	kernel.AppendTiles(view[int32](s, p.work, 3*p.tiles)[:0], s.offsets)
}

// number sets a sequence's positions as model.Config.Offset says.
func number(positions, ids []int32, offset int) {
	next := int32(offset)
	for i, id := range ids {
		if offset > 0 && int(id) == offset-1 {
			positions[i] = id
			continue
		}
		positions[i] = next
		next++
	}
}

// collect appends what came out to the answer.
func (s *Slot) collect(m *Model, p plan) {
	a := &s.answer
	if p.want&wire.WantPooled != 0 {
		vectors := view[float32](s, p.pooled, p.sequences*m.dimensions())
		norms := view[float32](s, p.norms, p.sequences)
		for i := range norms {
			if len(m.projections) > 0 {
				norms[i] = float32(ref.Normalize(vectors[i*m.dimensions():][:m.dimensions()]))
			}
		}
		a.Pooled, a.Norms = append(a.Pooled, vectors...), append(a.Norms, norms...)
	}
	if p.want&wire.WantLogits != 0 {
		a.Logits = append(a.Logits, view[float32](s, p.logits, p.sequences*m.labels())...)
	}
	if p.want&wire.WantTokens != 0 {
		a.Tokens = append(a.Tokens, view[uint16](s, p.tokenVectors, p.tokens*m.config.Hidden)...)
	}
}

// view is n numbers of the host's memory.
func view[T any](s *Slot, at, n int) []T {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&s.host.Bytes()[at])), n)
}
