//go:build nvidia

package worker

import (
	"fmt"

	"gorgonia.org/cu"

	"sluice/gpu/cuda/wire"
)

// maxSim answers a request; the answer is the slot's until its next. Passages
// that the device has no memory for run in halves. Errors are as of Run.
func (s *Slot) maxSim(m *wire.MaxSim) (wire.Answer, error) {
	a := &s.answer
	a.Pooled, a.Norms, a.Logits, a.Tokens = a.Pooled[:0], a.Norms[:0], a.Logits[:0], a.Tokens[:0]
	err := halves(0, len(m.Offsets)-1, func(from, to int) error { return s.tryMaxSim(m, from, to) })
	return s.answer, err
}

func (s *Slot) tryMaxSim(m *wire.MaxSim, from, to int) error {
	passages, row := to-from, wire.RowBytes(m.Dimensions)
	codes := m.Codes[int(m.Offsets[from])*row : int(m.Offsets[to])*row]
	var c carver
	query, offsets, rows := c.take(len(m.Query)), c.take(4*(passages+1)), c.take(len(codes))
	scores := c.take(4 * passages)
	if err := s.reserve(c.at, c.at); err != nil {
		return fmt.Errorf("%w: %d passages", err, passages)
	}
	copy(s.host.Bytes()[query:], m.Query)
	copy(s.host.Bytes()[rows:], codes)
	for i, at := range m.Offsets[from : to+1] {
		view[int32](s, offsets, passages+1)[i] = at - m.Offsets[from]
	}
	if err := cu.MemcpyHtoDAsync(s.memory, s.host.Pointer(), int64(scores), s.stream); err != nil {
		return err
	}
	if err := s.kernels.MaxSim(s.stream, s.at(scores), s.at(query), m.Tokens, m.Dimensions, s.at(rows), s.at(offsets), passages); err != nil {
		return err
	}
	if err := s.copyOut(s.at(scores), scores, 4*passages); err != nil {
		return err
	}
	if err := s.stream.Synchronize(); err != nil {
		return err
	}
	s.answer.Pooled = append(s.answer.Pooled, view[float32](s, scores, passages)...)
	return nil
}
