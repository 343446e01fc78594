package gpu

import (
	"math/bits"
	"slices"
)

// buckets of a queue hold texts of up to 16, 32, 64, 128, 256 and more tokens.
const buckets = 6

func bucketOf(tokens int) int { return min(bits.Len(uint(max(tokens, 1)-1)>>4), buckets-1) }

// queue is the texts of one model and priority that wait. Calls take turns, one
// text each, however many texts a call has; a turn is kept per bucket.
type queue struct {
	buckets [buckets][]*entry // each in the order of their tickets
	ticket  uint64            // the last one given
}

// entry is a call's texts of one bucket.
type entry struct {
	items  []item
	ticket uint64
}

func (q *queue) push(it item) {
	b := bucketOf(len(it.ids))
	e := &it.call.waiting[b]
	if e.items = append(e.items, it); len(e.items) == 1 {
		q.line(b, e)
	}
}

// line puts e at the end of its bucket.
func (q *queue) line(b int, e *entry) {
	q.ticket++
	e.ticket = q.ticket
	q.buckets[b] = append(q.buckets[b], e)
}

// oldest is the bucket whose first entry has waited longest, or -1.
func (q *queue) oldest() int {
	found := -1
	for b, entries := range q.buckets {
		if len(entries) > 0 && (found < 0 || entries[0].ticket < q.buckets[found][0].ticket) {
			found = b
		}
	}
	return found
}

// first is the text of bucket b whose turn it is.
func (q *queue) first(b int) item { return q.buckets[b][0].items[0] }

// pop removes it. Its call goes to the end of the line.
func (q *queue) pop(b int) item {
	it, e := q.first(b), q.buckets[b][0]
	e.items[0], q.buckets[b][0] = item{}, nil // hold on to nothing
	e.items, q.buckets[b] = e.items[1:], q.buckets[b][1:]
	if len(e.items) > 0 {
		q.line(b, e)
	}
	return it
}

// remove takes out all texts of a call, and returns them.
func (q *queue) remove(c *call) (removed []item) {
	for b := range c.waiting {
		if e := &c.waiting[b]; len(e.items) > 0 {
			removed = append(removed, e.items...)
			e.items = nil
			q.buckets[b] = slices.DeleteFunc(q.buckets[b], func(other *entry) bool { return other == e })
		}
	}
	return removed
}
