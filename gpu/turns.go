package gpu

import (
	"context"
	"slices"
	"time"
)

// What is here decides who waits and who runs, under the scheduler's lock.

// admit lets a call in, or says why not.
func (s *Scheduler) admit(l *lane, p Priority) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.unusable(l); err != nil {
		return err
	}
	if s.full(l, p) {
		return &OverloadedError{Drain: l.drain(p)}
	}
	s.submitting++
	return nil
}

func (s *Scheduler) full(l *lane, p Priority) bool {
	return l.classes[p].tokens >= s.options.QueueTokens
}

// submitted notes that a call that was let in will enqueue no more.
func (s *Scheduler) submitted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.submitting--; s.closed {
		s.wakeAll()
	}
}

// enqueue lets texts wait, when there is room. If they are the call's last, are
// next, and a device is idle that does not keep its callers, the caller is given
// the batch to run: it would only wait meanwhile, and need not be woken up.
func (s *Scheduler) enqueue(l *lane, c *call, items []item, last bool) (own *run, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full(l, c.priority) {
		s.awaitRoom(l, c)
	}
	if s.hopeless(l) {
		return nil, ErrClosed
	}
	for _, it := range items {
		s.entered(l, it)
		l.classes[c.priority].queue.push(it)
	}
	for p := range s.processors {
		if !s.free(l, p) {
			continue
		}
		if own == nil && last && l.devices[p].prompt {
			own = s.lend(p, l, c.priority)
		}
		if own == nil || own.processor != p {
			s.processors[p].wake.Signal()
		}
	}
	return own, nil
}

// free reports whether processor p might run a batch of l's now.
func (s *Scheduler) free(l *lane, p int) bool {
	return l.runs(p) && s.processors[p].lane == nil && (l.devices[p].aside == 0 || s.processors[p-1].bulk)
}

// lend begins l's batch on processor p for its caller to run; nil if it is
// another's turn, whose device may keep its callers, or who is less urgent.
func (s *Scheduler) lend(p int, l *lane, priority Priority) *run {
	if next, first := s.turn(p); next != l || first != priority {
		return nil
	}
	return s.begin(p, l, priority, s.guests.Get().(*worker))
}

// awaitRoom returns when there is room, or nothing to wait for.
func (s *Scheduler) awaitRoom(l *lane, c *call) {
	defer context.AfterFunc(c.ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.room.Broadcast()
	})()
	for s.full(l, c.priority) && !c.over() && !s.hopeless(l) {
		s.room.Wait()
	}
}

// hopeless reports whether nothing of l's will run any more.
func (s *Scheduler) hopeless(l *lane) bool {
	return s.closed && (s.abandoned || l.working() == 0)
}

// entered and left keep count of what waits.
func (s *Scheduler) entered(l *lane, it item) { s.count(l, it.call.priority, 1, len(it.ids)) }
func (s *Scheduler) left(l *lane, it item)    { s.count(l, it.call.priority, -1, -len(it.ids)) }

func (s *Scheduler) count(l *lane, p Priority, texts, tokens int) {
	l.classes[p].texts += texts
	l.classes[p].tokens += tokens
	s.options.Hooks.Queue(l.info.Model, p, l.classes[p].tokens)
}

// forget takes out the texts of a call that is over.
func (s *Scheduler) forget(l *lane, c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range l.classes[c.priority].queue.remove(c) {
		s.left(l, it)
	}
	s.wanted(l, c.priority)
	s.room.Broadcast()
}

// next waits until processor p has something to do, and begins it with w; nil
// when the scheduler is closed and nothing waits.
func (s *Scheduler) next(p int, w *worker) *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if r := s.take(p, w); r != nil {
			return r
		}
		if s.closed && s.submitting == 0 && !s.waits() {
			s.wakeAll()
			return nil
		}
		s.processors[p].wake.Wait()
	}
}

// take begins what there is to do for processor p, if it is free.
func (s *Scheduler) take(p int, w *worker) *run {
	l, priority := s.turn(p)
	if l == nil {
		return nil
	}
	return s.begin(p, l, priority, w)
}

// turn tops up what waits, and chooses.
func (s *Scheduler) turn(p int) (*lane, Priority) {
	for _, l := range s.lanes {
		l.prepare()
	}
	return s.choose(p)
}

func (s *Scheduler) wakeAll() {
	for p := range s.processors {
		s.processors[p].wake.Broadcast()
	}
}

func (s *Scheduler) waits() bool { return s.waitsFor(Interactive) || s.waitsFor(Bulk) }

func (s *Scheduler) waitsFor(p Priority) bool {
	return slices.ContainsFunc(s.lanes, func(l *lane) bool { return l.waits(p) })
}

// choose returns whose turn it is on processor p: the priority decides, then
// which model has waited longest. nil: nobody's, or p is not free.
func (s *Scheduler) choose(p int) (chosen *lane, priority Priority) {
	if s.processors[p].lane != nil {
		return nil, 0
	}
	priority = Interactive
	if s.streak.batches >= bulkShare {
		priority = Bulk
	}
	for range 2 {
		for _, l := range s.lanes {
			if l.runs(p) && s.wanted(l, priority) && s.suits(l, p, priority) && (chosen == nil || l.served < chosen.served) {
				chosen = l
			}
		}
		if chosen != nil {
			return chosen, priority
		}
		priority = 1 - priority
	}
	return nil, 0
}

// suits reports whether processor p may run l's next batch of the priority: that of
// an Aside only short ones of calls that would wait for bulk.
func (s *Scheduler) suits(l *lane, p int, priority Priority) bool {
	most := l.devices[p].aside
	return most == 0 || priority == Interactive && s.processors[p-1].bulk && l.classes[priority].prepared.input.Tokens() <= most
}

// wanted takes out of the prepared batch what nobody waits for any more, fills
// the gaps, and reports whether there is anything to run.
func (s *Scheduler) wanted(l *lane, p Priority) bool {
	b := l.classes[p].prepared
	for b.keep(func(it item) bool { return !it.call.over() || s.drop(l, it) }) {
		l.prepare()
	}
	return l.waits(p)
}

func (s *Scheduler) drop(l *lane, it item) bool {
	s.left(l, it)
	return false
}

// begin takes the prepared batch, and leaves w's spare one in its place.
func (s *Scheduler) begin(p int, l *lane, priority Priority, w *worker) *run {
	now := time.Now()
	b := l.classes[priority].prepared
	l.classes[priority].prepared, w.spare = w.spare, nil
	for _, it := range b.items {
		s.left(l, it)
		s.options.Hooks.Wait(l.info.Model, priority, now.Sub(it.call.arrived))
	}
	s.processors[p].lane, s.processors[p].since, s.processors[p].bulk = l, now, priority == Bulk
	s.batches++
	l.served = s.batches
	if priority == Interactive {
		s.interactive = now
	} else if next := p + 1; next < len(s.processors) {
		s.processors[next].wake.Signal() // an Aside may run what waits already
	}
	if l.devices[p].aside == 0 {
		s.streak.add(priority, b.input.Tokens(), s.waitsFor(Bulk))
	}
	s.room.Broadcast()
	return &run{worker: w, processor: p, lane: l, device: l.devices[p], priority: priority, batch: b}
}

// beside reports whether bulk batches run beside interactive ones.
func (s *Scheduler) beside() bool { return time.Since(s.interactive) < besideLast }

// streak is the interactive batches that have begun since bulk waits, or since its
// last batch.
type streak struct{ batches, tokens int }

func (v *streak) add(p Priority, tokens int, bulkWaits bool) {
	if p == Bulk || !bulkWaits {
		*v = streak{}
		return
	}
	v.batches, v.tokens = v.batches+1, v.tokens+tokens
}

// end frees the processor of a run. What one took that failed, stood still or ran
// aside says nothing of the device's speed.
func (s *Scheduler) end(r *run, tokens int, took time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stood := r.stood.Swap(false); err == nil && !stood && r.device.aside == 0 {
		r.lane.speed.add(tokens, took)
	}
	s.processors[r.processor].lane, s.processors[r.processor].bulk = nil, false
	if s.waits() {
		s.processors[r.processor].wake.Signal()
	}
}
