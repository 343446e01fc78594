package local

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// randomList has dense and sparse stretches, and places for each posting.
func randomList(rng *rand.Rand, slots uint32) (list []posting, places []byte, lengths []uint32) {
	share := 1
	for slot := range slots {
		if slot%700 == 0 {
			share = 1 + rng.IntN(60)
		}
		lengths = append(lengths, rng.Uint32N(1<<(1+rng.Uint32N(18))))
		if rng.IntN(share) > 0 {
			continue
		}
		list = append(list, posting{slot, rng.Uint32N(1<<rng.Uint32N(20)) + 1})
		places = binary.AppendUvarint(places, uint64(slot)+1)
		places = append(places, 7, 0)
	}
	return list, places, lengths
}

func encoded(list []posting, places []byte, lengths []uint32) postingList {
	data := appendList(nil, list, places, lengths)
	return postingList{uint32(len(list)), append(data, make([]byte, slack)...)[:len(data)]}
}

// TestPostings compares every way to read random lists with a plain filter.
func TestPostings(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 5))
		const slots = 5000
		list, places, lengths := randomList(rng, slots)
		visible, seen := slotSet{words: make([]uint64, (slots+63)/64)}, make([]bool, slots)
		for at := uint32(0); at < slots; at += rng.Uint32N(1 << rng.Uint32N(10)) {
			from := at
			at = min(slots, at+1+rng.Uint32N(200))
			setBits(visible.words, from, at)
			for slot := from; slot < at; slot++ {
				seen[slot] = true
			}
		}
		l, n, lo := encoded(list, places, lengths), uint64(0), rng.Uint32N(slots)
		hi := lo + rng.Uint32N(slots-lo) + 1
		var all, window []posting
		var b block
		var d decoded
		require.NoError(t, l.check())
		for i := range l.blocks() {
			require.NoError(t, b.open(l, i))
			require.NoError(t, b.decode(&d))
			for j := range d.slots {
				all = append(all, posting{d.slots[j], d.freqs[j]})
				at, ok := b.find(d.slots[j])
				require.True(t, ok)
				require.Equal(t, d.freqs[j], b.freq(at))
				require.True(t, bounded(l.peaks()[i*peaksSize:], d.freqs[j], lengths[d.slots[j]]))
				encoded, err := l.places(i)
				require.NoError(t, err)
				one, err := place(encoded, at)
				require.NoError(t, err)
				got, err := appendPlaces(nil, one)
				require.NoError(t, err)
				require.Equal(t, []uint32{d.slots[j], d.slots[j] + 7}, got)
			}
			from, to := d.between(lo, hi)
			for j := from; j < to; j++ {
				window = append(window, posting{d.slots[j], d.freqs[j]})
			}
			here, err := b.count(&d, &visible)
			require.NoError(t, err)
			n += uint64(here)
		}
		require.Equal(t, list, all, "seed %d", seed)
		isHidden := func(p posting) bool { return !seen[p.slot] }
		want := slices.DeleteFunc(slices.Clone(list), isHidden)
		require.Equal(t, uint64(len(want)), n, "seed %d", seed)
		want = slices.DeleteFunc(slices.Clone(list), func(p posting) bool { return p.slot < lo || p.slot >= hi })
		require.Equal(t, len(want), len(window))
		for i := range want {
			require.Equal(t, want[i], window[i], "seed %d", seed)
		}
	}
}

// TestBounds: the peaks bound every posting of a block for any statistics.
func TestBounds(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 6))
		list, places, lengths := randomList(rng, 2000)
		l := encoded(list, places, lengths)
		for range 20 {
			term := newBM25(1, 1+rng.Uint64N(1<<(1+rng.Uint32N(16)))).term(math.Exp(rng.Float64() * 21))
			bounds := make([]uint32, l.blocks())
			kernels.Bound(bounds, l.peaks(), term)
			for i, p := range list {
				require.LessOrEqual(t, term.Points(p.freq, lengths[p.slot]), bounds[i/blockPostings], "seed %d", seed)
			}
		}
	}
}
