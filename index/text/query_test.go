package text

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// written is how the tests write clauses: term, "a b@2", pre*, each ×weight.
func written(clauses []Clause) string {
	var all []string
	for _, c := range clauses {
		s := strings.Join(c.Terms, " ")
		switch c.Kind {
		case Phrase:
			var terms []string
			for i, term := range c.Terms {
				terms = append(terms, fmt.Sprintf("%s@%d", term, c.Offsets[i]))
			}
			s = `"` + strings.Join(terms, " ") + `"`
		case Prefix:
			s = fmt.Sprintf("%s*(%s)", c.Prefix, s)
		}
		if c.Weight > 1 {
			s += fmt.Sprintf("×%d", c.Weight)
		}
		all = append(all, s)
	}
	return strings.Join(all, " | ")
}

func TestParse(t *testing.T) {
	a, err := New("english")
	require.NoError(t, err)
	for query, want := range map[string]string{
		"":                                 "",
		"disk failover disks":              "disk×2 | failov",
		`"disk failover" quota`:            `disk | failov | quota | "disk@0 failov@1"`,
		`“state of the union”`:             `state | union | "state@0 union@3"`,
		`"a b" x "a  B"`:                   `b×2 | x`,
		`"x y" "X  y"`:                     `x×2 | y×2 | "x@0 y@1"×2`,
		`11" or 12" pads`:                  `11 | 12 | pad`,
		`a stray " stays a word`:           `strai | stai | word`,
		`"quota"`:                          `quota`,
		`""`:                               ``,
		`"""x y"`:                          `x | y | "x@0 y@1"`,
		"replic*":                          "replic*(replic)",
		"Running* x":                       "x | running*(run)",
		"the*":                             "the*()",
		"ab* 2*3 f(x)* **bold** *slanted*": "ab | 2 | 3 | f | x | bold | slant",
		"fail-over*, now":                  "fail | now | over*()",
		"node*s node**":                    "node×2 | s",
		"京* 東京* 東京都*":                      "京*(京) | 東京*(東京) | 東京 | 京都",
		`"東京都"`:                            `東京 | 京都 | "東京@0 京都@1"`,
		`"disk fail*"`:                     `disk | "disk@0 fail@1" | fail*(fail)`,
		"* \" ** \xff*":                    "",
	} {
		require.Equal(t, want, written(a.Parse(query)), "%q", query)
	}
}

// TestParsePlain: a text without marks is the words it always was.
func TestParsePlain(t *testing.T) {
	a, err := New("german")
	require.NoError(t, err)
	const query = "Die Häuser, und die Straßen der Häuser's?"
	var want []string
	seen := map[string]bool{}
	for _, term := range terms(a, query) {
		if !seen[term] {
			want = append(want, term)
		}
		seen[term] = true
	}
	var got []string
	for _, c := range a.Parse(query) {
		require.Equal(t, Word, c.Kind)
		got = append(got, c.Terms...)
	}
	require.Equal(t, want, got)
}

// A query of many phrases and prefixes costs no more than so many.
func TestParseIsBounded(t *testing.T) {
	a, err := New("english")
	require.NoError(t, err)
	var query strings.Builder
	for i := range 200 {
		fmt.Fprintf(&query, `ship%d* "word%d other%d" `, i, i, i)
	}
	count := map[Kind]int{}
	for _, c := range a.Parse(query.String()) {
		count[c.Kind]++
	}
	require.Equal(t, map[Kind]int{Phrase: maxPhrases, Prefix: maxPrefixes, Word: 200 + 200 + 200 - maxPrefixes}, count)
}

// FuzzParse: any text is a query, whose clauses are distinct, bounded and whole.
func FuzzParse(f *testing.F) {
	f.Add(`the "disk failover" replic* of 東京*`)
	f.Add("\" * ** \"\"\" “ \xff* „ a_b*")
	a, err := New("english")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, query string) {
		seen := map[string]bool{}
		for _, c := range a.Parse(query) {
			require.False(t, seen[c.key()])
			seen[c.key()] = true
			require.Positive(t, c.Weight)
			require.LessOrEqual(t, len(c.Prefix), MaxTermBytes)
			require.True(t, utf8.ValidString(c.Prefix))
			switch c.Kind {
			case Word:
				require.Len(t, c.Terms, 1)
			case Phrase:
				require.Greater(t, len(c.Terms), 1)
				require.Len(t, c.Offsets, len(c.Terms))
			case Prefix:
				require.NotEmpty(t, c.Prefix)
			}
		}
	})
}
