package gpu

import (
	"slices"
	"time"
)

// batch is texts that run together, and what came out. Its memory is reused.
type batch struct {
	items         []item
	input         Batch
	full          int       // a budget in which the next text did not fit; 0: none
	answers       []float32 // pooled vectors, or logits
	norms, tokens []float32
	began         time.Time
	took          time.Duration
}

func (b *batch) reset() {
	clear(b.items) // holds on to no call
	b.items, b.full = b.items[:0], 0
	b.input.Reset()
}

func (b *batch) add(it item) {
	b.items = append(b.items, it)
	b.input.Append(it.ids, it.types)
}

func newBatch() *batch {
	b := &batch{}
	b.input.Reset()
	return b
}

// keep removes the texts that are not to be kept, and reports whether there were any.
func (b *batch) keep(wanted func(item) bool) (removed bool) {
	n := len(b.items)
	b.items = slices.DeleteFunc(b.items, func(it item) bool { return !wanted(it) })
	if len(b.items) == n {
		return false
	}
	b.full = 0
	b.input.Reset()
	for _, it := range b.items {
		b.input.Append(it.ids, it.types)
	}
	return true
}

// set makes b the batch of items.
func (b *batch) set(items []item) {
	b.reset()
	for _, it := range items {
		b.add(it)
	}
}

// fill takes texts from q while the budget lasts, at least one. A long queue
// yields texts of one bucket; the bucket whose turn it is comes first.
func (b *batch) fill(q *queue, budget int) {
	for bucket := q.oldest(); bucket >= 0 && budget > b.full; bucket = q.oldest() {
		for q.buckets[bucket].len() > 0 {
			if len(b.items) > 0 && b.input.Tokens()+len(q.first(bucket).ids) > budget {
				b.full = budget
				return
			}
			b.add(q.pop(bucket))
		}
	}
}

// output makes room for what the texts' calls want.
func (b *batch) output(l *lane) Output {
	b.answers, b.norms = resize(b.answers, len(b.items)*l.width), b.norms[:0]
	if l.scores {
		return Output{Logits: b.answers}
	}
	b.norms = resize(b.norms, len(b.items))
	out := Output{Pooled: b.answers, Norms: b.norms}
	if slices.ContainsFunc(b.items, func(it item) bool { return it.call.tokens }) {
		b.tokens = resize(b.tokens, b.input.Tokens()*l.info.TokenDimensions)
		out.Tokens = b.tokens
	}
	return out
}

func resize(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n)
	}
	return s[:n]
}

// vectors are those of text i.
func (b *batch) vectors(i int, l *lane) (pooled, tokens []float32) {
	pooled = b.answers[i*l.width:][:l.width]
	if width := l.info.TokenDimensions; b.items[i].call.tokens {
		tokens = b.tokens[b.input.Offsets[i]*width : b.input.Offsets[i+1]*width]
	}
	return pooled, tokens
}

// sound reports whether text i's vectors are numbers.
func (b *batch) sound(i int, l *lane) bool {
	pooled, tokens := b.vectors(i, l)
	return finite(pooled) && finite(tokens)
}

func finite(v []float32) bool {
	for _, x := range v {
		if x-x != 0 { // NaN or infinite
			return false
		}
	}
	return true
}
