package cpu

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// team is the goroutines that share a device's work: its workers, and whoever
// calls run. One run at a time.
type team struct {
	size    int
	start   chan int // a worker's number wakes one
	workers sync.WaitGroup

	do       func(worker, task int)
	tasks    int64
	next     atomic.Int64
	busy     sync.WaitGroup
	panicked atomic.Pointer[string] // by the first task that did
}

func newTeam(size int) *team {
	t := &team{size: size, start: make(chan int)}
	for range size - 1 {
		t.workers.Go(t.serve)
	}
	return t
}

func (t *team) serve() {
	for worker := range t.start {
		t.work(worker)
		t.busy.Done()
	}
}

// run calls do once for every task in [0, tasks), and returns when all are
// done. worker, below size, is never the same in two calls at the same time. If
// one panics, some of the others may not be done, and then run panics.
func (t *team) run(tasks int, do func(worker, task int)) {
	t.do, t.tasks = do, int64(tasks)
	t.next.Store(0)
	for worker := 1; worker < min(t.size, tasks); worker++ {
		t.busy.Add(1)
		t.start <- worker
	}
	t.work(0)
	t.busy.Wait()
	if reason := t.panicked.Swap(nil); reason != nil {
		panic(*reason)
	}
}

func (t *team) work(worker int) {
	defer t.recover()
	for task := t.next.Add(1) - 1; task < t.tasks; task = t.next.Add(1) - 1 {
		t.do(worker, int(task))
	}
}

// recover keeps a worker's panic for run: nobody could recover it here.
func (t *team) recover() {
	if r := recover(); r != nil {
		reason := fmt.Sprintf("%v\n%s", r, debug.Stack())
		t.panicked.CompareAndSwap(nil, &reason)
	}
}

func (t *team) close() {
	close(t.start)
	t.workers.Wait()
}
