package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

type swept struct {
	Classes [][3]any
	Map     map[string]string
}

func readSweep(t *testing.T) map[string]swept {
	t.Helper()
	var sweep map[string]swept
	if err := json.NewDecoder(open(t, "testdata/codepoint_sweeps.json.gz")).Decode(&sweep); err != nil {
		t.Fatal(err)
	}
	return sweep
}

// each calls check with every code point but surrogates, and its class.
func (s swept) each(t *testing.T, check func(c rune, class string)) {
	t.Helper()
	seen := 0
	for _, class := range s.Classes {
		for c := rune(class[0].(float64)); c <= rune(class[1].(float64)); c++ {
			seen++
			check(c, class[2].(string))
		}
	}
	if want := 0x110000 - 0x800; seen != want {
		t.Fatalf("%d code points, want %d", seen, want)
	}
}

// TestEveryCodePoint puts each code point between a and b and compares the
// words with those of the reference.
func TestEveryCodePoint(t *testing.T) {
	sweep := readSweep(t)
	for name, normal := range map[string]*bertNormalizer{
		"bert_uncased": newBertNormalizer(true, true, true, true),
		"bert_cased":   newBertNormalizer(true, true, false, false),
	} {
		sweep[name].each(t, func(c rune, class string) {
			want := behaviour(class, c, sweep[name].Map)
			if got := wordsOf(normal, "a"+string(c)+"b"); got != want {
				t.Fatalf("%s: %U is %+q, want %+q (%s)", name, c, got, want, class)
			}
		})
	}
}

// TestEveryCodePointInPatterns tells the classes of the regular expressions
// apart by what a code point makes one word with.
func TestEveryCodePointInPatterns(t *testing.T) {
	sweep := readSweep(t)
	joins := func(s splitter, text string) bool { return len(appendWords(nil, s, text, Span{0, len(text)})) == 1 }
	classOf := func(s splitter, c string) string {
		switch {
		case joins(s, "a"+c):
			return "L"
		case joins(s, "1"+c):
			return "N"
		case joins(s, "!"+c+"!"):
			return "O"
		}
		return "S"
	}
	for name, pattern := range map[string]splitter{"bytelevel_regex": wordPattern{properties(), gpt2}, "split_regex": wordPattern{properties(), cl100k}} {
		sweep[name].each(t, func(c rune, want string) {
			if got := classOf(pattern, string(c)); got != want {
				t.Fatalf("%s: %U is %s, want %s", name, c, got, want)
			}
		})
	}
	sweep["whitespace_split"].each(t, func(c rune, want string) {
		if joins(whitespaceSplit{properties()}, "a"+string(c)+"b") != (want == "join") {
			t.Fatalf("whitespace_split: %U does not %s", c, want)
		}
	})
}

// TestEveryCodePointNormalized normalises each code point alone.
func TestEveryCodePointNormalized(t *testing.T) {
	sweep := readSweep(t)
	var d draft
	for name, n := range map[string]normalizer{
		"NFC":                  composer{properties(), 0},
		"NFKC":                 composer{properties(), compatible},
		"Lowercase":            lowercase{properties()},
		"Precompiled_nmt_nfkc": load(t, "unigram_precompiled").normalizers[1],
	} {
		sweep["whitespace_split"].each(t, func(c rune, _ string) {
			want, changed := sweep[name].Map[fmt.Sprintf("%X", c)]
			if !changed {
				want = string(c)
			}
			d.normalize([]normalizer{n}, string(c), Span{0, len(string(c))})
			if d.text != want {
				t.Fatalf("%s: %U is %+q, want %+q", name, c, d.text, want)
			}
		})
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
	for _, w := range appendWords(nil, bertPreTokenizer{properties()}, text, Span{0, len(text)}) {
		words = append(words, text[w.Start:w.End])
	}
	return strings.Join(words, "|")
}
