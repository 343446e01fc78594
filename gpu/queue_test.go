package gpu

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestBuckets(t *testing.T) {
	for tokens, want := range map[int]int{0: 0, 1: 0, 16: 0, 17: 1, 32: 1, 33: 2, 64: 2, 128: 3, 129: 4, 256: 4, 257: 5, 512: 5, 9999: 5} {
		require.Equal(t, want, bucketOf(tokens), tokens)
	}
}

// A fifo does what a slice does.
func TestFIFO(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f fifo[int]
		var want []int
		for i := range rapid.IntRange(0, 100).Draw(t, "steps") {
			switch action := rapid.IntRange(0, 9).Draw(t, "action"); {
			case action < 5:
				f.push(i)
				want = append(want, i)
			case action < 9 && len(want) > 0:
				require.Equal(t, want[0], f.first())
				require.Equal(t, want[0], f.pop())
				want = want[1:]
			default:
				odd := func(v int) bool { return v%2 == 1 }
				f.remove(odd)
				want = slices.DeleteFunc(want, odd)
			}
			require.Equal(t, len(want), f.len())
			require.True(t, slices.Equal(want, f.rest()))
		}
	})
}

// Whatever is pushed, popped and removed: each text comes out once, batches keep
// the budget, and whoever has waited longest is in the next batch.
func TestBatchesTakeEachTextOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const budget = 200
		var q queue
		b := newBatch()
		calls, waiting, id := make([]call, 5), map[int]*call{}, 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			c := &calls[rapid.IntRange(0, 4).Draw(t, "call")]
			switch rapid.IntRange(0, 4).Draw(t, "action") {
			case 0:
				for _, it := range q.remove(c) {
					require.Same(t, c, waiting[it.text])
					delete(waiting, it.text)
				}
				for _, other := range waiting {
					require.NotSame(t, c, other)
				}
			case 1:
				b.reset()
				first := -1
				if bucket := q.oldest(); bucket >= 0 {
					first = q.first(bucket).text
				}
				b.fill(&q, budget)
				require.Equal(t, first >= 0, len(b.items) > 0)
				require.True(t, b.input.Tokens() <= budget || len(b.items) == 1)
				for i, it := range b.items {
					require.True(t, i > 0 || it.text == first)
					require.Same(t, it.call, waiting[it.text])
					delete(waiting, it.text)
				}
			default:
				n := rapid.IntRange(1, 300).Draw(t, "tokens")
				q.push(item{call: c, text: id, ids: make([]int32, n), types: make([]int32, n)})
				waiting[id] = c
				id++
			}
		}
		for b.reset(); len(waiting) > 0; b.reset() {
			b.fill(&q, budget)
			require.NotEmpty(t, b.items)
			for _, it := range b.items {
				require.Contains(t, waiting, it.text)
				delete(waiting, it.text)
			}
		}
		require.Negative(t, q.oldest())
	})
}
