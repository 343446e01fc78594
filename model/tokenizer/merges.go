package tokenizer

import (
	"math/bits"
	"slices"
)

// merge is what two tokens become, and when: lower ranks first. A rank below
// zero is no merge.
type merge struct {
	rank, id int32
}

var noMerge = merge{rank: -1}

// mergeTable maps pairs of tokens to merges: a hash table with open addressing,
// at most half full.
type mergeTable struct {
	entries []mergeEntry
	shift   int
}

type mergeEntry struct {
	pair  uint64 // 0 is free: the pair is stored plus one
	merge merge
}

func newMergeTable(size int) mergeTable {
	width := bits.Len(uint(max(size, 1))) + 1
	return mergeTable{make([]mergeEntry, 1<<width), 64 - width}
}

// find returns the place of the pair, or where it would be.
func (t *mergeTable) find(first, second int32) (*mergeEntry, uint64) {
	pair := uint64(first)<<32 | uint64(second) + 1
	i := pair * 0x9E3779B97F4A7C15 >> t.shift // Fibonacci hashing
	for t.entries[i].pair != 0 && t.entries[i].pair != pair {
		i = (i + 1) & uint64(len(t.entries)-1)
	}
	return &t.entries[i], pair
}

// set overwrites an earlier merge of the same pair.
func (t *mergeTable) set(first, second int32, m merge) {
	entry, pair := t.find(first, second)
	*entry = mergeEntry{pair, m}
}

func (t *mergeTable) get(first, second int32) merge {
	if entry, _ := t.find(first, second); entry.pair != 0 {
		return entry.merge
	}
	return noMerge
}

// mergeQueue merges long words: a heap of the possible merges, and the pieces
// as a linked list.
type mergeQueue struct {
	heap  []candidate
	links []link
}

// candidate is a merge of the piece at place and the one after it, which may
// have changed since.
type candidate struct {
	merge
	place int32
}

func (c candidate) before(d candidate) bool {
	return c.rank < d.rank || c.rank == d.rank && c.place < d.place
}

// link holds the places of the neighbours, -1 for none. A piece that was merged
// into another is its own next.
type link struct{ previous, next int32 }

// mergeLong merges in place and returns how many pieces are left.
func (q *mergeQueue) mergeLong(merges *mergeTable, pieces []piece) int {
	q.heap, q.links = slices.Grow(q.heap[:0], len(pieces)), slices.Grow(q.links[:0], len(pieces))
	last := int32(len(pieces) - 1)
	for i := range last + 1 {
		q.links = append(q.links, link{i - 1, i + 1})
	}
	q.links[last].next = -1
	for i := range last {
		q.offer(merges, pieces, i)
	}
	for len(q.heap) > 0 {
		c := q.pop()
		next := q.links[c.place].next
		if next == c.place || next < 0 || merges.get(pieces[c.place].id, pieces[next].id) != c.merge {
			continue
		}
		pieces[c.place] = piece{c.id, pieces[c.place].start, pieces[next].end}
		q.unlink(next)
		if previous := q.links[c.place].previous; previous >= 0 {
			q.offer(merges, pieces, previous)
		}
		q.offer(merges, pieces, c.place)
	}
	return q.compact(pieces)
}

// unlink takes the piece at place, which is not the first, out of the list.
func (q *mergeQueue) unlink(place int32) {
	l := q.links[place]
	q.links[l.previous].next = l.next
	if l.next >= 0 {
		q.links[l.next].previous = l.previous
	}
	q.links[place].next = place
}

func (q *mergeQueue) compact(pieces []piece) int {
	n := 0
	for i := range pieces {
		if q.links[i].next != int32(i) {
			pieces[n] = pieces[i]
			n++
		}
	}
	return n
}

// offer pushes the merge of the piece at place and the next one, if there is.
func (q *mergeQueue) offer(merges *mergeTable, pieces []piece, place int32) {
	next := q.links[place].next
	if next < 0 {
		return
	}
	m := merges.get(pieces[place].id, pieces[next].id)
	if m.rank < 0 {
		return
	}
	q.heap = append(q.heap, candidate{m, place})
	for i := len(q.heap) - 1; i > 0 && q.heap[i].before(q.heap[(i-1)/2]); i = (i - 1) / 2 {
		q.heap[i], q.heap[(i-1)/2] = q.heap[(i-1)/2], q.heap[i]
	}
}

func (q *mergeQueue) pop() candidate {
	top, last := q.heap[0], len(q.heap)-1
	q.heap[0] = q.heap[last]
	q.heap = q.heap[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if q.heap[child].before(q.heap[least]) {
				least = child
			}
		}
		if least == i {
			return top
		}
		q.heap[i], q.heap[least] = q.heap[least], q.heap[i]
		i = least
	}
}
