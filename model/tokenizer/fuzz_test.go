package tokenizer

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

var seedTexts = []string{
	"", "Hello, world!", "cafe\u0301 CAFÉ", "a\u200bb", "x[SEP]y [MASK]", "中文English混合", "한국어", "\xff\xfe", "a\xc3", "\xe4\xb8", "\xf0\x9f\x98\x80",
	"\u0301\u302e\u0323\u1b44", "\u0344\u302e", "İẞΣς\u212a", "豈\u0301", "\x00\ufffd\u00ad", "don't stop-me_now", "\u302e\u200b\u0323\ufeff\u302f",
}

// FuzzEncode compares with the oracle, and checks what holds of any text.
func FuzzEncode(f *testing.F) {
	for i, text := range seedTexts {
		f.Add(text, seedTexts[len(seedTexts)-1-i], uint8(i), uint8(i))
	}
	var toks []*Tokenizer
	var oracles []*oracle
	for _, model := range wordPieces {
		data, err := os.ReadFile(filepath.Join("testdata", model, "tokenizer.json"))
		if err != nil {
			f.Fatal(err)
		}
		o, err := newOracle(data)
		if err != nil {
			f.Fatal(err)
		}
		toks, oracles = append(toks, parse(f, data)), append(oracles, o)
	}
	f.Fuzz(func(t *testing.T, first, second string, maxLength, flags uint8) {
		if len(first)+len(second) > 1<<12 {
			return
		}
		for i, tok := range toks {
			checkOracle(t, tok, oracles[i], first)
			checkAny(t, tok, first, second, options(maxLength, flags))
			checkOffsets(t, tok, first, second, options(maxLength, flags))
		}
	})
}

func options(maxLength, flags uint8) Options {
	return Options{
		MaxLength: int(maxLength), Strategy: Strategy(flags % 3), TruncateLeft: flags&4 != 0,
		NoSpecialTokens: flags&8 != 0, ParseSpecialTokens: flags&16 != 0,
	}
}

// FuzzOthers checks what holds of any text with the models without an oracle.
func FuzzOthers(f *testing.F) {
	for i, text := range seedTexts {
		f.Add(text, seedTexts[len(seedTexts)-1-i], uint8(i), uint8(i))
	}
	f.Add("'s 'LL \r\n  x 1234 ﬁ\u0301\r\n", "<mask>  <s>\u0301 ▁▁a", uint8(20), uint8(16))
	var toks []*Tokenizer
	for _, model := range models[len(wordPieces):] {
		toks = append(toks, load(f, model))
	}
	f.Fuzz(func(t *testing.T, first, second string, maxLength, flags uint8) {
		if len(first)+len(second) > 1<<12 {
			return
		}
		for _, tok := range toks {
			checkAny(t, tok, first, second, options(maxLength, flags))
			checkPlaces(t, tok, first, options(0, flags))
			checkTiled(t, tok, first)
		}
		checkRoundTrip(t, toks[0], first)
	})
}

// checkPlaces checks that offsets are on characters.
func checkPlaces(t failer, tok *Tokenizer, text string, o Options) {
	t.Helper()
	var e Encoding
	if err := tok.Encode(&e, text, o); err != nil {
		t.Fatalf("%+q: %v", text, err)
	}
	boundary := boundaries(text)
	for i, at := range e.Offsets {
		if at.Start > at.End || !boundary[at.Start] || !boundary[at.End] {
			t.Fatalf("%+q: token %d is at %v", text, i, at)
		}
	}
}

// checkTiled checks that patterns leave nothing out.
func checkTiled(t failer, tok *Tokenizer, text string) {
	t.Helper()
	text = normalize(tok.normalizers, text)
	for _, match := range []func(scanner) int{gpt2, cl100k} {
		for rest := (Span{0, len(text)}); rest.Start < len(text); {
			w, after := wordPattern{properties(), match}.next(text, rest)
			if w.Start != rest.Start || w.End <= w.Start || after != (Span{w.End, len(text)}) {
				t.Fatalf("%+q: a word at %v, after %d", text, w, rest.Start)
			}
			rest = after
		}
	}
}

// checkRoundTrip checks a tokenizer that leaves texts as they are.
func checkRoundTrip(t failer, tok *Tokenizer, text string) {
	t.Helper()
	var e Encoding
	if err := tok.Encode(&e, text, Options{}); err != nil {
		t.Fatalf("%+q: %v", text, err)
	}
	want := string([]rune(text))
	if got, err := tok.Decode(e.IDs, true); got != want || err != nil {
		t.Fatalf("decoded %+q, %v, want %+q", got, err, want)
	}
}

// TestEncodeLikeOracle does as FuzzEncode, on texts of the most difficult
// characters.
func TestEncodeLikeOracle(t *testing.T) {
	data, err := os.ReadFile("testdata/bert_uncased/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	o, err := newOracle(data)
	if err != nil {
		t.Fatal(err)
	}
	tok := parse(t, data)
	texts := rapid.StringOf(rapid.OneOf(
		rapid.SampledFrom([]rune("abcxyzABC .,-\t\n\u00a0\u200b\u00ad\x00\ufffd")),
		rapid.SampledFrom([]rune("\u0301\u0323\u0345\u302e\u302f\u1b44\ua953\U0001d165\U0001d16d\u08d4\u0344\u0f73\u0f71\u0902")),
		rapid.SampledFrom([]rune("éÉǻộİẞΣſ\u212a\u1e9b한글각中豈\U0002f800\U0002b820")),
		rapid.Rune(),
	))
	rapid.Check(t, func(t *rapid.T) { checkOracle(t, tok, o, texts.Draw(t, "text")) })
}

type failer interface {
	Helper()
	Fatalf(string, ...any)
}

func checkOracle(t failer, tok *Tokenizer, o *oracle, text string) {
	t.Helper()
	var got Encoding
	if err := tok.Encode(&got, text, Options{NoSpecialTokens: true}); err != nil {
		t.Fatalf("%+q: %v", text, err)
	}
	if diff := cmp.Diff(o.encode(text), got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%+q (-oracle +got):\n%s", text, diff)
	}
}

// checkAny checks lengths and the count of what was cut.
func checkAny(t failer, tok *Tokenizer, first, second string, o Options) {
	t.Helper()
	checkPairOf(t, tok, first, second, o)
	var got, whole Encoding
	if err := tok.EncodePair(&got, first, second, o); err != nil {
		if !errors.Is(err, ErrCannotTruncate) {
			t.Fatalf("%+q, %+q: %v", first, second, err)
		}
		return
	}
	if o.MaxLength > 0 && got.Len() > o.MaxLength {
		t.Fatalf("%+q, %+q: %d tokens, at most %d wanted", first, second, got.Len(), o.MaxLength)
	}
	o.MaxLength = 0
	if err := tok.EncodePair(&whole, first, second, o); err != nil || whole.Len() != got.Len()+got.Cut {
		t.Fatalf("%+q, %+q: %d tokens and %d cut, of %d, %v", first, second, got.Len(), got.Cut, whole.Len(), err)
	}
}

// checkOffsets encodes a pair and checks its offsets as checkOrdered does.
func checkOffsets(t failer, tok *Tokenizer, first, second string, o Options) {
	t.Helper()
	var e Encoding
	o.MaxLength = 0
	if err := tok.EncodePair(&e, first, second, o); err != nil {
		t.Fatalf("%+q, %+q: %v", first, second, err)
	}
	checkOrdered(t, &e, first, second)
}

// checkOrdered checks that the places of each text's tokens are in order, on
// characters, and not empty; types tell the texts apart.
func checkOrdered(t failer, e *Encoding, texts ...string) {
	t.Helper()
	for i, text := range texts {
		boundary := boundaries(text)
		last := Span{}
		for k, at := range e.Offsets {
			if e.Special[k] || e.TypeIDs[k] != int32(i) {
				continue
			}
			if at.Start < last.Start || at.End < last.End || at.Start >= at.End || at.End > len(text) || !boundary[at.Start] || !boundary[at.End] {
				t.Fatalf("%+q: token %d is at %v, after %v", text, k, at, last)
			}
			last = at
		}
	}
}

func boundaries(text string) map[int]bool {
	at := map[int]bool{len(text): true}
	for i := 0; i < len(text); {
		at[i] = true
		_, size := utf8.DecodeRuneInString(text[i:])
		i += size
	}
	return at
}

// FuzzParse feeds damaged files.
func FuzzParse(f *testing.F) {
	f.Add(tiny)
	for _, c := range badFiles {
		f.Add(c.json)
	}
	f.Add(replace(`{"type": "BertNormalizer"`, `{"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Prepend", "prepend": "ab"}, {"type": "Replace", "pattern": {"String": "a"}, "content": "cde"}], "old": ""`))
	f.Add(replace(`"BertPreTokenizer"`, `"Metaspace", "replacement": "_", "prepend_scheme": "first"`))
	f.Add(withModel(`{"type": "Unigram", "unk_id": 2, "vocab": [["[CLS]", 0], ["[SEP]", 0], ["[UNK]", 0], ["a", -1.5e-7], ["ab", -2]]}`))
	f.Fuzz(func(t *testing.T, data string) {
		tok, err := Parse([]byte(data))
		if err != nil {
			return
		}
		for _, text := range seedTexts {
			checkAny(t, tok, text, text, Options{ParseSpecialTokens: true})
			checkPlaces(t, tok, text, Options{ParseSpecialTokens: true})
		}
	})
}
