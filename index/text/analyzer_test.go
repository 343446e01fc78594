package text

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func terms(a Analyzer, s string) []string {
	var all []string
	for term := range a.Terms(s) {
		all = append(all, string(term))
	}
	return all
}

func TestTerms(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"", "The runners' RUNNING", "runner run"},
		{"english", "The server's replicas are running", "server replica run"},
		{"english", "naïve café 東京", "naïv café 東京"},
		{"english", "the 東京都 servers カタカナ, 京 x", "東京 京都 server カタ タカ カナ 京 x"},
		{"english", "v1.2 user@example.com", "v1.2 user example.com"},
		{"standard", "İstanbul ÉTÉ", "istanbul été"},
		{"standard", "The replicas are running", "replicas running"},
		{"cjk", "東京都 Ｑｕｏｔａ the", "東京 京都 quota the"},
		{"german", "Die Häuser und Straßen", "haus strass"},
		{"french", "l'avion et les chevaux", "avion cheval"},
		{"spanish", "las bibliotecas públicas", "bibliotec public"},
	} {
		a, err := New(test.name)
		require.NoError(t, err)
		require.Equal(t, test.want, strings.Join(terms(a, test.text), " "), test)
	}
}

// TestPlaces: positions ascend by one, with a gap for each stop word, and
// bigrams have one each.
func TestPlaces(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"english", "State of the Union address", "state:0 union:3 address:4"},
		{"english", "the 東京都 of カナ server", "東京:1 京都:2 カナ:4 server:5"},
		{"cjk", "東京都庁 の server", "東京:0 京都:1 都庁:2 の:3 server:4"},
		{"standard", "東 東 x", "東:0 東:1 x:2"},
	} {
		a, err := New(test.name)
		require.NoError(t, err)
		var got []string
		for at, term := range a.Places(test.text) {
			got = append(got, fmt.Sprintf("%s:%d", term, at))
		}
		require.Equal(t, test.want, strings.Join(got, " "), test.text)
	}
}

func TestEveryAnalyzer(t *testing.T) {
	for _, name := range Names() {
		a, err := New(name)
		require.NoError(t, err)
		require.Equal(t, name+"/2", a.Identity())
		require.Contains(t, terms(a, "Alpha 42"), "42", name)
		require.Empty(t, terms(a, " \n "), name)
	}
}

func TestUnknownAnalyzer(t *testing.T) {
	_, err := New("klingon")
	require.ErrorContains(t, err, `"klingon"`)
	for _, name := range Names() {
		require.ErrorContains(t, err, name)
	}
}

func TestLongTerm(t *testing.T) {
	a, err := New("standard")
	require.NoError(t, err)
	require.Equal(t, []string{strings.Repeat("x", MaxTermBytes)}, terms(a, strings.Repeat("x", 100_000)))
	require.Equal(t, []string{strings.Repeat("é", MaxTermBytes/2)}, terms(a, strings.Repeat("é", 1000)))
}

func TestInvalidUTF8(t *testing.T) {
	a, err := New("english")
	require.NoError(t, err)
	require.Equal(t, []string{"alpha", "beta"}, terms(a, "alpha \xff\xfe\x80 beta"))
}

func TestConcurrentUse(t *testing.T) {
	a, err := New("german")
	require.NoError(t, err)
	want := terms(a, "Die Häuser und Straßen der Städte")
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 100 {
				if got := terms(a, "Die Häuser und Straßen der Städte"); !slices.Equal(want, got) {
					t.Errorf("got %q, want %q", got, want)
				}
			}
		})
	}
	group.Wait()
}

// FuzzTerms: any text gives the same valid terms twice, in every language.
func FuzzTerms(f *testing.F) {
	f.Add("The server's replicas")
	f.Add("l'avion d'été — 東京 \xff ’s")
	f.Add("ß'ẞ İstanbul ﬁ \u200d e\u0301")
	var all []Analyzer
	for _, name := range Names() {
		a, err := New(name)
		require.NoError(f, err)
		all = append(all, a)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, a := range all {
			found, last := terms(a, s), -1
			for at := range a.Places(s) {
				require.Greater(t, at, last, "%s: %q", a.Identity(), s)
				last = at
			}
			require.Equal(t, found, terms(a, s), a.Identity())
			for _, term := range found {
				require.True(t, len(term) > 0 && len(term) <= MaxTermBytes && utf8.ValidString(term), "%s: %q", a.Identity(), term)
			}
		}
	})
}
