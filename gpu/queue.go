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
	buckets [buckets]fifo[*entry] // each in the order of their tickets
	ticket  uint64                // the last one given
}

// entry is a call's texts of one bucket.
type entry struct {
	items  fifo[item]
	ticket uint64
}

func (q *queue) push(it item) {
	b := bucketOf(len(it.ids))
	e := &it.call.waiting[b]
	if e.items.push(it); e.items.len() == 1 {
		q.line(b, e)
	}
}

// line puts e at the end of its bucket.
func (q *queue) line(b int, e *entry) {
	q.ticket++
	e.ticket = q.ticket
	q.buckets[b].push(e)
}

// oldest is the bucket whose first entry has waited longest, or -1.
func (q *queue) oldest() int {
	found := -1
	for b := range q.buckets {
		if q.buckets[b].len() > 0 && (found < 0 || q.buckets[b].first().ticket < q.buckets[found].first().ticket) {
			found = b
		}
	}
	return found
}

// first is the text of bucket b whose turn it is.
func (q *queue) first(b int) item { return q.buckets[b].first().items.first() }

// pop removes it. Its call goes to the end of the line.
func (q *queue) pop(b int) item {
	e := q.buckets[b].pop()
	it := e.items.pop()
	if e.items.len() > 0 {
		q.line(b, e)
	}
	return it
}

// remove takes out all texts of a call, and returns them.
func (q *queue) remove(c *call) (removed []item) {
	for b := range c.waiting {
		if e := &c.waiting[b]; e.items.len() > 0 {
			removed = append(removed, e.items.rest()...)
			e.items = fifo[item]{}
			q.buckets[b].remove(func(other *entry) bool { return other == e })
		}
	}
	return removed
}

// fifo is a queue that reuses its memory and holds on to nothing it gave away.
type fifo[T any] struct {
	all  []T
	head int
}

func (f *fifo[T]) len() int  { return len(f.all) - f.head }
func (f *fifo[T]) first() T  { return f.all[f.head] }
func (f *fifo[T]) rest() []T { return f.all[f.head:] }

func (f *fifo[T]) push(v T) {
	if len(f.all) == cap(f.all) && f.head > len(f.all)/2 {
		f.all, f.head = slices.Delete(f.all, 0, f.head), 0
	}
	f.all = append(f.all, v)
}

func (f *fifo[T]) pop() T {
	var none T
	v := f.all[f.head]
	f.all[f.head] = none
	if f.head++; f.head == len(f.all) {
		f.all, f.head = f.all[:0], 0
	}
	return v
}

func (f *fifo[T]) remove(unwanted func(T) bool) {
	f.all = f.all[:f.head+len(slices.DeleteFunc(f.rest(), unwanted))]
}
