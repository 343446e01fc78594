package filter

import (
	"sync/atomic"

	"sluice/filter/lru"
)

// Budgets of the caches of one collection, in bytes.
const (
	verdictsBudget = 32 << 20
	setsBudget     = 32 << 20
	entryOverhead  = 256
)

// ledger is what the Views of one collection share: the numbers that they give
// and the caches. A decision does not depend on which documents are in a class,
// and a Set says of which state it is. Numbers are given once per ledger, so
// Views that branch off the same one never mean different things by the same.
type ledger struct {
	nextClass atomic.Uint32
	nextState atomic.Uint64

	verdicts *lru.Cache[askedKey, *verdicts]
	sets     *lru.Cache[askedKey, keptSet]
}

// askedKey: the principal digest holds the tenant, the policies' digest stands
// for their epoch.
type askedKey struct{ policies, principal [32]byte }

// keptSet is a principal's Set in the newest View that was asked for it.
type keptSet struct {
	state uint64
	set   Set
}

func newLedger() *ledger {
	return &ledger{
		verdicts: lru.New[askedKey, *verdicts](verdictsBudget),
		sets:     lru.New[askedKey, keptSet](setsBudget),
	}
}

// fork returns a ledger without decisions that gives other numbers than those
// that were given.
func (l *ledger) fork() *ledger {
	next := newLedger()
	next.nextClass.Store(l.nextClass.Load())
	next.nextState.Store(l.nextState.Load())
	return next
}

func (l *ledger) of(key askedKey) *verdicts {
	return l.verdicts.GetOrPut(key, entryOverhead, newVerdicts)
}

// weigh tells the cache how large the verdicts have become.
func (l *ledger) weigh(key askedKey, v *verdicts) {
	l.verdicts.Put(key, v, entryOverhead+v.size())
}

func (l *ledger) keep(key askedKey, r keptSet) {
	l.sets.Put(key, r, entryOverhead+int(r.set.bitmap.GetSizeInBytes()))
}
