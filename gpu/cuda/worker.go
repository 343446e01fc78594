package cuda

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"sluice/gpu"
	"sluice/gpu/cuda/wire"
)

// worker is one GPU's: a process that is started again whenever it ends, with
// the same models.
type worker struct {
	path    string
	ordinal int
	log     *slog.Logger

	closing context.Context
	close   context.CancelFunc
	ended   chan struct{}

	mu      sync.Mutex
	models  []wire.Load
	life    *life         // the last one
	renewed chan struct{} // closed when there is another
	numbers uint32        // of memory, the last one given
	holders int
	starts  int // that succeeded
	strikes int // batches without a number in them, one after the other
}

const (
	startTime  = 2 * time.Minute // until a worker is there; a driver's first translation of the kernels takes long
	loadTime   = 5 * time.Minute // for a model
	firstPause = 100 * time.Millisecond
	lastPause  = 10 * time.Second
	steady     = time.Minute // a life that lasts so long is no sign of trouble
	mostNaN    = 2           // batches without numbers: the second is the scheduler's probe
)

var (
	errClosed = errors.New("the GPU worker is closed")
	errNaN    = errors.New("the GPU gives no numbers")
)

// startWorker returns when the worker is there.
func startWorker(ctx context.Context, path string, ordinal int, log *slog.Logger) (*worker, error) {
	w := &worker{
		path: path, ordinal: ordinal, log: log.With("device", ordinal), ended: make(chan struct{}), renewed: make(chan struct{}),
	}
	w.closing, w.close = context.WithCancel(context.Background())
	l, err := w.start(ctx)
	if err != nil {
		w.close()
		return nil, err
	}
	w.life = l
	go w.supervise(l)
	return w, nil
}

// start begins a life, with all models loaded.
func (w *worker) start(ctx context.Context) (*life, error) {
	starting, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	l, err := begin(starting, w.path, w.ordinal, w.log)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	models := w.models
	w.mu.Unlock()
	for _, m := range models {
		if err := l.load(ctx, m); err != nil {
			l.end(err)
			<-l.ended
			return nil, err
		}
	}
	w.mu.Lock()
	w.starts++
	w.mu.Unlock()
	w.log.Info("GPU worker is there", "name", l.hello.Device.Name, "process", l.hello.Process, "free_bytes", l.hello.Device.Free)
	return l, nil
}

func (l *life) load(ctx context.Context, m wire.Load) error {
	ctx, cancel := context.WithTimeout(ctx, loadTime)
	defer cancel()
	return l.do(ctx, call{}, func(dst []byte, id uint32) ([]byte, error) { return wire.AppendJSON(dst, wire.KindLoad, id, m) })
}

// supervise starts lives one after the other until the worker is closed.
func (w *worker) supervise(l *life) {
	defer close(w.ended)
	for pause := firstPause; ; {
		began := time.Now()
		select {
		case <-l.ended:
		case <-w.closing.Done():
			l.end(errClosed)
			<-l.ended
			return
		}
		if time.Since(began) > steady {
			pause = firstPause
		}
		w.log.Error("GPU worker ended, and is started again", "why", l.reason())
		if l, pause = w.restart(pause); l == nil {
			return
		}
	}
}

// restart tries until it has a life, with longer and longer pauses; nil if the
// worker is closed meanwhile.
func (w *worker) restart(pause time.Duration) (*life, time.Duration) {
	for {
		select {
		case <-w.closing.Done():
			return nil, 0
		case <-time.After(pause):
		}
		pause = min(2*pause, lastPause)
		l, err := w.start(w.closing)
		if err == nil {
			w.renew(l)
			return l, pause
		}
		w.log.Error("GPU worker does not start", "why", err)
	}
}

func (w *worker) renew(l *life) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.life, w.strikes = l, 0
	close(w.renewed)
	w.renewed = make(chan struct{})
}

// present is the life, and what is closed when there is another.
func (w *worker) present() (l *life, renewed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.life, w.renewed
}

// number is one for memory that no other has.
func (w *worker) number() uint32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.numbers++
	return w.numbers
}

// load adds a model to this life and all that follow, with kernels for its
// products, and returns its number.
func (w *worker) load(ctx context.Context, dir, digest string, kernels ...wire.Tried) (int, error) {
	w.mu.Lock()
	m := wire.Load{Number: len(w.models), Directory: dir, Digest: digest, Kernels: kernels}
	w.models = append(w.models, m)
	l := w.life
	w.mu.Unlock()
	return m.Number, l.load(ctx, m)
}

func (w *worker) run(ctx context.Context, number int, batch *gpu.Batch, out gpu.Output) error {
	w.mu.Lock()
	l := w.life
	w.mu.Unlock()
	want := wire.Wanted(out)
	err := l.do(ctx, call{out: out}, func(dst []byte, id uint32) ([]byte, error) { return wire.AppendRun(dst, id, number, want, batch) })
	if err != nil {
		return fmt.Errorf("GPU %d: %w", w.ordinal, err)
	}
	return w.judge(l, out)
}

// judge ends a life that gives nothing but NaN, twice in a row. One bad text
// does no harm: the scheduler's probe comes between.
func (w *worker) judge(l *life, out gpu.Output) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if numbers(out.Pooled) || numbers(out.Logits) || numbers(out.Tokens) || out.Pooled == nil && out.Logits == nil && out.Tokens == nil {
		w.strikes = 0
		return nil
	}
	if w.strikes++; w.strikes >= mostNaN {
		l.end(fmt.Errorf("%w: %w", ErrWorker, errNaN))
	}
	return fmt.Errorf("GPU %d: %w", w.ordinal, errNaN)
}

// numbers reports whether any of x is one.
func numbers(x []float32) bool {
	for _, v := range x {
		if v-v == 0 {
			return true
		}
	}
	return false
}

func (w *worker) hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holders++
}

// release ends the worker when nobody holds it any more.
func (w *worker) release() error {
	w.mu.Lock()
	w.holders--
	last := w.holders == 0
	w.mu.Unlock()
	if last {
		w.end()
	}
	return nil
}

func (w *worker) end() {
	w.close()
	<-w.ended
}
