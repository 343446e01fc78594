package ivf

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"sluice/kernels/ref"
)

// Allowed is the rows that a filter admits, in the forms that searches use. It
// is safe for concurrent use, and worth keeping for later queries.
type Allowed struct {
	count int
	rows  []uint32 // ascending, where less than one in 64 is allowed
	words []uint64 // else a bit for each

	used  atomic.Bool // by a search: for one alone the next fields do not pay
	once  sync.Once
	lists *listed

	uses    atomic.Int32
	packing atomic.Pointer[packed]
}

// listed is Allowed in the order of the lists.
type listed struct {
	counts []uint32 // by list: lanes that are allowed
	lanes  []uint16 // by block
}

// NewAllowed returns the rows whose bits are set; it keeps words.
func NewAllowed(words []uint64) *Allowed {
	a := &Allowed{words: words}
	for _, w := range words {
		a.count += bits.OnesCount64(w)
	}
	if a.count <= len(words) {
		a.rows, a.words = make([]uint32, 0, a.count), nil
		for i, w := range words {
			for ; w != 0; w &= w - 1 {
				a.rows = append(a.rows, uint32(64*i+bits.TrailingZeros64(w)))
			}
		}
	}
	return a
}

// AllowedRows returns the given rows, ascending, of so many; it keeps them.
func AllowedRows(allowed []uint32, rows int) *Allowed {
	if len(allowed) > (rows+63)/64 {
		a := Allowed{count: len(allowed), rows: allowed}
		return NewAllowed(a.Words(rows))
	}
	return &Allowed{count: len(allowed), rows: allowed}
}

// Words returns a bit for each of the rows, not to be changed.
func (a *Allowed) Words(rows int) []uint64 {
	if a.words != nil {
		return a.words
	}
	words := make([]uint64, (rows+63)/64)
	for _, row := range a.rows {
		words[row/64] |= 1 << (row % 64)
	}
	return words
}

// Live returns the allowed rows that are live, ascending. live has a bit for
// each row; nil: all live. buffer is memory for them, which may grow.
func (a *Allowed) Live(live []uint64, buffer []uint32) (rows, grown []uint32) {
	if live == nil && a.words == nil {
		return a.rows, buffer
	}
	buffer = buffer[:0]
	for row := range a.Each {
		if live == nil || live[row/64]>>(row%64)&1 == 1 {
			buffer = append(buffer, row)
		}
	}
	return buffer, buffer
}

// Len is the number of allowed rows.
func (a *Allowed) Len() int { return a.count }

// Each yields the allowed rows, ascending.
func (a *Allowed) Each(yield func(row uint32) bool) {
	for _, row := range a.rows {
		if !yield(row) {
			return
		}
	}
	for i, w := range a.words {
		for ; w != 0; w &= w - 1 {
			if !yield(uint32(64*i + bits.TrailingZeros64(w))) {
				return
			}
		}
	}
}

// Has reports whether a row is allowed.
func (a *Allowed) Has(row uint32) bool {
	if a.words != nil {
		return a.has(row)
	}
	_, found := slices.BinarySearch(a.rows, row)
	return found
}

// Size is the memory that it holds, or may come to hold with the index's lists;
// nil: there are none.
func (a *Allowed) Size(x *Index) int {
	size := 4*len(a.rows) + 8*len(a.words)
	if x != nil && x.lists > 0 && a.count > fewRows && a.count <= mostPacked {
		size += a.count * (ref.CodeBlock(x.space.padded)/ref.CodeLanes + 4)
	}
	if x != nil && a.words != nil {
		size += 2*x.blocks + 4*x.lists
	}
	return size
}

func (a *Allowed) has(row uint32) bool { return a.words[row/64]>>(row%64)&1 == 1 }

// inLists returns a in the order of the index's lists.
func (a *Allowed) inLists(x *Index) *listed {
	a.once.Do(func() {
		l := &listed{counts: make([]uint32, x.lists), lanes: make([]uint16, x.blocks)}
		for list := range l.counts {
			for block := x.starts[list]; block < x.starts[list+1]; block++ {
				l.lanes[block] = a.lanesOf(x.ids[block*ref.CodeLanes:][:ref.CodeLanes])
				l.counts[list] += uint32(bits.OnesCount16(l.lanes[block]))
			}
		}
		a.lists = l
	})
	return a.lists
}

func (a *Allowed) lanesOf(ids []uint32) (lanes uint16) {
	for lane, id := range ids {
		if id != none && a.has(id) {
			lanes |= 1 << lane
		}
	}
	return lanes
}
