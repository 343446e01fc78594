package ingest

import (
	"context"

	"sluice/store"
)

// Status is a collection's generations, and the progress of the job, if one is under way.
type Status struct {
	Generations []GenerationStatus
	Progress    *Progress
}

// GenerationStatus is a generation with the job that made it.
type GenerationStatus struct {
	store.Generation
	Job Job
}

// Status returns a collection's generations and what is under way.
func (r *Reindexer) Status(ctx context.Context, tenant, collection string) (Status, error) {
	c, err := r.writer.store.Collection(ctx, tenant, collection)
	if err != nil {
		return Status{}, err
	}
	return r.status(c)
}

func (r *Reindexer) status(c store.Collection) (s Status, err error) {
	for _, g := range c.Live() {
		job, err := jobOf(g)
		if err != nil {
			return s, err
		}
		if job.State == Running { // elsewhere, unless there is a run
			s.Progress = &job.Progress
		}
		s.Generations = append(s.Generations, GenerationStatus{g, job})
	}
	if n := r.under()[c.ID]; n != nil {
		p := n.now()
		s.Progress = &p
	}
	return s, nil
}
