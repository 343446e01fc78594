package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

// TestEveryCodePoint puts each code point between a and b and compares the
// words with those of the reference.
func TestEveryCodePoint(t *testing.T) {
	var sweep map[string]struct {
		Classes [][3]any
		Map     map[string]string
	}
	if err := json.NewDecoder(open(t, "testdata/codepoint_sweeps.json.gz")).Decode(&sweep); err != nil {
		t.Fatal(err)
	}
	for name, normal := range map[string]*bertNormalizer{
		"bert_uncased": newBertNormalizer(true, true, true, true),
		"bert_cased":   newBertNormalizer(true, true, false, false),
	} {
		seen := 0
		for _, class := range sweep[name].Classes {
			for c := rune(class[0].(float64)); c <= rune(class[1].(float64)); c++ {
				seen++
				want := behaviour(class[2].(string), c, sweep[name].Map)
				if got := wordsOf(normal, "a"+string(c)+"b"); got != want {
					t.Fatalf("%s: %U is %+q, want %+q (%s)", name, c, got, want, class[2])
				}
			}
		}
		if want := 0x110000 - 0x800; seen != want {
			t.Fatalf("%s: %d code points, want %d", name, seen, want)
		}
	}
}

// behaviour spells a class of the sweep out, words separated by |.
func behaviour(class string, c rune, mapped map[string]string) string {
	switch class {
	case "join":
		return "a" + string(c) + "b"
	case "split":
		return "a|" + string(c) + "|b"
	case "drop":
		return "ab"
	case "space":
		return "a|b"
	case "hangul_nfd":
		return "a" + norm.NFD.String(string(c)) + "b"
	}
	return mapped[fmt.Sprintf("%X", c)]
}

func wordsOf(n normalizer, text string) string {
	text = normalize([]normalizer{n}, text)
	var words []string
	for _, w := range (bertPreTokenizer{properties()}).split(nil, text, Span{0, len(text)}) {
		words = append(words, text[w.Start:w.End])
	}
	return strings.Join(words, "|")
}
