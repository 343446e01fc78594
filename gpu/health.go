package gpu

import (
	"errors"
	"fmt"
	"time"
)

// Health reports every device that is not in use, and why; nil if all are.
func (s *Scheduler) Health() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []error
	for _, l := range s.lanes {
		for i := range l.devices {
			all = append(all, s.broken(l, i))
		}
	}
	return errors.Join(all...)
}

// Ready reports why a model's calls are not let in; nil if all are.
func (s *Scheduler) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lanes {
		if err := s.unusable(l); err != nil {
			return err
		}
	}
	return nil
}

// unusable says why no call of l's is let in; nil if a device works.
func (s *Scheduler) unusable(l *lane) (err error) {
	if s.closed {
		return ErrClosed
	}
	for i, d := range l.devices {
		if d.aside > 0 {
			continue // which runs not all
		}
		if err = s.broken(l, i); err == nil {
			return nil
		}
	}
	return err
}

// broken says why a device cannot be used; nil if it can. One that does not
// return in time keeps its processor from all models.
func (s *Scheduler) broken(l *lane, i int) error {
	if sick := l.devices[i].sick; sick != nil {
		return fmt.Errorf("device %d of %s: %w", i, l.info.Model, sick)
	}
	p, limit := s.processors[i], s.options.BatchTime
	if p.lane != nil && time.Since(p.since) > limit {
		return fmt.Errorf("%w: device %d of %s has not returned for more than %v", ErrDevice, i, p.lane.info.Model, limit)
	}
	return nil
}

// retire takes a device out of use until it does its probe. The queue waits for
// that, but a scheduler that closes does not.
func (s *Scheduler) retire(r *run, why error) {
	s.options.Hooks.Health(r.lane.info.Model, r.processor, why)
	s.mu.Lock()
	defer s.mu.Unlock()
	r.device.sick = why
	if !s.closed {
		s.running.Go(r.revive)
	}
	s.abandonHopeless()
}

const (
	firstProbe = 100 * time.Millisecond // after a device was retired
	lastProbe  = 10 * time.Second       // between two probes, in the end
)

// revive probes a device until it works.
func (r *run) revive() {
	s := r.scheduler
	for pause := firstProbe; ; pause = min(2*pause, lastProbe) {
		select {
		case <-s.open.Done():
			return
		case <-time.After(pause):
		}
		if r.probe(s.open) == nil {
			s.reinstate(r)
			return
		}
	}
}

// reinstate takes a device back into use.
func (s *Scheduler) reinstate(r *run) {
	s.options.Hooks.Health(r.lane.info.Model, r.processor, nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	r.device.sick = nil
	s.processors[r.processor].wake.Signal()
}
