package local

import (
	"cmp"
	"math"
	"slices"

	"sluice/index"
)

// contender is a row that may be among the best.
type contender struct {
	key  uint64 // the greater, the better: score, then the lower row
	slot uint32 // counted through all parts
}

const negative = 1 << 31 // the sign of a float32

// keyOf is greater for what comes first: a higher score, or the lower row of equal ones.
func keyOf(score float32, row uint32) uint64 {
	bits := math.Float32bits(score)
	if bits&negative != 0 {
		bits = ^bits
	} else {
		bits |= negative
	}
	return uint64(bits)<<32 | uint64(^row)
}

func (c contender) score() float32 {
	bits := uint32(c.key >> 32)
	if bits&negative == 0 {
		return math.Float32frombits(^bits)
	}
	return math.Float32frombits(bits &^ negative)
}

// topK keeps the k best of many contenders: higher score first, then lower row.
// It lets some more gather and then drops the others at once, which takes less
// than a heap.
type topK struct {
	k     int
	list  []contender
	least uint64 // what does not beat it cannot be among the best
}

func (t *topK) add(c contender) {
	if c.key <= t.least {
		return
	}
	if len(t.list) == 2*t.k+256 {
		t.settle()
	}
	t.list = append(t.list, c)
}

// settle drops those that are not among the k best so far.
func (t *topK) settle() {
	if len(t.list) < t.k {
		return
	}
	selectGreatest(t.list, t.k)
	t.list = t.list[:t.k]
	t.least = t.list[t.k-1].key - 1
}

// floor is the score that a contender must reach, as far as is known since the
// last settle; -Inf: there are not yet k.
func (t *topK) floor() float32 {
	if t.least == 0 {
		return float32(math.Inf(-1))
	}
	return contender{key: t.least + 1}.score()
}

// selectGreatest moves the k greatest to the front, the least of them last
// (Hoare's selection). Keys differ.
func selectGreatest(list []contender, k int) {
	for lo, hi := 0, len(list)-1; lo < hi; {
		pivot := list[lo+(hi-lo)/2].key
		i, j := lo, hi
		for i <= j {
			for list[i].key > pivot {
				i++
			}
			for list[j].key < pivot {
				j--
			}
			if i <= j {
				list[i], list[j] = list[j], list[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case k-1 <= j:
			hi = j
		case k-1 >= i:
			lo = i
		default:
			return
		}
	}
}

// hits returns the k best, best first; ordinals are those of their slots.
func (t *topK) hits(ordinal func(slot uint32) uint32) []index.Hit {
	t.settle()
	slices.SortFunc(t.list, func(a, b contender) int { return cmp.Compare(b.key, a.key) })
	hits := make([]index.Hit, len(t.list))
	for i, c := range t.list {
		hits[i] = index.Hit{Row: ^uint32(c.key), Ordinal: ordinal(c.slot), Score: c.score()}
	}
	return hits
}
