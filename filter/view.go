package filter

import (
	"context"
	"runtime"
	"slices"
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

	rows       table[*row]
	names      table[Reader] // of the readers, by id
	lastReader uint32        // id, given last
	present    *roaring.Bitmap
	undeclared *roaring.Bitmap // documents without a reader list
	readers    shards[Reader, posting]
	classes    shards[classKey, classDocuments]

	everywhere *roaring.Bitmap // documents without regions
	regions    shards[string, *roaring.Bitmap]
	dated      *roaring.Bitmap // documents with a bound of validity

	ledger  *ledger
	cores   int          // that decide many classes
	lookups *lru.Lookups // of Sets; all Views but those of a Fork share it
	state   uint64       // of the documents; given by the ledger
	history history
	valid   atomic.Pointer[validity]
}

// NewView returns the View of an empty collection. Nil policies permit nothing.
func NewView(tenant string, policies *Policies) *View {
	return &View{
		tenant:     tenant,
		policies:   policies,
		present:    roaring.New(),
		undeclared: roaring.New(),
		readers:    newShards[Reader, posting](),
		classes:    newShards[classKey, classDocuments](),
		everywhere: roaring.New(),
		regions:    newShards[string, *roaring.Bitmap](),
		dated:      roaring.New(),
		ledger:     newLedger(),
		cores:      runtime.GOMAXPROCS(0),
		lookups:    &lru.Lookups{},
	}
}

// CountedBy returns the View; it, and what is made from it, counts there how
// often a principal's Set was at hand, and up to date.
func (v *View) CountedBy(l *lru.Lookups) *View {
	next := v.share()
	next.lookups = l
	return next
}

// DecidedOn returns the View; it, and what is made from it, has so many cores decide
// where classes are many. Without it they are those that the runtime uses.
func (v *View) DecidedOn(cores int) *View {
	next := v.share()
	next.cores = cores
	return next
}

// Policies returns the policies that the View decides by.
func (v *View) Policies() *Policies { return v.policies }

// Classes returns the number of access classes.
func (v *View) Classes() int { return v.classes.size }

// Len returns the number of documents, readable or not.
func (v *View) Len() int { return int(v.present.GetCardinality()) }

// Documents returns a range function over the ordinals of all documents, ascending.
func (v *View) Documents(yield func(uint32) bool) { v.present.Iterate(yield) }

// WithPolicies returns a View of the same documents under other policies.
func (v *View) WithPolicies(policies *Policies) *View {
	next := v.share()
	next.policies = policies
	return next
}

// Fork returns a View of the same documents and policies with caches of its
// own, for suppositions: what is asked of it, and of what is made from it, costs
// the searches nothing that they know.
func (v *View) Fork() *View {
	next := v.share()
	next.ledger, next.lookups = v.ledger.fork(), &lru.Lookups{}
	return next
}

// Readers returns a range function over all readers that documents name.
func (v *View) Readers(yield func(Reader) bool) {
	for name := range v.readers.all() {
		if !yield(name) {
			return
		}
	}
}

// share returns a View of the same state.
func (v *View) share() *View {
	return &View{
		tenant: v.tenant, policies: v.policies,
		rows: v.rows, names: v.names, lastReader: v.lastReader, present: v.present, undeclared: v.undeclared,
		readers: v.readers, classes: v.classes,
		everywhere: v.everywhere, regions: v.regions, dated: v.dated,
		ledger: v.ledger, cores: v.cores, lookups: v.lookups, state: v.state, history: v.history,
	}
}

// Resolve returns the documents that the principal may read: those whose
// readers admit it or are undeclared, and whose access class the policies
// permit. A principal of another tenant, or an unknown one, reads nothing.
// With an error (ErrPrincipal) the Set is empty.
//
// A Set is kept, and brought forward by what has changed since it was asked
// for. While the policies decide about a principal for the first time, only
// searches of the same principal wait for it.
func (v *View) Resolve(p Principal) (Set, error) {
	return v.ResolveContext(context.Background(), p)
}

// ResolveContext is Resolve that ends with the context's error soon after the
// context does, however much there is to decide; then no Set is kept.
func (v *View) ResolveContext(ctx context.Context, p Principal) (Set, error) {
	if p.Tenant != v.tenant || !p.known() || v.policies == nil {
		return Set{}, nil
	}
	key := askedKey{v.policies.Digest(), p.Digest()}
	known, cached := v.ledger.sets.Get(key)
	hit := cached && known.state == v.state
	v.lookups.Add(hit)
	if hit {
		return known.set, nil
	}
	user, err := v.policies.user(p)
	if err != nil {
		return Set{}, err
	}
	set, err := v.bring(ctx, known, key, p, user)
	if err != nil {
		return Set{}, err
	}
	if !cached || known.state < v.state {
		v.ledger.keep(key, keptSet{v.state, set})
	}
	return set, nil
}

// bring makes the principal's Set from one of an earlier state, if that is
// known and not too far back, else from nothing.
func (v *View) bring(ctx context.Context, known keptSet, key askedKey, p Principal, user cedar.Entity) (Set, error) {
	admitting := v.admitting(p)
	if !known.set.isNone() {
		if touched, ok := v.history.since(known.state); ok {
			return v.forward(ctx, known.set, touched, admitting, v.ledger.of(key), user)
		}
	}
	readable := roaring.FastOr(admitting...)
	permitted, err := v.permitted(ctx, key, user, readable)
	if err != nil {
		return Set{}, err
	}
	return Set{roaring.And(readable, permitted)}, nil
}

// forward decides the touched documents again.
func (v *View) forward(ctx context.Context, set Set, touched []uint32, admitting []*roaring.Bitmap, verdicts *verdicts, user cedar.Entity) (Set, error) {
	next := set.bitmap
	for _, ordinal := range touched {
		if err := ctx.Err(); err != nil {
			return Set{}, err
		}
		visible := v.permits(ordinal, admitting, verdicts, user)
		if visible == next.Contains(ordinal) {
			continue
		}
		if next == set.bitmap {
			next = next.Clone()
		}
		if visible {
			next.Add(ordinal)
		} else {
			next.Remove(ordinal)
		}
	}
	return Set{next}, nil
}

// permits decides one document of the View.
func (v *View) permits(ordinal uint32, admitting []*roaring.Bitmap, verdicts *verdicts, user cedar.Entity) bool {
	if !slices.ContainsFunc(admitting, func(b *roaring.Bitmap) bool { return b.Contains(ordinal) }) {
		return false
	}
	c, _ := v.classes.get(v.rows.get(ordinal).class)
	return verdicts.of(v.policies, user, c.class)
}

// admitting returns the bitmaps of the documents whose readers admit the
// principal or are undeclared.
func (v *View) admitting(p Principal) []*roaring.Bitmap {
	admitting := []*roaring.Bitmap{v.undeclared}
	for _, name := range v.policies.names(p) {
		if posting, ok := v.readers.get(name); ok {
			admitting = append(admitting, posting.documents)
		}
	}
	return admitting
}

// permitted returns the documents of every permitted class that has a readable
// document. Other classes are not asked about.
func (v *View) permitted(ctx context.Context, key askedKey, user cedar.Entity, readable *roaring.Bitmap) (*roaring.Bitmap, error) {
	verdicts := v.ledger.of(key)
	verdicts.mu.Lock()
	defer verdicts.mu.Unlock()
	var undecided []*class
	for _, c := range v.classes.all() {
		if !verdicts.decided.Contains(c.id) && c.documents.Intersects(readable) {
			undecided = append(undecided, c.class)
		}
	}
	if err := verdicts.decide(ctx, v.policies, user, undecided, v.cores); err != nil {
		return nil, err
	}
	v.ledger.weigh(key, verdicts)
	var permitted []*roaring.Bitmap
	for _, c := range v.classes.all() {
		if verdicts.permitted.Contains(c.id) {
			permitted = append(permitted, c.documents)
		}
	}
	return roaring.FastOr(permitted...), nil
}
