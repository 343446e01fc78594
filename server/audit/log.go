package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// ErrUnwritten says that a record could not be written, and that the settings
// want what it is about to be refused for that.
var ErrUnwritten = errors.New("the audit log cannot be written")

const (
	queued   = 1024            // records that wait for the writer
	patience = 5 * time.Second // for which an action waits for its record to be written
	resync   = time.Second     // at least, after a sync that failed
)

// What happens to actions whose record cannot be written.
const (
	Refuse   = "refuse"   // they are not done
	Continue = "continue" // they are, and counted
	Off      = "off"      // they have no records; for searches
)

// Options of a Log.
type Options struct {
	Directory      string
	FileBytes      int64         // a larger file is rotated away
	Files          int           // rotated files to keep; 0: all
	Sync           time.Duration // how long a record may be on its way to the disk; 0: none before its action goes on
	Administration string        // Refuse or Continue
	Searches       string        // Refuse, Continue or Off
	Log            *slog.Logger
	Registry       *prometheus.Registry

	disk     disk          // nil: the operating system's
	patience time.Duration // 0: patience
}

// Log is an audit log. It is safe for concurrent use; nil is one that keeps nothing.
type Log struct {
	options   Options
	queue     chan entry
	closing   chan struct{}
	done      chan struct{} // closed by the writer at its end
	lost      atomic.Uint64 // since the last record that was written
	unwritten prometheus.Counter
	written   prometheus.Counter
	unsynced  prometheus.Counter
	unsafe    bool // the last sync failed; the writer's
}

// entry is a record on its way.
type entry struct {
	record Record
	waiter *waiter // nil: nobody waits
}

// Open opens the log in its directory, and goes on where it ended. Close it.
func Open(o Options) (*Log, error) {
	if o.disk == nil {
		o.disk = system{}
	}
	o.patience = cmp.Or(o.patience, patience)
	f, err := openFiles(o)
	if err != nil {
		return nil, fmt.Errorf("opening the audit log in %s: %w", o.Directory, err)
	}
	l := &Log{
		options: o, queue: make(chan entry, queued), closing: make(chan struct{}), done: make(chan struct{}),
		written: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_audit_records_total", Help: "Records written to the audit log."}),
		unwritten: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_audit_unwritten_total", Help: "Records that could not be written to the audit log."}),
		unsynced: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_audit_sync_failures_total", Help: "Failed attempts to bring what is written to the audit log to the disk."}),
	}
	o.Registry.MustRegister(l.written, l.unwritten, l.unsynced)
	go l.run(f)
	return l, nil
}

// Administrative does an administrative action between two records of it, and
// returns its error. do returns the epoch at which what it did holds, with an
// error, too, if it did something; 0: nothing. statusOf is the HTTP status of an
// error. ErrUnwritten: the first record could not be written, and nothing was done.
func (l *Log) Administrative(ctx context.Context, r Record, statusOf func(error) int, do func() (epoch uint64, err error)) error {
	r.Stage = Begin
	if err := l.step(ctx, r); err != nil {
		return err
	}
	epoch, failed := do()
	r.Stage, r.Epoch, r.Status = End, epoch, http.StatusOK
	if failed != nil {
		r.Status = statusOf(failed)
	}
	if err := l.step(context.WithoutCancel(ctx), r); err != nil {
		l.options.Log.Error("the end of an action is not in the audit log", "action", r.Action, "request", r.Request, "error", err)
	}
	return failed
}

// step returns when the record is written.
func (l *Log) step(ctx context.Context, r Record) error {
	if l == nil {
		return nil
	}
	mode := l.options.Administration
	if r.Action == Impersonate { // nobody reads with another's right unrecorded
		mode = Refuse
	}
	return l.record(ctx, r, true, mode)
}

// Search records a search. It waits for the record only where a search without
// one is to be refused, which ErrUnwritten says.
func (l *Log) Search(ctx context.Context, r Record) error {
	if l == nil || l.options.Searches == Off {
		return nil
	}
	return l.record(ctx, r, l.options.Searches == Refuse, l.options.Searches)
}

func (l *Log) record(ctx context.Context, r Record, wait bool, mode string) error {
	r.Time = time.Now().UTC()
	e := entry{record: r}
	if wait {
		ends := r.Stage == End && r.Action != Search // of what is done already
		e.waiter = &waiter{outcome: make(chan error, 1), refuses: mode == Refuse && !ends}
	}
	err := l.offer(ctx, e)
	if mode != Refuse && errors.Is(err, ErrUnwritten) {
		return nil
	}
	return err
}

func (l *Log) offer(ctx context.Context, e entry) error {
	if e.waiter == nil {
		select {
		case l.queue <- e:
			return nil
		default:
			return l.lose(1, errors.New("its queue is full"))
		}
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.options.patience)
	defer cancel()
	select {
	case l.queue <- e:
		return l.await(late, e.waiter)
	case <-l.done:
		return l.lose(1, errors.New("it is closed"))
	case <-late.Done():
		return l.lose(1, late.Err())
	case <-ctx.Done(): // whoever asked for the action is gone: nothing is done, and nothing lost
		return ctx.Err()
	}
}

// await returns the outcome of a queued entry. That its action was cancelled
// meanwhile is no reason to go: the record is on its way.
func (l *Log) await(late context.Context, w *waiter) error {
	select {
	case err := <-w.outcome:
		return err
	case <-l.done:
		return l.leave(w, errors.New("it is closed"))
	case <-late.Done():
		return l.leave(w, late.Err())
	}
}

// leave is the outcome of an entry for which nobody waits any longer. One that
// the writer has not taken is never written.
func (l *Log) leave(w *waiter, reason error) error {
	switch w.leave() {
	case queuing:
		return l.lose(1, reason)
	case taken:
		return fmt.Errorf("%w in time: %w", ErrUnwritten, reason)
	default:
		return <-w.outcome
	}
}

// lose counts records that were not written.
func (l *Log) lose(n int, reason error) error {
	l.lost.Add(uint64(n))
	l.unwritten.Add(float64(n))
	return fmt.Errorf("%w: %w", ErrUnwritten, reason)
}

// Close writes what is queued, syncs and ends.
func (l *Log) Close() {
	if l != nil {
		close(l.closing)
		<-l.done
	}
}

// run is the writer: it writes what has gathered since the last write at once.
func (l *Log) run(f *files) {
	defer close(l.done)
	defer f.close()
	var due <-chan time.Time // of a sync
	for {
		select {
		case e := <-l.queue:
			l.write(f, l.gather(e))
			if f.unsynced && due == nil {
				due = time.After(l.options.Sync)
			}
		case <-due:
			due = nil
			if l.sync(f) != nil {
				due = time.After(max(l.options.Sync, resync))
			}
		case <-l.closing:
			for len(l.queue) > 0 {
				l.write(f, l.gather(<-l.queue))
			}
			return
		}
	}
}

// sync counts failures, and logs when they begin and when they end.
func (l *Log) sync(f *files) error {
	err := f.sync()
	if err != nil {
		l.unsynced.Inc()
	}
	if failed := err != nil; failed != l.unsafe {
		l.unsafe = failed
		if failed {
			l.options.Log.Error("the audit log does not reach the disk; a crash may lose its last records; trying again", "error", err)
		} else {
			l.options.Log.Info("the audit log reaches the disk again")
		}
	}
	return err
}

// gather takes what is queued, without waiting.
func (l *Log) gather(first entry) []entry {
	batch := []entry{first}
	for len(batch) < queued {
		select {
		case e := <-l.queue:
			batch = append(batch, e)
		default:
			return batch
		}
	}
	return batch
}

// write writes those of a batch that somebody still wants. What was refused
// meanwhile and is in the log all the same is said to be refused there.
func (l *Log) write(f *files, batch []entry) {
	batch = slices.DeleteFunc(batch, func(e entry) bool { return e.waiter != nil && !e.waiter.take() })
	if refused := l.put(f, batch); len(refused) > 0 {
		l.put(f, refused)
	}
}

// put returns the ends of the entries that are in the log and whose actions
// are refused.
func (l *Log) put(f *files, batch []entry) (refused []entry) {
	if len(batch) == 0 {
		return nil
	}
	lost := l.lost.Swap(0)
	text, waiting := l.encode(f.sequence, lost, batch)
	written, err := f.append(text, len(batch))
	if written == 0 {
		l.lost.Add(lost)
	}
	l.written.Add(float64(written))
	if err == nil && waiting && l.options.Sync == 0 {
		err = l.sync(f)
	}
	if err != nil {
		err = l.lose(len(batch)-written, err)
		l.options.Log.Error("writing the audit log", "records", len(batch), "written", written, "error", err)
	}
	for i, e := range batch {
		if e.waiter != nil && e.waiter.refused(err) && i < written {
			refused = append(refused, entry{record: e.record.refusal()})
		}
	}
	return refused
}

// encode makes the lines of a batch, the first of which tells of what was lost.
func (l *Log) encode(sequence, lost uint64, batch []entry) (text []byte, waiting bool) {
	for i, e := range batch {
		e.record.Sequence = sequence + uint64(i) + 1
		if i == 0 {
			e.record.Lost = lost
		}
		line, err := json.Marshal(e.record)
		if err != nil { // strings, numbers and times only
			panic(err)
		}
		text = append(append(text, line...), '\n')
		waiting = waiting || e.waiter != nil
	}
	return text, waiting
}
