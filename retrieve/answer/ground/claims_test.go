package ground

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// passage of testdata/claims.txt, with the sentences that cite it.
type passage struct {
	analyzer, question string
	section            Section
	claims             []string // each after its mark
}

func readClaims(t *testing.T) (all []passage) {
	file, err := os.ReadFile("testdata/claims.txt")
	require.NoError(t, err)
	for _, block := range strings.Split(string(file), "\n\n")[1:] {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		all = append(all, passage{
			analyzer: strings.Fields(lines[0])[2], question: strings.TrimPrefix(lines[3], "question "),
			section: Section{Titles: lines[1], Text: lines[2]}, claims: lines[4:],
		})
	}
	return all
}

// Sentences in other words stand, and inventions fall, as they are marked; all
// passages of a language are shown together.
func TestClaims(t *testing.T) {
	all := readClaims(t)
	require.Len(t, all, 10)
	shown := map[string][]*Source{}
	languages := map[string]*Language{}
	for _, p := range all {
		if languages[p.analyzer] == nil {
			languages[p.analyzer] = language(t, p.analyzer)
		}
		shown[p.analyzer] = append(shown[p.analyzer], NewSource([]Section{p.section}, languages[p.analyzer]))
	}
	seen := map[string]int{}
	for _, p := range all {
		c := NewContext(p.question, shown[p.analyzer], languages[p.analyzer])
		s := shown[p.analyzer][seen[p.analyzer]]
		seen[p.analyzer]++
		for _, claim := range p.claims {
			require.Contains(t, "+-~!", claim[:1], claim)
			stands := strings.ContainsAny(claim[:1], "+~")
			require.Equal(t, stands, len(s.Faults(claim[2:], c)) == 0, claim)
		}
	}
}
