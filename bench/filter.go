package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"time"

	"sluice/bench/figures"
	"sluice/filter"
)

const filterTenant = "bench"

// FilterOptions says what Filter measures.
type FilterOptions struct {
	Documents int // default 100,000
	Classes   int // of access, over the documents in turn (default 10,000)
	Rounds    int // default 5
	Log       io.Writer
}

func (o *FilterOptions) setDefaults() {
	if o.Documents <= 0 {
		o.Documents = 100_000
	}
	if o.Classes <= 0 {
		o.Classes = 10_000
	}
	if o.Rounds <= 0 {
		o.Rounds = 5
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
}

// Filter measures who may read what, in this process: half of the documents have
// a list of readers, all have a class that Cedar decides about. The caller sets
// the file's Command.
//
// Figures, medians over the rounds of an operation's mean, with .min and .max:
// resolve.cold_ms, a principal's Set when nobody has asked for it; resolve.warm_us,
// again; resolve.changed_us, after the access of one document has changed;
// revocation_us, taking one document away until the Set is without it;
// recheck_us of one candidate; and_10_us and and_not_10_us, of two random Sets that
// hold a tenth of all documents, and with 1 and 50. Also visible, what the
// principal is admitted to, and bytes_per_document of memory.
func Filter(ctx context.Context, o FilterOptions) (figures.File, error) {
	o.setDefaults()
	b := &filterBench{FilterOptions: o, recorder: newRecorder(ctx, o.Log)}
	return b.File, b.run(ctx)
}

type filterBench struct {
	FilterOptions
	recorder
	view *filter.View
	asks int // principals that have asked
}

// operation is what is timed. So many make a turn, which is timed as a whole:
// what takes less than the clock itself cannot be timed alone.
type operation struct {
	name        string
	unit        time.Duration
	turns, many int
	before      func() // each turn, not timed; may be nil
	do          func() error
}

func (b *filterBench) run(ctx context.Context) error {
	if err := b.fill(); err != nil {
		return err
	}
	operations, err := b.operations()
	if err != nil {
		return err
	}
	rounds := make([][]float64, len(operations))
	for range b.Rounds {
		for i, op := range operations {
			mean, err := op.mean(ctx)
			if err != nil {
				return fmt.Errorf("measuring %s: %w", op.name, err)
			}
			rounds[i] = append(rounds[i], mean)
		}
	}
	for i, op := range operations {
		b.spread(op.name, rounds[i])
	}
	return nil
}

// mean is what the operation takes, in its unit.
func (op operation) mean(ctx context.Context) (float64, error) {
	var took time.Duration
	for range op.turns {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if op.before != nil {
			op.before()
		}
		began := time.Now()
		for range op.many {
			if err := op.do(); err != nil {
				return 0, err
			}
		}
		took += time.Since(began)
	}
	return float64(took) / float64(op.unit) / float64(op.turns*op.many), nil
}

const filterSchema = `entity Group;
entity User in [Group] { tenant: String, clearance?: Long, department?: String };
entity Document { tenant: String, level?: Long, departments?: Set<String>, class?: Long };
action read appliesTo { principal: User, resource: Document };
`

var filterPolicies = map[string]string{"clearance.cedar": `permit (principal, action == Action::"read", resource)
when { principal.tenant == resource.tenant && principal has clearance && resource has level && resource.level <= principal.clearance };
`, "departments.cedar": `forbid (principal, action == Action::"read", resource)
when { resource has departments && !resource.departments.isEmpty() }
unless { principal has department && resource has departments && resource.departments.contains(principal.department) };
`}

// fill makes the View, and records what it takes of memory.
func (b *filterBench) fill() error {
	policies, err := filter.ParsePolicies(filterSchema, filterPolicies)
	if err != nil {
		return err
	}
	before := heap()
	changes := make([]filter.Change, b.Documents)
	for i := range changes {
		changes[i] = filter.Change{Ordinal: uint32(i), Access: b.access(i)}
	}
	b.view = filter.NewView(filterTenant, policies).Apply(changes)
	changes = nil
	b.Figures["bytes_per_document"] = max(0, heap()-before) / float64(b.Documents)
	set, err := b.view.Resolve(b.principal(0))
	if set.IsEmpty() && err == nil {
		err = errors.New("the principal sees nothing")
	}
	b.Figures["visible"] = float64(set.Len())
	return err
}

func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// access is of the class that the number has. Every other document is for one of
// a hundred groups and one of a thousand users.
func (b *filterBench) access(i int) filter.Access {
	class := i % b.Classes
	a := filter.Access{
		Readers:    filter.Readers{Undeclared: i%2 == 0},
		Attributes: filter.Attributes{"level": int64(class % 4), "departments": []string{fmt.Sprintf("department-%d", class/16)}},
	}
	if class%16 < 8 { // open to all departments, and yet a class of its own
		a.Attributes = filter.Attributes{"level": int64(class % 4), "departments": []string{}, "class": int64(class)}
	}
	if i%2 == 1 {
		a.Readers.List = []filter.Reader{filter.Group(fmt.Sprintf("group-%d", i%100)), filter.User(fmt.Sprintf("user-%d", i%1000))}
	}
	return a
}

func (b *filterBench) principal(i int) filter.Principal {
	return filter.Principal{
		Tenant: filterTenant, Subject: fmt.Sprintf("user-%d", i), Groups: []string{"group-1", "group-3"},
		Attributes: filter.Attributes{"clearance": int64(2), "department": "department-7"},
	}
}

func (b *filterBench) operations() ([]operation, error) {
	revoked := filter.Access{}
	judge, err := b.view.Judge(b.view.Policies(), b.principal(0))
	if err != nil {
		return nil, err
	}
	candidate, at := b.access(0), 0
	resolve := func() error { _, err := b.view.Resolve(b.principal(0)); return err }
	all := []operation{
		{"resolve.cold_ms", time.Millisecond, 10, 1, nil, func() error {
			b.asks++
			_, err := b.view.Resolve(b.principal(b.asks))
			return err
		}},
		{"resolve.warm_us", time.Microsecond, 10, 1000, nil, resolve},
		{"resolve.changed_us", time.Microsecond, 200, 1, func() {
			at = (at + 7919) % b.Documents
			b.apply(at, b.access(at+1))
		}, resolve},
		{"revocation_us", time.Microsecond, 200, 1, func() {
			b.apply(at, b.access(at))
			at = 2 * ((at + 7919) % (b.Documents / 2))
		}, func() error {
			b.apply(at, revoked)
			set, err := b.view.Resolve(b.principal(0))
			if set.Contains(uint32(at)) {
				return fmt.Errorf("document %d was taken away, and is in the Set", at)
			}
			return err
		}},
		{"recheck_us", time.Microsecond, 10, 1000, nil, func() error { judge.Admits(candidate); return nil }},
	}
	for _, percent := range []int{1, 10, 50} {
		x, y := b.random(percent, 1), b.random(percent, 2)
		all = append(all,
			operation{fmt.Sprintf("and_%d_us", percent), time.Microsecond, 5, 20, nil, func() error { x.And(y); return nil }},
			operation{fmt.Sprintf("and_not_%d_us", percent), time.Microsecond, 5, 20, nil, func() error { x.AndNot(y); return nil }})
	}
	return all, nil
}

func (b *filterBench) apply(ordinal int, a filter.Access) {
	b.view = b.view.Apply([]filter.Change{{Ordinal: uint32(ordinal), Access: a}})
}

// random is so many percent of the documents.
func (b *filterBench) random(percent int, seed uint64) filter.Set {
	r := rand.New(rand.NewPCG(seed, uint64(percent)))
	var ordinals []uint32
	for i := range b.Documents {
		if r.IntN(100) < percent {
			ordinals = append(ordinals, uint32(i))
		}
	}
	return filter.SetOf(ordinals...)
}
