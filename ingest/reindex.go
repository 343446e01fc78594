package ingest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"sluice/chunk"
	"sluice/index"
	"sluice/store"
)

const (
	buildsAtOnce  = 4                      // documents; their chunks share batches
	recordsAtOnce = 256                    // compared with what is built
	firstRetry    = 100 * time.Millisecond // after a device that is overloaded or restarts
	lastRetry     = 5 * time.Second
)

// DefaultBound is by how much the mean relevance of a query set may fall.
const DefaultBound = 0.02

// Generations is what searches run on, as a reindex needs it.
type Generations interface {
	Await(ctx context.Context, epoch uint64) error
	// Idle blocks until no search reads a generation that does not serve.
	Idle(ctx context.Context, generation uint32) error
	// Keys searches one generation (0: the serving one) and returns the documents
	// found, best first, each once.
	Keys(ctx context.Context, tenant, collection string, generation uint32, q Query, k int) ([]string, error)
}

// Reindexer runs reindex jobs: at most one for a collection, whose record in the
// store says which attempt of which daemon that is. Close ends them; the next
// process goes on with them.
type Reindexer struct {
	writer  *Writer
	serving Generations
	log     *slog.Logger
	process string // the name of this one among those that run jobs
	now     func() time.Time

	// 0 unless other daemons use the store too
	beatEvery time.Duration // between signs of life
	lease     time.Duration // without one, until a job is taken over
	readable  time.Duration // for which searches elsewhere may read what ceased to serve

	ctx   context.Context // of all jobs
	stop  context.CancelFunc
	group sync.WaitGroup

	mu        sync.Mutex
	runs      map[uint32]*run // by collection
	estimates map[estimated]Estimate
	count     Embeddings // of all jobs of this process

	seen map[uint32]sighting // by collection, the running jobs that are not run here; survey's
}

// estimated names an estimate, which its job takes over.
type estimated struct{ tenant, collection, chunker string }

// Totals is what all jobs of this process do, and did.
type Totals struct {
	Running, Documents, Of int // of those under way
	Embedded, Reused       int // chunks, since the start
}

// Totals adds up all jobs.
func (r *Reindexer) Totals() Totals {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := Totals{Running: len(r.runs), Embedded: r.count.New, Reused: r.count.Reused}
	for _, n := range r.runs {
		p := n.now()
		t.Documents += p.Documents
		t.Of += p.Of
	}
	return t
}

// run is a job under way.
type run struct {
	claim
	cancel context.CancelFunc
	done   chan struct{}

	mu       sync.Mutex
	progress Progress
	began    time.Time
	before   int // documents that were there when it began
}

// NewReindexer goes on with the jobs that an earlier process left running.
func NewReindexer(ctx context.Context, w *Writer, serving Generations, log *slog.Logger, options ...ReindexOption) (*Reindexer, error) {
	r := &Reindexer{
		writer: w, serving: serving, log: log, process: rand.Text(), now: time.Now,
		runs: map[uint32]*run{}, estimates: map[estimated]Estimate{},
	}
	for _, option := range options {
		option(r)
	}
	r.ctx, r.stop = context.WithCancel(context.Background())
	if err := r.survey(ctx, r.now()); err != nil {
		r.Close()
		return nil, err
	}
	if r.beatEvery > 0 {
		r.group.Go(r.watch)
	}
	return r, nil
}

// Close stops the jobs where they are and waits for them.
func (r *Reindexer) Close() {
	r.stop()
	r.group.Wait()
}

// reindexable returns a collection that a job by the chunker may begin on.
func (r *Reindexer) reindexable(ctx context.Context, tenant, collection, chunker string) (store.Collection, error) {
	c, err := r.writer.store.Collection(ctx, tenant, collection)
	if err != nil {
		return c, err
	}
	if c.Settings.Brings() {
		return c, fmt.Errorf("%w: the documents of this collection bring their passages; there is nothing to chunk", store.ErrInvalid)
	}
	if _, err := chunk.Named(chunker); err != nil {
		return c, fmt.Errorf("%w: %w", store.ErrInvalid, err)
	}
	return c, nil
}

// ErrBusy says that the generations are not what the request needs.
var ErrBusy = errors.New("not now")

// Start begins a job; its estimate is kept with it.
func (r *Reindexer) Start(ctx context.Context, tenant, collection, chunker string, bound float64) (Status, error) {
	c, err := r.reindexable(ctx, tenant, collection, chunker)
	if err == nil {
		err = checkFree(c.Live())
	}
	if err != nil {
		return Status{}, err
	}
	estimate, err := r.takeEstimate(ctx, estimated{tenant, collection, chunker})
	if err != nil {
		return Status{}, err
	}
	return r.launch(ctx, tenant, collection, chunker, Job{Estimate: estimate, Bound: bound})
}

// takeEstimate takes over the one that was asked for before, or makes one.
func (r *Reindexer) takeEstimate(ctx context.Context, of estimated) (Estimate, error) {
	r.mu.Lock()
	estimate, there := r.estimates[of]
	delete(r.estimates, of)
	r.mu.Unlock()
	if there {
		return estimate, nil
	}
	return r.estimate(ctx, of)
}

// launch adds the building generation of a job.
func (r *Reindexer) launch(ctx context.Context, tenant, collection, chunker string, job Job) (Status, error) {
	job.Started = r.now().UTC()
	r.take(&job)
	return r.change(ctx, tenant, collection, func(live []store.Generation) ([]store.Generation, error) {
		if err := checkFree(live); err != nil {
			return nil, err
		}
		g := store.Generation{Role: store.Building, Chunker: chunker, Model: r.writer.embedder.Info().Digest}
		err := job.keep(&g)
		return append(live, g), err
	})
}

// change changes the generations, waits until searches run on them, and starts
// or ends the collection's run as the job then says.
func (r *Reindexer) change(ctx context.Context, tenant, collection string, change func([]store.Generation) ([]store.Generation, error)) (Status, error) {
	c, err := r.writer.store.Collection(ctx, tenant, collection)
	if err != nil {
		return Status{}, err
	}
	if c, err = r.writer.store.SetGenerations(ctx, c.ID, change); err != nil {
		return Status{}, err
	}
	if err := r.follow(c); err != nil {
		return Status{}, err
	}
	if err := r.await(ctx); err != nil {
		return Status{}, err
	}
	return r.status(c)
}

func (r *Reindexer) await(ctx context.Context) error {
	epoch, err := r.writer.store.Epoch(ctx)
	if err != nil {
		return err
	}
	return r.serving.Await(ctx, epoch)
}

// follow starts or ends the run of a collection, as its building generation says.
func (r *Reindexer) follow(c store.Collection) error {
	g, _ := c.Generation(store.Building)
	job, err := jobOf(g)
	if err != nil {
		return err
	}
	by, here := claim{g.ID, job.Attempt}, job.State == Running && job.Owner == r.process
	r.halt(c.ID, func(n *run) bool { return !here || n.claim != by })
	if here {
		r.start(c, by, job.Bound)
	}
	return nil
}

// halt ends the run of a collection, if it is one of those, and waits for its end.
func (r *Reindexer) halt(collection uint32, those func(*run) bool) {
	if n := r.under()[collection]; n != nil && those(n) {
		n.cancel()
		<-n.done
	}
}

// start runs the job of a collection, unless it runs already.
func (r *Reindexer) start(c store.Collection, by claim, bound float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runs[c.ID] != nil || r.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(r.ctx)
	n := &run{claim: by, cancel: cancel, done: make(chan struct{}), began: time.Now()}
	r.runs[c.ID] = n
	r.group.Go(func() {
		defer close(n.done)
		defer cancel()
		err := index.Guarded(func() error { return r.run(ctx, c, bound, n) })()
		r.mu.Lock()
		delete(r.runs, c.ID)
		r.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			r.failed(ctx, c, by, err)
		}
	})
}

// failed keeps why a job ended; of a panic that is for the log alone. One that
// somebody else changed meanwhile has not failed: its generation may be gone.
func (r *Reindexer) failed(ctx context.Context, c store.Collection, by claim, reason error) {
	kept := reason
	if errors.Is(reason, index.ErrPanicked) {
		kept = errors.New("this is the daemon's fault; its log has more")
	}
	_, err := r.writer.store.SetGenerations(ctx, c.ID, by.change(func(j *Job) error {
		j.State, j.Reason = Failed, kept.Error()
		return nil
	}))
	if errors.Is(err, errSuperseded) {
		return
	}
	r.log.Error("a reindex failed", "collection", c.Name, "error", reason)
	if err != nil {
		r.log.Error("the failure of a reindex could not be kept; the next start tries it again", "collection", c.Name, "error", err)
	}
}

// withJob changes the job of the building generation.
func withJob(change func(*Job) error) func([]store.Generation) ([]store.Generation, error) {
	return func(live []store.Generation) ([]store.Generation, error) {
		for i, g := range live {
			if g.Role != store.Building {
				continue
			}
			job, err := jobOf(g)
			if err == nil {
				err = change(&job)
			}
			if err != nil {
				return nil, err
			}
			return live, job.keep(&live[i])
		}
		return nil, fmt.Errorf("%w: no reindex of this collection is under way", ErrBusy)
	}
}

// run builds until nothing is missing, passes the gates and switches.
func (r *Reindexer) run(ctx context.Context, c store.Collection, bound float64, n *run) error {
	g, _ := c.Generation(store.Building)
	for missing := true; missing; {
		var err error
		if missing, err = r.pass(ctx, c, g, n); err != nil {
			return err
		}
	}
	if err := errors.Join(r.holds(ctx, c, n.claim), r.await(ctx)); err != nil {
		return err
	}
	gates, err := r.gates(ctx, c, g, bound)
	if err != nil {
		return err
	}
	return r.conclude(ctx, c, n, gates)
}

// conclude switches, or says which gate refused. Nothing comes between the
// gates and the switch that they would not let pass: from the last document on,
// every write goes into both generations.
func (r *Reindexer) conclude(ctx context.Context, c store.Collection, n *run, gates []Gate) error {
	refused, at := refusal(gates), r.now().UTC()
	_, err := r.writer.store.SetGenerations(ctx, c.ID, func(live []store.Generation) ([]store.Generation, error) {
		next, err := n.change(func(j *Job) error {
			j.State, j.Reason, j.Gates, j.Made = Refused, refused, gates, j.Made.plus(n.now().Embeddings)
			if refused == "" {
				j.State, j.Ended = Switched, at
			}
			return nil
		})(live)
		if err == nil && refused == "" {
			err = turn(next, store.Building, at)
		}
		return next, err
	})
	if err != nil {
		return err
	}
	r.log.Info("a reindex has ended", "collection", c.Name, "refused", refused)
	return r.await(ctx)
}

// Pause stops a running job where it is.
func (r *Reindexer) Pause(ctx context.Context, tenant, collection string) (Status, error) {
	return r.change(ctx, tenant, collection, withJob(func(j *Job) error {
		if j.State != Running {
			return fmt.Errorf("%w: the reindex is %s", ErrBusy, j.State)
		}
		j.State = Paused
		return nil
	}))
}

// Resume goes on with a job that does not run; bound < 0: by the bound it has.
func (r *Reindexer) Resume(ctx context.Context, tenant, collection string, bound float64) (Status, error) {
	return r.change(ctx, tenant, collection, withJob(func(j *Job) error {
		if j.State == Running {
			return fmt.Errorf("%w: the reindex is running", ErrBusy)
		}
		r.take(j)
		if bound >= 0 {
			j.Bound = bound
		}
		return nil
	}))
}

// Cancel ends a job and removes what it built.
func (r *Reindexer) Cancel(ctx context.Context, tenant, collection string) (Status, error) {
	return r.drop(ctx, tenant, collection, store.Building, "no reindex of this collection is under way")
}
