package tokenizer

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// naiveBPE merges one pair at a time, on strings, after a look at all of them.
func naiveBPE(ranks map[[2]string]int, word string) []string {
	var parts []string
	for i := range len(word) {
		parts = append(parts, string(byteAlphabet[word[i]]))
	}
	for {
		best, rank := -1, len(ranks)
		for i := range len(parts) - 1 {
			if r, ok := ranks[[2]string{parts[i], parts[i+1]}]; ok && r < rank {
				best, rank = i, r
			}
		}
		if best < 0 {
			return parts
		}
		parts[best] += parts[best+1]
		parts = append(parts[:best+1], parts[best+2:]...)
	}
}

func readMerges(t testing.TB, data []byte) map[[2]string]int {
	t.Helper()
	var f struct{ Model struct{ Merges [][2]string } }
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	ranks := map[[2]string]int{}
	for i, m := range f.Model.Merges {
		ranks[m] = i
	}
	return ranks
}

func TestBPELikeNaive(t *testing.T) {
	data, err := os.ReadFile("testdata/bpe_roberta/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	tok, ranks := parse(t, data), readMerges(t, data)
	words := rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.SampledFrom([]rune(" inthe-é0")), 1, 200, -1),
		rapid.Map(rapid.IntRange(longWord-2, 3*longWord), func(n int) string { return strings.Repeat("in the-", n)[:n] }))
	rapid.Check(t, func(t *rapid.T) {
		word := words.Draw(t, "word")
		var got []string
		var w workspace
		end := 0
		for _, p := range tok.model.tokenize(&w, nil, word) {
			if int(p.start) != end {
				t.Fatalf("%+q: a piece at %d, after %d", word, p.start, end)
			}
			end = int(p.end)
			token, _ := tok.Token(p.id)
			got = append(got, token)
		}
		if diff := cmp.Diff(naiveBPE(ranks, word), got); diff != "" || end != len(word) {
			t.Fatalf("%+q (-naive +got):\n%s", word, diff)
		}
	})
}

// TestOlderMerges reads merges written as "a b".
func TestOlderMerges(t *testing.T) {
	older, err := Load("testdata/bpe_roberta/tokenizer_string_merges.json")
	if err != nil {
		t.Fatal(err)
	}
	var got Encoding
	for _, g := range readLines[golden](t, "bpe_roberta", "ids.jsonl") {
		g.Special = true
		encode(t, older, &got, g)
		checkLike(t, g.name(), got, g.encoding())
	}
}
