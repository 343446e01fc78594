package tokenizer

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// TestMemoryOfHostileTexts bounds the bytes that are allocated, of each byte of a
// text that is cut, while it is tokenized. Words and tokens are not listed; a word
// of BPE or Unigram takes 33, characters that are rewritten take the rest.
func TestMemoryOfHostileTexts(t *testing.T) {
	const size = 64 << 10
	for _, model := range models {
		most := map[string]float64{"!": 40, "a ": 5, "a": 40, " ": 40, "é": 80, "日": 80, "\x01a": 80, "a\n": 40, "ﷺ": 40}
		switch {
		case strings.HasPrefix(model, "unigram"):
			most["a "], most["a\n"], most["\x01a"] = 250, 250, 250 // a mark before each word
			most["ﷺ"] = 1200                                       // three bytes become thirty-three
		case !strings.HasPrefix(model, "bpe"):
			most["!"], most["a"], most[" "], most["a\n"] = 5, 5, 5, 5
		}
		tok := load(t, model)
		for unit, most := range most {
			text := strings.Repeat(unit, size/len(unit))
			for _, left := range []bool{false, true} {
				got := float64(allocated(t, tok, text, Options{MaxLength: 256, TruncateLeft: left})) / size
				require.Less(t, got, most, "%s, %q, left %t", model, unit, left)
			}
		}
	}
}

// allocated is the bytes that a first encoding allocates.
func allocated(t *testing.T, tok *Tokenizer, text string, o Options) uint64 {
	t.Helper()
	tok.scratch = sync.Pool{}
	var e Encoding
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.NoError(t, tok.Encode(&e, text, o))
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A text that is cut keeps what the same text has at the start, or the end.
func TestCutTextsAreWindows(t *testing.T) {
	text := strings.Join(seedTexts, " ")
	for _, model := range models {
		tok := load(t, model)
		var whole, cut Encoding
		require.NoError(t, tok.Encode(&whole, text, Options{NoSpecialTokens: true}))
		for most := 1; most <= whole.Len()+1; most++ {
			require.NoError(t, tok.Encode(&cut, text, Options{NoSpecialTokens: true, MaxLength: most}))
			n := cut.Len()
			require.Equal(t, min(most, whole.Len()), n, model)
			require.Equal(t, whole.Len()-n, cut.Cut, model)
			require.Equal(t, whole.IDs[:n], cut.IDs, model)
			require.Equal(t, whole.Words[:n], cut.Words, model)
			require.Equal(t, whole.Offsets[1:n], cut.Offsets[1:], model) // trimming knows the first one

			require.NoError(t, tok.Encode(&cut, text, Options{NoSpecialTokens: true, MaxLength: most, TruncateLeft: true}))
			require.Equal(t, whole.Len()-n, cut.Cut, model)
			require.Equal(t, whole.IDs[whole.Len()-n:], cut.IDs, model)
			require.Equal(t, whole.Words[whole.Len()-n:], cut.Words, model)
			require.Equal(t, whole.Offsets[whole.Len()-n+1:], cut.Offsets[1:], model)
		}
	}
}

// What encoding holds at its end, all of it together, is within what Memory says,
// whatever normalizers make of the text; of plain English it says no more than that.
func TestMemoryIsWhatEncodingTakes(t *testing.T) {
	const size = 5 << 10
	for _, model := range models {
		tok := load(t, model)
		for _, unit := range []string{"!", "a ", "word ", "a", " ", "é", "É", "日", "\x01a", "a\n", "ﷺ", "ﬁ", "Ａ", "e\u0301", "\u1fa2", "漢 ", "½", "🙂", "㌔", "ẛ̣", "가"} {
			tok.scratch = sync.Pool{}
			text := strings.Repeat(unit, size/len(unit))
			s, e := tok.borrow(Options{}), &Encoding{}
			tok.tokenize(s, &s.first, text, Options{})
			require.NoError(t, tok.finish(e, s, tok.template.single, Options{}))
			require.Less(t, held(s, e), tok.Memory(text), "%s, %q", model, unit)
		}
		require.Equal(t, 500*encodingBytes, tok.Memory(strings.Repeat("word ", 100)))
	}
}

// held is the bytes that have been taken.
func held(s *scratch, e *Encoding) int {
	total := 0
	for _, n := range []int{
		room(s.first.ids), room(s.first.offsets), room(s.first.words), room(s.segments), room(s.parts), room(s.pieces),
		room(s.words.spans), room(s.words.next), room(s.workspace.arrivals), room(s.workspace.queue.heap), room(s.workspace.queue.links),
		room(e.IDs), room(e.TypeIDs), room(e.Offsets), room(e.Words), room(e.Special),
	} {
		total += n
	}
	for _, d := range []*draft{&s.draft, &s.words.draft} {
		for _, n := range d.buffers {
			total += room(n.text) + room(n.edits)
		}
		total += room(d.spare)
	}
	return total
}

func room[T any](s []T) int {
	var one T
	return cap(s) * int(unsafe.Sizeof(one))
}
