package tokenizer

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestSpecialTokensInTextAreText(t *testing.T) {
	tok := load(t, "bert_uncased")
	var text, parsed Encoding
	if err := tok.Encode(&text, "x[SEP]y", Options{}); err != nil {
		t.Fatal(err)
	}
	if err := tok.Encode(&parsed, "x[SEP]y", Options{ParseSpecialTokens: true}); err != nil {
		t.Fatal(err)
	}
	const sep = 102
	count := func(e Encoding) int { return strings.Count(string(runes(e.IDs)), string(rune(sep))) }
	if count(text) != 1 || count(parsed) != 2 {
		t.Fatalf("separators: %d in %v, %d in %v; want 1 and 2", count(text), text.IDs, count(parsed), parsed.IDs)
	}
}

func runes(ids []int32) []rune { return ids }

func TestMaxLengthBelowSpecialTokens(t *testing.T) {
	tok := load(t, "bert_uncased")
	e := Encoding{IDs: []int32{7}}
	for _, n := range []int{1, -1} {
		if err := tok.Encode(&e, "hello", Options{MaxLength: n}); !errors.Is(err, ErrCannotTruncate) || e.Len() != 0 {
			t.Errorf("MaxLength %d: error %v, %d tokens", n, err, e.Len())
		}
	}
}

func TestTruncateOnlyOneText(t *testing.T) {
	tok := load(t, "bert_uncased")
	var e Encoding
	if err := tok.EncodePair(&e, "one two three", "four five", Options{MaxLength: 6, Strategy: OnlyFirst, TruncateLeft: true}); err != nil {
		t.Fatal(err)
	}
	if want := (Span{8, 13}); e.Len() != 6 || e.Cut != 2 || e.Offsets[1] != want {
		t.Errorf("%d tokens, %d cut, first at %v; want 6, 2, %v", e.Len(), e.Cut, e.Offsets[1], want)
	}
	if err := tok.Encode(&e, "one two three", Options{MaxLength: 3, Strategy: OnlySecond}); !errors.Is(err, ErrCannotTruncate) {
		t.Errorf("OnlySecond of one text: %v", err)
	}
}

func TestEncodeDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("under the race detector sync.Pool drops some of what it is given")
	}
	tok := load(t, "bert_uncased")
	text := strings.Join(seedTexts, " ") + strings.Repeat(" The quick brown fox. Ünïcödé İ \u0344\u302e", 20)
	var e Encoding
	got := testing.AllocsPerRun(200, func() {
		if err := tok.EncodePair(&e, text, text, Options{MaxLength: 100, ParseSpecialTokens: true}); err != nil {
			t.Fatal(err)
		}
	})
	if got != 0 {
		t.Errorf("%v allocations an encoding, want none", got)
	}
}

func TestConcurrentUse(t *testing.T) {
	tok := load(t, "bert_uncased")
	rows := readLines[golden](t, "bert_uncased", "ids.jsonl")
	var wait sync.WaitGroup
	for w := range 4 {
		wait.Go(func() {
			var got Encoding
			for i := w; i < len(rows); i += 2 {
				if err := tok.Encode(&got, rows[i].Text, Options{ParseSpecialTokens: true}); err != nil || string(runes(got.IDs)) != string(runes(rows[i].IDs)) {
					t.Errorf("%+q: ids %v, want %v, error %v", rows[i].Text, got.IDs, rows[i].IDs, err)
					return
				}
			}
		})
	}
	wait.Wait()
}

// TestInvalidUTF8 replaces each bad byte by U+FFFD, which must change nothing
// but the places.
func TestInvalidUTF8(t *testing.T) {
	for _, clean := range []bool{true, false} {
		tok := parse(t, change(t, "wordpiece_cased", map[string]any{
			"normalizer": map[string]any{"type": "BertNormalizer", "clean_text": clean, "handle_chinese_chars": true, "lowercase": true},
			"model": map[string]any{
				"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 9,
				"vocab": map[string]int{"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "a": 5, "##\ufffd": 6, "##b": 7, "\ufffd": 8},
			},
		}))
		var bad, good Encoding
		for _, text := range append(seedTexts, "a\xffb", "\xf0\x9fb \xe4") {
			if err := tok.Encode(&bad, text, Options{}); err != nil {
				t.Fatal(err)
			}
			if err := tok.Encode(&good, string([]rune(text)), Options{}); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(bad.IDs, good.IDs) {
				t.Errorf("clean %t, %+q: ids %v, want %v", clean, text, bad.IDs, good.IDs)
			}
			checkOffsets(t, &bad, text)
		}
	}
}
