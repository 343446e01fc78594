package ingest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"sluice/store"
)

// Of a store that other daemons use too.
const (
	beatEvery  = 5 * time.Second
	lease      = 6 * beatEvery    // without a sign of life, by the clock of the daemon that looks on
	clocksPart = 10 * time.Second // at most, those of two daemons
)

// A ReindexOption changes how a Reindexer works.
type ReindexOption func(*Reindexer)

// Shared is for a store that other daemons use too. A running job is run by the
// daemon that started or resumed it, and taken over by another one when that has
// given no sign of life for half a minute. A generation is not removed before it
// has been out of service for so long that no daemon's search reads it: searchable
// is how long after a switch a search that began before it may go on anywhere.
func Shared(searchable time.Duration) ReindexOption {
	return func(r *Reindexer) { r.beatEvery, r.lease, r.readable = beatEvery, lease, searchable+clocksPart }
}

// claim is the right to run a job: an attempt is one daemon's.
type claim struct {
	generation uint32
	attempt    int
}

// errSuperseded: the job was paused, resumed, taken over or cancelled meanwhile.
var errSuperseded = errors.New("the job has another state by now")

// check reports, as errSuperseded, that the claim does not hold (any more).
func (by claim) check(live []store.Generation) error {
	g, _ := store.Collection{Generations: live}.Generation(store.Building)
	job, err := jobOf(g)
	if err == nil && (job.State != Running || by != claim{g.ID, job.Attempt}) {
		return errSuperseded
	}
	return err
}

// change changes the job while the claim holds.
func (by claim) change(change func(*Job) error) func([]store.Generation) ([]store.Generation, error) {
	return func(live []store.Generation) ([]store.Generation, error) {
		if err := by.check(live); err != nil {
			return nil, err
		}
		return withJob(change)(live)
	}
}

// holds reads whether a claim still does.
func (r *Reindexer) holds(ctx context.Context, c store.Collection, by claim) error {
	now, err := r.writer.store.Collection(ctx, c.Tenant, c.Name)
	if err != nil {
		return err
	}
	return by.check(now.Live())
}

// take makes the job this daemon's to run.
func (r *Reindexer) take(j *Job) {
	j.State, j.Reason, j.Owner = Running, "", r.process
	j.Attempt++
}

// sighting is a running job as another daemon left it last.
type sighting struct {
	claim
	beat  int
	since time.Time
}

// watch gives signs of life of the jobs here, and looks for those that have none.
func (r *Reindexer) watch() {
	ticker := time.NewTicker(r.beatEvery)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			if err := errors.Join(r.beat(r.ctx), r.survey(r.ctx, now)); err != nil && r.ctx.Err() == nil {
				r.log.Warn("looking after reindex jobs failed; trying again", "error", err)
			}
		case <-r.ctx.Done():
			return
		}
	}
}

// beat says in each job's record that it is run here, and how far it is. One
// that is not this daemon's any more is ended.
func (r *Reindexer) beat(ctx context.Context) (failed error) {
	for collection, n := range r.under() {
		_, err := r.writer.store.SetGenerations(ctx, collection, n.change(func(j *Job) error {
			j.Beat++
			j.Progress = n.now()
			return nil
		}))
		if errors.Is(err, errSuperseded) {
			n.cancel()
		} else if err != nil {
			failed = errors.Join(failed, fmt.Errorf("collection %d: %w", collection, err))
		}
	}
	return failed
}

// survey takes over the running jobs that are not run here, and of which there
// has been no sign of life for a lease. One that cannot be read or taken over
// keeps none of the others.
func (r *Reindexer) survey(ctx context.Context, now time.Time) (failed error) {
	all, err := r.writer.store.Collections(ctx)
	if err != nil {
		return err
	}
	here, seen := r.under(), map[uint32]sighting{}
	for _, c := range all {
		g, _ := c.Generation(store.Building)
		job, err := jobOf(g)
		if err != nil {
			r.log.Error("a reindex job is left alone", "collection", c.Name, "error", err)
			continue
		}
		s := sighting{claim{g.ID, job.Attempt}, job.Beat, now}
		if n := here[c.ID]; job.State != Running || n != nil && n.claim == s.claim {
			continue
		}
		if last := r.seen[c.ID]; last.claim == s.claim && last.beat == s.beat {
			s.since = last.since
		}
		if seen[c.ID] = s; now.Sub(s.since) >= r.lease {
			err = r.takeOver(ctx, c, s)
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("collection %s: %w", c.Name, err))
		}
	}
	r.seen = seen
	return failed
}

// takeOver goes on with a job, unless another daemon was faster.
func (r *Reindexer) takeOver(ctx context.Context, c store.Collection, s sighting) error {
	c, err := r.writer.store.SetGenerations(ctx, c.ID, s.change(func(j *Job) error {
		if j.Beat != s.beat {
			return errSuperseded
		}
		r.take(j)
		return nil
	}))
	if errors.Is(err, errSuperseded) {
		return nil
	}
	if err != nil {
		return err
	}
	r.log.Info("going on with a reindex", "collection", c.Name)
	return r.follow(c)
}

// under are the jobs that are run here, by collection.
func (r *Reindexer) under() map[uint32]*run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.runs)
}

// unread reports, as ErrBusy, a generation that searches of other daemons may still read.
func (r *Reindexer) unread(g store.Generation) error {
	job, err := jobOf(g)
	if err != nil {
		return err
	}
	if left := r.readable - r.now().Sub(job.Retired); left > 0 {
		return fmt.Errorf("%w: searches of other daemons may still read generation %d; try again in %s", ErrBusy, g.ID, left.Truncate(time.Second)+time.Second)
	}
	return nil
}
