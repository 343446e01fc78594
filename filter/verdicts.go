package filter

import (
	"context"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cedar-policy/cedar-go"
)

// classesPerWorker are so many that to decide them takes longer than to start
// a worker.
const classesPerWorker = 512

// verdicts are the decided classes of one principal under one set of policies,
// and of those the permitted ones.
type verdicts struct {
	mu                 sync.Mutex
	decided, permitted *roaring.Bitmap // of class ids
}

func newVerdicts() *verdicts {
	return &verdicts{decided: roaring.New(), permitted: roaring.New()}
}

func (v *verdicts) size() int {
	return int(v.decided.GetSizeInBytes() + v.permitted.GetSizeInBytes())
}

// of returns the verdict about a class, asking the policies the first time.
func (v *verdicts) of(p *Policies, user cedar.Entity, c *class) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.decided.Contains(c.id) {
		_ = v.decide(context.Background(), p, user, []*class{c}, 1) // which has no end
	}
	return v.permitted.Contains(c.id)
}

// decide asks the policies about classes, on several of the cores where they
// are many. If the context ends meanwhile, none is decided. The caller holds v.mu.
func (v *verdicts) decide(ctx context.Context, p *Policies, user cedar.Entity, classes []*class, cores int) error {
	permitted := make([]bool, len(classes))
	workers := min(cores, 1+len(classes)/classesPerWorker)
	var deciding sync.WaitGroup
	for w := range workers {
		from, to := w*len(classes)/workers, (w+1)*len(classes)/workers
		decide := func() { p.permitClasses(ctx, user, classes[from:to], permitted[from:to]) }
		if w == workers-1 {
			decide()
		} else {
			deciding.Go(decide)
		}
	}
	deciding.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	for i, c := range classes {
		v.decided.Add(c.id)
		if permitted[i] {
			v.permitted.Add(c.id)
		}
	}
	return nil
}

// permitClasses decides each class until the context ends. An error is counted
// by Faults, and denies.
func (p *Policies) permitClasses(ctx context.Context, user cedar.Entity, classes []*class, permitted []bool) {
	for i, c := range classes {
		if ctx.Err() != nil {
			return
		}
		if c.broken != nil {
			_ = p.fault(c.broken)
			continue
		}
		permitted[i], _ = p.permit(user, c.document)
	}
}
