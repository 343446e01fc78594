package ground

import (
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// long are sentences of 200 parts, and sources of many lines that say most of each,
// in a language.
func long(l *Language, sentences, parts, sources int) (texts []string, all []*Source) {
	for i := range sentences {
		var text strings.Builder
		for j := range parts {
			fmt.Fprintf(&text, "ab%d cd %d, ", j%7, 90+(i+j)%5)
		}
		texts = append(texts, strings.TrimSuffix(text.String(), ", ")+".")
	}
	for i := range sources {
		var text strings.Builder
		for j := range 250 {
			fmt.Fprintf(&text, "\n- ab%d cd, %d", (i+j)%7, j%3)
		}
		all = append(all, NewSource([]Section{{"The title", text.String()}}, l))
	}
	return texts, all
}

// BenchmarkClaims holds 40 sentences of 200 parts, whole and part by part, against
// 8 sources each.
func BenchmarkClaims(b *testing.B) {
	l := language(b, "english")
	texts, sources := long(l, 40, 200, 8)
	c := NewContext("", sources, l)
	if got := len(l.Parts(texts[0])); got != 200 {
		b.Fatal(got)
	}
	for b.Loop() {
		for _, text := range texts {
			whole := l.Claim(Part{Text: text})
			for _, s := range sources {
				s.FaultsOf(whole, c)
			}
			for _, part := range l.Parts(text) {
				claim := l.Claim(part)
				for _, s := range sources {
					s.FaultsOf(claim, c)
				}
			}
		}
	}
}

// A claim is read once, not again for each source, and to compare it with one
// takes no memory that grows with the source.
func TestClaimsAreReadOnce(t *testing.T) {
	l := language(t, "english")
	terms, asked := l.terms, 0
	l.terms = func(text string) iter.Seq[[]byte] {
		asked += len(text)
		return terms(text)
	}
	texts, sources := long(l, 1, 200, 8)
	c := NewContext("", sources, l)
	claim := l.Claim(Part{Text: texts[0]})
	faults := sources[0].FaultsOf(claim, c)
	require.NotEmpty(t, faults)
	asked = 0
	for _, s := range sources {
		require.Equal(t, faults, s.FaultsOf(claim, c))
	}
	require.Zero(t, asked, "the analyzer is asked again for what is known")
	require.LessOrEqual(t, testing.AllocsPerRun(10, func() { sources[0].FaultsOf(claim, c) }), 20.0)
}
