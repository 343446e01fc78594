package pdf

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// allWords are the words of the texts, whether any hyphen asks for them or not.
func allWords(texts []*string) map[string]bool {
	words := map[string]bool{}
	for _, s := range texts {
		for _, w := range strings.FieldsFunc(strings.ToLower(*s), func(r rune) bool { return !unicode.IsLetter(r) && r != '-' && r != parting }) {
			words[w] = true
			for part := range strings.SplitSeq(w, "-") {
				words[part] = true
			}
		}
	}
	return words
}

// paragraphs are blocks of random syllables, parted and not.
func paragraphs(random *rand.Rand) []*block {
	syllables := []string{"a", "b", "Wa", "ter", "Ä", "ß", "水", "x\u0301", strings.Repeat("long", 40), string([]byte{0xe6, 0xb0})}
	joints := []string{"", "", "", "-", " ", " ", ". “", string(parting), string(parting), "7"}
	var blocks []*block
	for range 1 + random.IntN(4) {
		var text strings.Builder
		for range random.IntN(40) {
			text.WriteString(syllables[random.IntN(len(syllables))] + joints[random.IntN(len(joints))])
		}
		blocks = append(blocks, &block{text: text.String(), table: &table{rows: [][]string{{text.String()[text.Len()/2:]}}}})
	}
	return blocks
}

// Hyphens are decided as by all the words of a document.
func TestUnhyphenateKnowsTheWordsItNeeds(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	hyphens := 0
	for range 5_000 {
		blocks := paragraphs(random)
		texts := eachText(blocks)
		words := allWords(texts)
		var want []string
		for _, s := range texts {
			want = append(want, joinParted(*s, words))
		}
		hyphens += strings.Count(strings.Join(want, ""), "-")
		unhyphenate(&work{ctx: t.Context()}, blocks)
		for i, s := range eachText(blocks) {
			require.Equal(t, want[i], *s, "seed %d", seed)
		}
	}
	require.NotZero(t, hyphens)
}

// A text of different words costs no memory where few are parted.
func TestUnhyphenateKeepsFewWords(t *testing.T) {
	var text strings.Builder
	for i := range 1 << 18 {
		fmt.Fprintf(&text, "%06o ", i)
	}
	text.WriteString("abc" + string(parting) + "def")
	letters := func(r rune) rune {
		if unicode.IsDigit(r) {
			return r - '0' + 'a'
		}
		return r
	}
	blocks := []*block{{text: strings.Map(letters, text.String())}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	unhyphenate(&work{ctx: t.Context()}, blocks)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4*text.Len()))
	require.True(t, strings.HasSuffix(blocks[0].text, "abcdef"))
}

// However a file parts its words, only so many are asked for.
func TestUnhyphenateAsksForSoMany(t *testing.T) {
	v := vocabulary{work: &work{ctx: t.Context()}, has: map[string]bool{}, left: 10_000}
	random := rand.New(rand.NewPCG(1, 1))
	var text strings.Builder
	for range 50_000 {
		text.WriteString(string(rune('a'+random.IntN(26))) + string(parting))
	}
	v.ask(text.String())
	require.NotEmpty(t, v.has)
	require.Less(t, len(v.has), 10_000/askedWord)
}
