package gpu

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"sluice/model/tokenizer"
)

// Options of a Scheduler; the zero value is ready to use.
type Options struct {
	// BatchTokens is how many tokens run at once (default 1024). More gains
	// little on a CPU and makes newcomers wait longer for the batch before them.
	BatchTokens int
	// QueueTokens is how many may wait per model and priority (default 262144).
	// Calls that come when so many wait are refused.
	QueueTokens int
	// BatchTime is how long a batch may take (default 30 s). After that its
	// context ends, and the device counts as broken until it returns.
	BatchTime time.Duration
	// Room is what tokenizing takes memory from, whoever calls, beyond
	// tokenizer.FreeBytes of each text (nil: there is no end of it). Its errors end
	// the call.
	Room  tokenizer.Room
	Hooks Hooks
}

// bulkShare is how many interactive batches run for a bulk batch that waits, and how
// many interactive tokens for one of bulk.
const bulkShare = 4

// Until besideLast after an interactive batch a bulk one is no larger than runs in
// besideTime at the speed measured, or than its share of the tokens, though
// besideTokens are always allowed: fewer would not keep a CPU's cores busy.
const (
	besideLast   = time.Second
	besideTime   = 6 * time.Millisecond
	besideTokens = 128
)

// Scheduler runs texts in batches on the devices of one or several models. It
// is the Embedder of the first; Embedder returns any.
//
// These are its rules:
//
//  1. An idle device starts at once on what there is; while it works, the next batch
//     fills up.
//  2. A bulk batch runs when nothing interactive waits, or after bulkShare interactive
//     batches (choose).
//  3. Beside interactive batches it is short: of besideTime, or of bulk's share of the
//     tokens (lane.budget).
//  4. While it runs, an Aside runs short interactive batches (suits).
//  5. While a search is under way it stands still, but for no longer than stillMost, nor
//     where interactive texts wait for its end (worker.giveWay).
//
// So a call waits for one bulk batch, and one more for every bulkShare interactive
// batches that go before it.
type Scheduler struct {
	options    Options
	lanes      []*lane
	tokenizing chan struct{} // bounds how many tokenize
	encodings  sync.Pool     // of *tokenizer.Encoding

	guests sync.Pool // of *worker, for callers

	open    context.Context // ends when Close begins
	close   context.CancelFunc
	base    context.Context // of the batches
	cut     context.CancelFunc
	running sync.WaitGroup // the workers, the probes of sick devices, and what callers left

	foreground foreground

	mu          sync.Mutex
	room        *sync.Cond // something stopped waiting
	processors  []processor
	closed      bool   // no more calls are let in
	abandoned   bool   // and those that were are given up
	submitting  int    // calls that were let in and still enqueue texts
	batches     uint64 // that have begun
	streak      streak
	interactive time.Time // when the last such batch began
}

// processor is what runs one batch at a time.
type processor struct {
	lane  *lane      // whose batch runs; nil: none
	since time.Time  // when it began
	bulk  bool       // it is a bulk batch
	wake  *sync.Cond // it is free and something waits, or closed is set
}

var _ Embedder = (*Scheduler)(nil)

// NewScheduler starts a scheduler. It owns the devices from here on; on an
// error they stay the caller's.
func NewScheduler(o Options, models ...Served) (*Scheduler, error) {
	s, err := newScheduler(o, models)
	if err != nil {
		return nil, err
	}
	s.start()
	return s, nil
}

// newScheduler makes one that runs nothing yet.
func newScheduler(o Options, models []Served) (*Scheduler, error) {
	s := &Scheduler{options: o.filled(), tokenizing: make(chan struct{}, runtime.GOMAXPROCS(0))}
	s.encodings.New = func() any { return new(tokenizer.Encoding) }
	s.guests.New = func() any { return s.newWorker() }
	s.room = sync.NewCond(&s.mu)
	for _, v := range models {
		l, err := newLane(s, v)
		if err != nil {
			return nil, err
		}
		s.lanes = append(s.lanes, l)
		for range len(v.Devices) - len(s.processors) {
			s.processors = append(s.processors, processor{wake: sync.NewCond(&s.mu)})
		}
	}
	return s, nil
}

func (s *Scheduler) start() {
	s.base, s.cut = context.WithCancel(context.Background())
	s.open, s.close = context.WithCancel(s.base)
	for _, l := range s.lanes {
		for i := range l.devices {
			s.options.Hooks.Health(l.info.Model, i, nil)
		}
	}
	for p := range s.processors {
		for range 2 { // one has a batch run while the other prepares, or delivers
			s.running.Go(func() { s.newWorker().work(p) })
		}
	}
}

func (s *Scheduler) newWorker() *worker {
	w := &worker{scheduler: s, spare: newBatch(), part: newBatch()}
	w.yield = w.giveWay
	return w
}

func (o Options) filled() Options {
	if o.BatchTokens <= 0 {
		o.BatchTokens = 1024
	}
	if o.QueueTokens <= 0 {
		o.QueueTokens = 256 << 10
	}
	if o.BatchTime <= 0 {
		o.BatchTime = 30 * time.Second
	}
	o.Hooks = o.Hooks.filled()
	return o
}

// Info describes the first model.
func (s *Scheduler) Info() Info { return s.lanes[0].Info() }

// Embed has the first model embed.
func (s *Scheduler) Embed(ctx context.Context, r Request) ([]Embedding, error) {
	return s.lanes[0].Embed(ctx, r)
}

// Embedder returns that of the model with this name, if it embeds.
func (s *Scheduler) Embedder(name string) (Embedder, bool) {
	if l := s.lane(name, false); l != nil {
		return l, true
	}
	return nil, false
}

func (s *Scheduler) lane(name string, scores bool) *lane {
	for _, l := range s.lanes {
		if l.info.Model == name && l.scores == scores {
			return l
		}
	}
	return nil
}

// Tokenizer is that of the first model.
func (s *Scheduler) Tokenizer() *tokenizer.Tokenizer { return s.lanes[0].tokenizer }

// Close lets in no more calls, finishes those that wait, and closes the
// devices. When ctx ends it fails what is left with ErrClosed. A device that
// does not return even then is left open, and the error says so.
func (s *Scheduler) Close(ctx context.Context) error {
	s.shut()
	ended := make(chan struct{})
	go func() { s.running.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
		s.abandon()
		select {
		case <-ended:
		case <-time.After(cutGrace):
			return fmt.Errorf("%w: one does not return and is left open", ErrDevice)
		}
	}
	s.cut()
	return s.closeDevices()
}

const cutGrace = time.Second // for a device whose batch was cut off

// shut lets in no more calls.
func (s *Scheduler) shut() {
	s.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.abandonHopeless()
}

// abandon fails all that waits, and ends what runs.
func (s *Scheduler) abandon() {
	s.cut()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned = true
	s.abandonHopeless()
}

// abandonHopeless fails all that waits for what does not come.
func (s *Scheduler) abandonHopeless() {
	for _, l := range s.lanes {
		if s.hopeless(l) {
			s.empty(l)
		}
	}
	s.wakeAll()
	s.room.Broadcast()
}

func (s *Scheduler) empty(l *lane) {
	for l.prepare(); l.waits(Interactive) || l.waits(Bulk); l.prepare() {
		for p := range l.classes {
			b := l.classes[p].prepared
			for _, it := range b.items {
				s.left(l, it)
				it.call.fail(ErrClosed)
			}
			b.reset()
		}
	}
}

func (s *Scheduler) closeDevices() error {
	var all []error
	for _, l := range s.lanes {
		for _, d := range l.devices {
			all = append(all, d.Close())
		}
	}
	return errors.Join(all...)
}
