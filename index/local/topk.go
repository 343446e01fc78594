package local

import (
	"cmp"
	"math"
	"slices"

	"sluice/index"
)

// topK keeps the k best hits: higher score first, then lower row. It is a heap
// with the worst on top.
type topK struct {
	k    int
	hits []index.Hit
}

// mostReserved bounds what is reserved for a k that few rows may fill.
const mostReserved = 1024

func newTopK(k int) topK { return topK{k: k, hits: make([]index.Hit, 0, max(min(k, mostReserved), 0))} }

// worst is the score that a hit must reach; -Inf while there are not yet k.
func (t *topK) worst() float32 {
	if len(t.hits) < t.k {
		return float32(math.Inf(-1))
	}
	return t.hits[0].Score
}

func compareHits(a, b index.Hit) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Row, b.Row))
}

// admits reports whether a row of that score would be kept.
func (t *topK) admits(score float32, row uint32) bool {
	return len(t.hits) < t.k || compareHits(index.Hit{Score: score, Row: row}, t.hits[0]) < 0
}

// beats is a quick look: false means that admits would say no too.
func (t *topK) beats(score float32) bool { return len(t.hits) < t.k || score >= t.hits[0].Score }

// add keeps a hit that was admitted.
func (t *topK) add(h index.Hit) {
	if len(t.hits) < t.k {
		t.hits = append(t.hits, h)
		t.up(len(t.hits) - 1)
		return
	}
	t.hits[0] = h
	t.down()
}

func (t *topK) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if compareHits(t.hits[i], t.hits[parent]) <= 0 {
			return
		}
		t.hits[i], t.hits[parent] = t.hits[parent], t.hits[i]
		i = parent
	}
}

func (t *topK) down() {
	for i := 0; ; {
		worst := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(t.hits); child++ {
			if compareHits(t.hits[child], t.hits[worst]) > 0 {
				worst = child
			}
		}
		if worst == i {
			return
		}
		t.hits[i], t.hits[worst] = t.hits[worst], t.hits[i]
		i = worst
	}
}

// sorted returns the hits, best first, and empties the heap.
func (t *topK) sorted() []index.Hit {
	slices.SortFunc(t.hits, compareHits)
	hits := t.hits
	t.hits = nil
	return hits
}
