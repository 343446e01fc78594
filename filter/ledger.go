package filter

import (
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cedar-policy/cedar-go"

	"sluice/filter/lru"
)

// Budgets of the caches of one collection, in bytes.
const (
	verdictsBudget = 32 << 20
	setsBudget     = 32 << 20
	entryOverhead  = 256
)

// ledger holds the decisions about access classes, per principal and policies.
// The Views of one collection share it: a decision does not depend on which
// documents are in a class. Class ids are given once per ledger, so Views that
// branch off the same one never mean different classes by the same id.
type ledger struct {
	nextClass atomic.Uint32
	verdicts  *lru.Cache[verdictsKey, *verdicts]
}

// verdictsKey: the principal digest holds the tenant, the policies' digest
// stands for their epoch.
type verdictsKey struct{ policies, principal [32]byte }

// verdicts are the decided classes of one principal, and of those the permitted ones.
type verdicts struct {
	mu                 sync.Mutex
	decided, permitted *roaring.Bitmap
}

func newLedger() *ledger {
	return &ledger{verdicts: lru.New[verdictsKey, *verdicts](verdictsBudget)}
}

func (l *ledger) of(key verdictsKey) *verdicts {
	return l.verdicts.GetOrPut(key, entryOverhead, func() *verdicts {
		return &verdicts{decided: roaring.New(), permitted: roaring.New()}
	})
}

// weigh tells the cache how large the verdicts have become.
func (l *ledger) weigh(key verdictsKey, v *verdicts) {
	size := v.decided.GetSizeInBytes() + v.permitted.GetSizeInBytes()
	l.verdicts.Put(key, v, entryOverhead+int(size))
}

// decide asks the policies about a class. The caller holds v.mu.
func (v *verdicts) decide(p *Policies, user cedar.Entity, c *class) {
	if p.permitClass(user, c) {
		v.permitted.Add(c.id)
	}
	v.decided.Add(c.id)
}
