package tokenizer

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unicode"
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
	return allocates(func() { require.NoError(t, tok.Encode(&e, text, o)) })
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

// purse is a Room that counts.
type purse struct{ left, taken, most int }

var errEmpty = errors.New("no room")

func (p *purse) Take(n, held int) error {
	if n > p.left || n < 1 || held != p.taken {
		return errEmpty
	}
	p.left, p.taken = p.left-n, p.taken+n
	p.most = max(p.most, p.taken)
	return nil
}

func (p *purse) Give(n int) { p.left, p.taken = p.left+n, p.taken-n }

// hostile is what texts are made of that take much of memory.
var hostile = []string{
	"!", "a", "a1", "A", " ", "a ", "a\n", "a\u2028", "\x01a", "\u3000", // one word, or as many as there can be
	"é", "É", "e\u0301", "日", "漢 ", "가", "\u1112\u1161", "🙂", "👩\u200d👩\u200d👦", // words of other scripts
	"\u0301", "\u0301\u0323", "\U0001d165", "\u0344", // marks that are piled up, out of order, or two in one
	"ﷺ", "ﷺ ", "ﬁ", "Ａ", "½", "㌔", "\u1fa2", "ẛ\u0323", "İ", // what expands
}

// What a call holds is never more than what it is charged for and what it takes
// in any case, little of FreeBytes: all that it has at its end, and what the
// largest part was before it grew.
func TestMemoryIsCharged(t *testing.T) {
	const size, pieces = 48 << 10, FreeBytes / 8
	for _, w := range wholes(t) {
		tok := w.cut
		tok.cuts.least = pieceBytes
		for _, unit := range hostile {
			for _, o := range []Options{{MaxLength: 256}, {MaxLength: 256, TruncateLeft: true}, {}} {
				got, charged := heldBy(t, tok, strings.Repeat(unit, size/len(unit)), o)
				free := pieces
				if o.MaxLength == 0 {
					free += freeTokens * tokenBytes
				}
				require.LessOrEqual(t, got, charged+free, "%s, %q, %+v", w.name, unit, o)
			}
			got, charged := heldBy(t, tok, strings.Repeat(unit, smallText/len(unit)), Options{})
			require.LessOrEqual(t, got, charged+FreeBytes, "%s, %q", w.name, unit)
		}
		got, charged := heldBy(t, tok, strings.Repeat("A few words, été. ", size/16), Options{MaxLength: 256})
		require.Zero(t, charged, "%s: texts of words are free", w.name)
		require.Less(t, got, pieces, w.name)
	}
}

// What is known of characters, which is not charged, is no list of all that a text has.
func TestManyCharactersAreNotListed(t *testing.T) {
	var text strings.Builder
	for r := rune(0xf0000); r <= unicode.MaxRune; r++ {
		text.WriteRune(r)
	}
	tok, all := load(t, "bert_uncased"), text.String()
	each := allocates(func() {
		for _, r := range all {
			tok.draftBytesOf(r)
		}
	})
	require.Less(t, allocates(func() { tok.draftBytes(all) }), each+FreeBytes/8)
}

func allocates(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A call that there is no room for ends with the room's error, and has given all
// back; the next one does not notice.
func TestThereIsNoRoom(t *testing.T) {
	for _, name := range models {
		tok := load(t, name)
		var want, got Encoding
		require.NoError(t, tok.Encode(&want, "a text, as before", Options{}))
		for _, unit := range []string{"!", "a", "\u0301", "ﷺ"} {
			text := strings.Repeat(unit, 32<<10/len(unit))
			_, charged := heldBy(t, tok, text, Options{})
			for _, left := range []int{0, charged / 2} {
				p, o := &purse{left: left}, Options{}
				o.Room = p
				require.ErrorIs(t, tok.Encode(&got, text, o), errEmpty, "%s, %q, %d of %d", name, unit, left, charged)
				require.ErrorIs(t, tok.EncodePair(&got, "a", text, o), errEmpty, "%s, %q, %d of %d", name, unit, left, charged)
				require.ErrorIs(t, tok.Tokenize(new(Text), text, o), errEmpty)
				require.Equal(t, left, p.left)
			}
			require.NoError(t, tok.Encode(&got, "a text, as before", Options{Room: &purse{}}))
			require.Equal(t, want, got)
		}
	}
}

// heldBy is the bytes that encoding holds, and that it is charged for.
func heldBy(t *testing.T, tok *Tokenizer, text string, o Options) (bytes, charged int) {
	t.Helper()
	tok.scratch = sync.Pool{}
	p := &purse{left: math.MaxInt}
	o.Room = p
	s, e := tok.borrow(o), &Encoding{}
	tok.tokenize(s, &s.first, text, o)
	require.NoError(t, tok.finish(e, s, tok.template.single, o))
	tok.giveBack(s)
	require.Zero(t, p.taken)
	total, largest := room(s.pieces)+room(s.workspace.arrivals)+room(s.workspace.queue.links), 0
	for _, n := range grown(s, e) {
		total, largest = total+n, max(largest, n)
	}
	return total + largest*4/5, p.most
}

// grown is the bytes of all that append grows, by a quarter; the rest is made as
// large as it has to be.
func grown(s *scratch, e *Encoding) []int {
	all := []int{
		room(s.first.ids), room(s.first.offsets), room(s.first.words), room(s.words.spans), room(s.words.next), room(s.workspace.queue.heap),
		room(e.IDs), room(e.TypeIDs), room(e.Offsets), room(e.Words), room(e.Special),
	}
	for _, d := range []*draft{&s.draft, &s.words.draft} {
		for _, n := range d.buffers {
			all = append(all, room(n.text), room(n.edits))
		}
		all = append(all, room(d.spare))
	}
	return all
}

func room[T any](s []T) int {
	var one T
	return cap(s) * int(unsafe.Sizeof(one))
}
