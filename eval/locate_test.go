package eval

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestLocate(t *testing.T) {
	for _, c := range []struct {
		name, text, quote string
		matching          Matching
		want              string // the source text found
	}{
		{"verbatim", "A cat. A dog.", "A dog.", Verbatim, "A dog."},
		{"markup", "It is **very _good_**, yes.", "very good", Folded, "very _good"},
		{"quotes and dashes", "She said “yes” – twice.", `said "yes" - twice`, Folded, "said “yes” – twice"},
		{"case and space", "Two\n  Paid\tDays", "two paid days", Folded, "Two\n  Paid\tDays"},
		{"link target", "see [the page](http://x.test/it) now", "the page now", Folded, "the page](http://x.test/it) now"},
		{"link target quoted", "see [it](http://x.test) now", "[it](http://x.test) now", Folded, "it](http://x.test) now"},
		{"table", "| Fee | 5 € |\n|---|---|\n| Tax | 7 € |", "Fee 5 € Tax 7 €", Folded, "Fee | 5 € |\n|---|---|\n| Tax | 7"},
		{"other scripts", "Größe: 10 ½ Zoll", "größe 10 ½", Folded, "Größe: 10 ½"},
		{"a lower case of another length", "aİb c", "İb", Folded, "İb"},
	} {
		start, end, err := locate(c.text, c.quote, c.matching)
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, c.text[start:end], c.name)
	}
}

func TestLocateRefuses(t *testing.T) {
	for _, matching := range []Matching{Verbatim, Folded} {
		_, _, err := locate("one two one two", "one two", matching)
		require.ErrorContains(t, err, "more than once")
		_, _, err = locate("ababa", "aba", matching) // places that overlap
		require.ErrorContains(t, err, "more than once")
		_, _, err = locate("one two", "three", matching)
		require.ErrorContains(t, err, "does not occur")
		_, _, err = locate("one two", "", matching)
		require.ErrorContains(t, err, "does not occur")
	}
	_, _, err := locate("text", "**…**", Folded)
	require.ErrorContains(t, err, "does not occur")
}

// Whatever markup is put between the runes of a quote, its range is found again.
func TestLocateFoldedThroughMarkup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		quote := rapid.StringMatching(`[a-zäß]{3,12}`).Draw(t, "quote")
		noise := rapid.SampledFrom([]string{"", "*", "_", " ", "\n> ", "–", "`", "| "})
		var marked strings.Builder
		runes := []rune(quote)
		for i, r := range runes {
			marked.WriteRune(r)
			if i < len(runes)-1 {
				marked.WriteString(noise.Draw(t, "noise"))
			}
		}
		before := rapid.StringMatching(`[0-9 *]{0,9}`).Draw(t, "before")
		text := before + marked.String() + rapid.StringMatching(`[0-9 *]{0,9}`).Draw(t, "after")
		start, end, err := locate(text, quote, Folded)
		if err != nil || start != len(before) || end != len(before)+marked.Len() {
			t.Fatalf("locate(%q, %q) = %d, %d, %v", text, quote, start, end, err)
		}
	})
}

func FuzzLocate(f *testing.F) {
	f.Add("It is **very _good_**.", "very good")
	f.Add("[a](b) \xff İ", "ab")
	f.Fuzz(func(t *testing.T, text, quote string) {
		for _, matching := range []Matching{Verbatim, Folded} {
			start, end, err := locate(text, quote, matching)
			if err == nil && !(0 <= start && start < end && end <= len(text)) {
				t.Fatalf("range [%d, %d) of %d bytes", start, end, len(text))
			}
		}
	})
}
