package tokenizer

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// whole is a model whose texts are never cut, the oracle, beside one whose texts
// are cut wherever they can be.
type whole struct {
	name        string
	oracle, cut *Tokenizer
}

func wholes(t testing.TB) []whole {
	var all []whole
	for _, name := range models {
		w := whole{name, load(t, name), load(t, name)}
		all = append(all, w)
	}
	for _, v := range variants {
		all = append(all, whole{v.name, v.load(t), v.load(t)})
	}
	for _, w := range all {
		require.True(t, w.cut.cuts.texts && w.cut.cuts.words, w.name)
		w.oracle.cuts, w.cut.cuts.least = &cuts{}, 1
	}
	return all
}

// variant is a model with other parts, as JSON; those that are not given stay.
type variant struct{ name, model, normalizer, preTokenizer string }

func (v variant) load(t testing.TB) *Tokenizer {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", v.model, "tokenizer.json"))
	require.NoError(t, err)
	var file map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(data, &file))
	for name, part := range map[string]string{"normalizer": v.normalizer, "pre_tokenizer": v.preTokenizer} {
		if part != "" {
			// What stays of a normalizer is put where the dots are.
			file[name] = json.RawMessage(strings.Replace(part, `"..."`, string(file[name]), 1))
		}
	}
	data, err = json.Marshal(file)
	require.NoError(t, err)
	return parse(t, data)
}

// variants have what models in use have, and those of testdata do not.
var variants = []variant{
	{
		"as XLM-RoBERTa", "unigram_precompiled",
		`{"type": "Sequence", "normalizers": ["...", {"type": "Strip", "strip_left": false, "strip_right": true}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"}]}`,
		`{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"}`,
	},
	{
		"as ALBERT", "unigram_precompiled",
		`{"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": {"String": "''"}, "content": "\""}, {"type": "Replace", "pattern": {"String": "a"}, "content": "bcd"},
			{"type": "Lowercase"}, {"type": "NFKC"}, "...", {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]}`,
		`{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"}`,
	},
	{"with a space before", "bpe_roberta", `{"type": "Lowercase"}`, `{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}`},
	{"keeps what there is", "bert_uncased", `{"type": "BertNormalizer", "clean_text": false, "handle_chinese_chars": false, "strip_accents": true, "lowercase": false}`, ""},
}

// Where something looks at more than what is around a space nothing is cut.
func TestWhatIsNotCut(t *testing.T) {
	for name, v := range map[string]variant{
		"a start":        {"", "unigram_nfkc", `{"type": "Prepend", "prepend": "a"}`, ""},
		"spaces":         {"", "unigram_nfkc", `{"type": "Strip", "strip_left": true, "strip_right": false}`, ""},
		"spaces within":  {"", "unigram_nfkc", `{"type": "Replace", "pattern": {"String": "a b"}, "content": "c"}`, ""},
		"spaces instead": {"", "unigram_nfkc", `{"type": "Replace", "pattern": {"String": "ab"}, "content": "c "}`, ""},
		"nothing":        {"", "unigram_nfkc", `{"type": "Replace", "pattern": {"String": "ab"}, "content": ""}`, ""},
		"no words":       {"", "unigram_nfkc", "", `{"type": "Metaspace", "replacement": "▁", "split": false}`},
		"no pattern":     {"", "bpe_roberta", "", `{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}`},
	} {
		require.False(t, v.load(t).cuts.texts, name)
	}
}

// check compares what the two make of a text.
func (w whole) check(t failer, text string, o Options) {
	t.Helper()
	var want, got Encoding
	errWant, errGot := w.oracle.Encode(&want, text, o), w.cut.Encode(&got, text, o)
	if !errors.Is(errGot, errors.Unwrap(errWant)) {
		t.Fatalf("%s, %+q, %+v: %v, want %v", w.name, text, o, errGot, errWant)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s, %+q, %+v (-whole +cut):\n%s", w.name, text, o, diff)
	}
}

func FuzzCuts(f *testing.F) {
	for i, text := range seedTexts {
		f.Add(text+" "+strings.Join(seedTexts, " x "), uint8(i), uint8(i))
	}
	all := wholes(f)
	f.Fuzz(func(t *testing.T, text string, maxLength, flags uint8) {
		if len(text) > 1<<12 {
			return
		}
		for _, w := range all {
			w.check(t, text, options(maxLength, flags))
		}
	})
}

// Texts that are cut have the tokens that they have as a whole: characters that
// join, expand, vanish, lag or mark, between what they may be cut at.
func TestCutsChangeNothing(t *testing.T) {
	all := wholes(t)
	parts := rapid.OneOf(
		rapid.SampledFrom([]string{" ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u2581", "a ", " a", ". ", " \"", "' ", " 's"}),
		rapid.SampledFrom([]string{"a", "word", "Éa", "e\u0301", "1", "''", "``", "<s>", "</s>", "<mask>", "[MASK]", "[SEP]", "|||IP_ADDRESS|||"}),
		rapid.SampledFrom([]string{"\ufdfa", "\ufb01", "\uff21", "\u00bd", "\u0344", "\u1e9b\u0323", "\u00a8", "\u037a", "\u2002", "한", "\u1112\u1161", "漢", "豈", "가"}),
		rapid.SampledFrom([]string{"\u0301", "\u0323", "\u200d", "\u200b", "\ufeff", "\x01", "\x7f", "\u00ad", "\u0600", "\u0903", "🙂", "👩\u200d👩\u200d👦", "🏳\ufe0f\u200d🌈", "\u20e3", "\xff", "\ufffd"}),
		rapid.Map(rapid.Rune(), func(r rune) string { return string(r) }),
	)
	texts := rapid.Map(rapid.SliceOfN(parts, 0, 40), func(all []string) string { return strings.Join(all, "") })
	rapid.Check(t, func(t *rapid.T) {
		text, o := texts.Draw(t, "text"), options(rapid.Byte().Draw(t, "most")%40, rapid.Byte().Draw(t, "flags"))
		for _, w := range all {
			w.check(t, text, o)
		}
	})
}

// Texts that people write are cut into pieces, by every model that can.
func TestTextsAreCut(t *testing.T) {
	for text, cutBy := range map[string][]string{
		"What is here, is a text. ": models,
		"“Gedichte” — für, été ":    models,
		"漢字かな":                      wordPieces,
		"漢字。\nかな！\n":                {"bert_uncased", "wordpiece_cased", "unigram_precompiled"},
	} {
		text := strings.Repeat(text, 1000)
		for _, name := range cutBy {
			tok := load(t, name)
			for at := (Span{0, len(text)}); at.Start < at.End; {
				part := tok.cuts.text(text, at)
				require.Less(t, part.End-part.Start, pieceBytes+40, name)
				at.Start = part.End
			}
		}
	}
}
