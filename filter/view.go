package filter

import (
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cedar-policy/cedar-go"

	"sluice/filter/lru"
)

// View is the access state of one collection of one tenant at one epoch. It is
// immutable and safe for concurrent use: Apply and WithPolicies make another
// one, and searches under way keep theirs.
type View struct {
	tenant   string
	policies *Policies

	rows       rows
	present    *roaring.Bitmap
	undeclared *roaring.Bitmap // documents without a reader list
	readers    shards[Reader, *roaring.Bitmap]
	classes    shards[classKey, classDocuments]

	everywhere *roaring.Bitmap // documents without regions
	regions    shards[string, *roaring.Bitmap]
	dated      *roaring.Bitmap // documents with a bound of validity

	ledger *ledger
	sets   *lru.Cache[[32]byte, Set] // by principal digest
	valid  atomic.Pointer[validity]
}

// NewView returns the View of an empty collection. Nil policies permit nothing.
func NewView(tenant string, policies *Policies) *View {
	return &View{
		tenant:     tenant,
		policies:   policies,
		present:    roaring.New(),
		undeclared: roaring.New(),
		readers:    newShards[Reader, *roaring.Bitmap](),
		classes:    newShards[classKey, classDocuments](),
		everywhere: roaring.New(),
		regions:    newShards[string, *roaring.Bitmap](),
		dated:      roaring.New(),
		ledger:     newLedger(),
		sets:       lru.New[[32]byte, Set](setsBudget),
	}
}

// Policies returns the policies that the View decides by.
func (v *View) Policies() *Policies { return v.policies }

// Len returns the number of documents, readable or not.
func (v *View) Len() int { return int(v.present.GetCardinality()) }

// WithPolicies returns a View of the same documents under other policies.
func (v *View) WithPolicies(policies *Policies) *View {
	next := v.share()
	next.policies = policies
	return next
}

// share returns a View of the same state with empty caches of its own.
func (v *View) share() *View {
	return &View{
		tenant: v.tenant, policies: v.policies,
		rows: v.rows, present: v.present, undeclared: v.undeclared,
		readers: v.readers, classes: v.classes,
		everywhere: v.everywhere, regions: v.regions, dated: v.dated,
		ledger: v.ledger, sets: lru.New[[32]byte, Set](setsBudget),
	}
}

// Resolve returns the documents that the principal may read: those whose
// readers admit it or are undeclared, and whose access class the policies
// permit. A principal of another tenant, or an unknown one, reads nothing.
// With an error (ErrPrincipal) the Set is empty.
//
// While the policies decide about a principal for the first time, only
// searches of the same principal wait for it.
func (v *View) Resolve(p Principal) (Set, error) {
	if p.Tenant != v.tenant || !p.known() || v.policies == nil {
		return Set{}, nil
	}
	digest := p.Digest()
	if set, ok := v.sets.Get(digest); ok {
		return set, nil
	}
	user, err := v.policies.user(p)
	if err != nil {
		return Set{}, err
	}
	readable := v.readable(p)
	visible := roaring.And(readable, v.permitted(digest, user, readable))
	set := Set{visible}
	v.sets.Put(digest, set, entryOverhead+int(visible.GetSizeInBytes()))
	return set, nil
}

// readable returns the documents whose readers admit the principal or are undeclared.
func (v *View) readable(p Principal) *roaring.Bitmap {
	admitting := []*roaring.Bitmap{v.undeclared}
	for _, name := range p.names() {
		if documents, ok := v.readers.get(name); ok {
			admitting = append(admitting, documents)
		}
	}
	return roaring.FastOr(admitting...)
}

// permitted returns the documents of every permitted class that has a readable
// document. Other classes are not asked about.
func (v *View) permitted(principal [32]byte, user cedar.Entity, readable *roaring.Bitmap) *roaring.Bitmap {
	key := verdictsKey{policies: v.policies.Digest(), principal: principal}
	verdicts := v.ledger.of(key)
	verdicts.mu.Lock()
	defer verdicts.mu.Unlock()
	var permitted []*roaring.Bitmap
	for _, c := range v.classes.all() {
		if !verdicts.decided.Contains(c.id) && c.documents.Intersects(readable) {
			verdicts.decide(v.policies, user, c.class)
		}
		if verdicts.permitted.Contains(c.id) {
			permitted = append(permitted, c.documents)
		}
	}
	v.ledger.weigh(key, verdicts)
	return roaring.FastOr(permitted...)
}
