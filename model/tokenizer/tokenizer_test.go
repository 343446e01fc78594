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

// TestNoTextIsSpecial tries every special token, also as what a normaliser turns
// into one.
func TestNoTextIsSpecial(t *testing.T) {
	wide := strings.NewReplacer("<", "＜", ">", "＞", "[", "［", "]", "］")
	for _, model := range models {
		tok := load(t, model)
		var e Encoding
		for id, kind := range tok.vocabulary.kinds {
			if kind&specialKind == 0 {
				continue
			}
			content, _ := tok.Token(int32(id))
			if err := tok.Encode(&e, "x"+content+"y "+content+" "+wide.Replace(content), Options{NoSpecialTokens: true}); err != nil {
				t.Fatal(err)
			}
			for _, got := range e.IDs {
				token, _ := tok.Token(got)
				if tok.vocabulary.kinds[got]&specialKind != 0 && token != "[UNK]" && token != "<unk>" {
					t.Errorf("%s: %q became %v", model, content, e.IDs)
				}
			}
		}
	}
}

func TestEncodeDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("under the race detector sync.Pool drops some of what it is given")
	}
	text := strings.Join(seedTexts, " ") + strings.Repeat(" The quick  brown fox. Ünïcödé İ \u0344\u302e ﬁ\u0301", 20) + strings.Repeat("in", longWord)
	for _, model := range models {
		tok := load(t, model)
		var e Encoding
		got := testing.AllocsPerRun(100, func() {
			if err := tok.EncodePair(&e, text, text, Options{MaxLength: 100, ParseSpecialTokens: true}); err != nil {
				t.Fatal(err)
			}
		})
		if got != 0 {
			t.Errorf("%s: %v allocations an encoding, want none", model, got)
		}
	}
}

func TestToken(t *testing.T) {
	tok := load(t, "bpe_modernbert")
	for id, want := range map[int32]string{0: "<|endoftext|>", 2600: "|||IP_ADDRESS|||", 2627: "[SEP]", 2630: "", -1: "", 1 << 30: ""} {
		if got, ok := tok.Token(id); got != want || ok != (want != "") {
			t.Errorf("token %d is %q, %t, want %q", id, got, ok, want)
		}
	}
}

// TestUnsupportedDecoder: such a model can still encode.
func TestUnsupportedDecoder(t *testing.T) {
	tok := parse(t, change(t, "wordpiece_cased", map[string]any{"decoder": map[string]any{"type": "CTC"}}))
	if _, err := tok.Decode([]int32{5}, false); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), `decoder "CTC"`) {
		t.Errorf("error %v, want ErrUnsupported and the decoder's name", err)
	}
}

// TestDamagedBytes checks that what is not UTF-8 when decoded becomes one U+FFFD
// for each maximal part.
func TestDamagedBytes(t *testing.T) {
	for raw, want := range map[string]string{
		"a\xffb": "a�b", "\xe4\xb8": "�", "\xe4\xb8a": "�a", "\xf0\x9f\x98": "�", "\xf0\x9f\xf0\x9f\x98\x80": "�😀", "\xed\xa0\x80": "���",
		"\xc0\x80": "��", "\xf4\x90\x80": "���", "\xe0\x80": "��", "\x80\x80": "��", "\xf0\x9f": "�", "\xc3": "�", "é": "é",
	} {
		if got := string(appendValid(nil, []byte(raw))); got != want {
			t.Errorf("%q is decoded as %q, want %q", raw, got, want)
		}
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
			checkOrdered(t, &bad, text)
		}
	}
}

// TestInvalidUTF8Everywhere does the same for the other models.
func TestInvalidUTF8Everywhere(t *testing.T) {
	for _, model := range models {
		tok := load(t, model)
		var bad, good Encoding
		for _, text := range append(seedTexts, "a\xffb", "\xf0\x9fb \xe4", "\x80 \x80") {
			if err := tok.Encode(&bad, text, Options{}); err != nil {
				t.Fatal(err)
			}
			if err := tok.Encode(&good, string([]rune(text)), Options{}); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(bad.IDs, good.IDs) {
				t.Errorf("%s, %+q: ids %v, want %v", model, text, bad.IDs, good.IDs)
			}
		}
	}
}
