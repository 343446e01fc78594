package gpu

import (
	"runtime"
	"sync/atomic"
	"time"
)

// While searches are under way, what computes a bulk batch stands still: a search is
// mostly other work than its texts, and waits for a core as it does for a device.
const (
	stillStep = 200 * time.Microsecond // between two looks whether that is over
	stillMost = bulkShare * besideTime // a batch, in all: where searches never end, bulk has its share of the time
	stillEach = 2                      // goroutines at a time for a search, which has two legs
)

// foreground counts the searches under way, and who stands still for them.
type foreground struct{ searches, still atomic.Int32 }

// EnterForeground notes that a search is under way, until LeaveForeground.
func (s *Scheduler) EnterForeground() { s.foreground.searches.Add(1) }

// LeaveForeground notes that one is no more.
func (s *Scheduler) LeaveForeground() { s.foreground.searches.Add(-1) }

// giveWay is Batch.GiveWay of the bulk batch that w runs.
func (w *worker) giveWay() {
	runtime.Gosched()
	f := &w.scheduler.foreground
	if f.searches.Load() == 0 {
		return
	}
	defer f.still.Add(-1)
	if f.still.Add(1) > stillEach*f.searches.Load() {
		return
	}
	for f.searches.Load() > 0 && time.Since(w.began) < stillMost && !w.scheduler.delays() {
		w.stood.Store(true)
		time.Sleep(stillStep)
	}
}

// delays reports whether interactive texts wait, for a bulk batch to end.
func (s *Scheduler) delays() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waitsFor(Interactive)
}
