package tokenizer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tiny is a small tokenizer.json, of the oldest form (no type of the model).
const tiny = `{"added_tokens": [{"id": 1, "content": "[SEP]", "special": true}, {"id": 6, "content": "NEW", "normalized": true}],
"normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
"pre_tokenizer": {"type": "BertPreTokenizer"},
"post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 1], "cls": ["[CLS]", 0]},
"truncation": {"max_length": 3}, "padding": {"strategy": {"Fixed": 8}},
"model": {"unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 5,
"vocab": {"[CLS]": 0, "[SEP]": 1, "[UNK]": 2, "ab": 3, "##c": 4, "##": 5}}}`

func TestParseTiny(t *testing.T) {
	tok := parse(t, []byte(tiny))
	if tok.VocabSize() != 7 {
		t.Errorf("VocabSize %d, want 7", tok.VocabSize())
	}
	var e Encoding
	for text, want := range map[string]golden{
		"abc AB abccc abcccc": {IDs: []int32{0, 3, 4, 3, 3, 4, 4, 4, 2, 1}, TypeIDs: "0000000000"},
		"ab[SEP]new":          {IDs: []int32{0, 3, 2, 2, 2, 6, 1}, TypeIDs: "0000000"},
		"":                    {IDs: []int32{0, 1}, TypeIDs: "00"},
	} {
		if err := tok.Encode(&e, text, Options{}); err != nil {
			t.Fatal(err)
		}
		checkLike(t, text, e, want.encoding())
	}
	if err := tok.EncodePair(&e, "ab", "abc", Options{}); err != nil {
		t.Fatal(err)
	}
	checkLike(t, "pair", e, golden{IDs: []int32{0, 3, 1, 3, 4, 1}, TypeIDs: "000111"}.encoding())
}

func replace(old, new string) string {
	out := strings.Replace(tiny, old, new, 1)
	if out == tiny {
		panic("nothing to replace: " + old)
	}
	return out
}

var badFiles = []struct {
	json        string
	unsupported bool
	want        string
}{
	{"", false, "parsing tokenizer.json"},
	{tiny[:len(tiny)/2], false, "parsing tokenizer.json"},
	{"{}", true, "model missing"},
	{replace(`"BertNormalizer"`, `"Nmt"`), true, `normalizer "Nmt" (supported: BertNormalizer, NFC`},
	{replace(`{"type": "BertNormalizer"`, `{"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "NFD"}], "old": ""`), true, `normalizer "NFD"`},
	{replace(`{"type": "BertNormalizer"`, `{"type": "Sequence"`), false, "sequence: normalizers"},
	{replace(`{"type": "BertNormalizer"`, `{"type": "Prepend"`), false, "a Prepend normalizer needs prepend"},
	{replace(`{"type": "BertNormalizer"`, `{"type": "Replace", "pattern": {"Regex": "a+"}, "content": "b"`), true, `Replace of the pattern "a+"`},
	{replace(`{"type": "BertNormalizer"`, `{"type": "Precompiled"`), false, "needs precompiled_charsmap"},
	{replace(`{"type": "BertNormalizer"`, `{"type": "Precompiled", "precompiled_charsmap": "/////w=="`), false, "damaged"},
	{replace(`"BertPreTokenizer"`, `"Punctuation"`), true, `pre_tokenizer "Punctuation"`},
	{replace(`"BertPreTokenizer"`, `"ByteLevel"`), true, `WordPiece with the pre_tokenizer "ByteLevel"`},
	{replace(`"BertPreTokenizer"`, `"Metaspace", "replacement": ""`), false, "not one character"},
	{replace(`"BertPreTokenizer"`, `"Metaspace", "replacement": "_", "prepend_scheme": "last"`), true, `prepend_scheme "last"`},
	{replace(`"BertPreTokenizer"`, `"Split", "pattern": {"Regex": "a"}, "behavior": "Isolated"`), true, `Split of the pattern "a"`},
	{replace(`"BertPreTokenizer"`, `"Split", "pattern": {"Regex": "a"}, "behavior": "Removed"`), true, `Split with behavior "Removed"`},
	{replace(`"BertProcessing"`, `"DialogProcessing"`), true, `post_processor "DialogProcessing"`},
	{replace(`{"type": "BertProcessing"`, `{"type": "Sequence", "processors": [{"type": "BertProcessing", "sep": ["[SEP]", 1], "cls": ["[CLS]", 0]}, {"type": "ByteLevel"}], "old": ""`), true, `"ByteLevel" after "BertProcessing"`},
	{replace(`{"unk_token"`, `{"type": "WordLevel", "unk_token"`), true, `model "WordLevel"`},
	{replace(`{"unk_token"`, `{"type": "BPE", "unk_token"`), true, `BPE with continuing_subword_prefix`},
	{withModel(`{"type": "BPE", "dropout": 0.1}`), true, "BPE with dropout"},
	{withModel(`{"type": "BPE", "byte_fallback": true}`), true, "BPE with byte_fallback"},
	{withModel(`{"type": "BPE", "vocab": {"a": 0}}`), true, "not byte-level"},
	{withModel(`{"type": "BPE", "merges": ["a b c"]}`), false, "is not of two tokens"},
	{withModel(`{"type": "BPE", "merges": [["a"]]}`), false, "a merge of 1 tokens"},
	{withModel(`{"type": "Unigram", "byte_fallback": true}`), true, "Unigram with byte_fallback"},
	{withModel(`{"type": "Unigram", "vocab": [["a", 0]]}`), false, "needs unk_id"},
	{withModel(`{"type": "Unigram", "unk_id": 1, "vocab": [["a", 0]]}`), false, "needs unk_id"},
	{withModel(`{"type": "Unigram", "unk_id": 0, "vocab": [["a", 0], ["a", -1]]}`), true, `"a" twice`},
	{withModel(`{"type": "Unigram", "unk_id": 0, "vocab": [["a", 1e999]]}`), false, `score of "a"`},
	{replace(`"ab": 3`, `"ab": 2097152`), false, "above"},
	{replace(`{"type": "BertPreTokenizer"}`, `null`), true, "pre_tokenizer missing"},
	{replace(`"special": true`, `"single_word": true`), true, `added token "[SEP]" with single_word`},
	{replace(`"clean_text": true,`, ``), false, "needs clean_text"},
	{replace(`"max_input_chars_per_word": 5`, `"max_input_chars_per_word": 0`), false, "needs unk_token"},
	{replace(`"unk_token": "[UNK]"`, `"unk_token": "<unk>"`), false, `unk_token: token "<unk>" is not in the vocabulary`},
	{replace(`"ab": 3`, `"ab": 4`), false, "id 4 is that of"},
	{replace(`"ab": 3`, `"ab": -3`), false, "negative id -3"},
	{replace(`"ab": 3`, `"ab": 3000000000`), false, "3000000000"},
	{replace(`"ab": 3`, `"": 3`), false, "token 3 is empty"},
	{replace(`"ab": 3`, `"`+strings.Repeat("a", 2000)+`": 3`), false, "longer than 1024 bytes"},
	{replace(`{"id": 1, "content": "[SEP]"`, `{"id": 9, "content": "[SEP]"`), false, `"[SEP]" has the ids 1 and 9`},
	{replace(`["[CLS]", 0]`, `["[CLS]", 1]`), false, `"[CLS]" with id 1`},
	{replace(`["[CLS]", 0]`, `["[CLS]"]`), false, `"[CLS]" with id -1`},
	{withTemplate(`[{"Sequence": {"id": "B", "type_id": 0}}]`), false, "single needs the text A"},
	{withTemplate(`[{"Sequence": {"id": "A"}}, {"Sequence": {"id": "A"}}]`), false, "single: a part"},
	{withTemplate(`[{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "[SEP]"}}]`), false, `special token "[SEP]": no ids`},
	{withTemplate(`[{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "x"}}]`), false, "id 77 is not in the vocabulary"},
	{withTemplate(`[{}]`), false, "a part is neither"},
}

// withModel is tiny with another model.
func withModel(model string) string {
	return replace(`"model": {"unk_token"`, `"model": `+model+`, "old": {"unk_token"`)
}

func withTemplate(single string) string {
	return replace(`{"type": "BertProcessing"`, `{"type": "TemplateProcessing", "special_tokens": {"x": {"ids": [77]}}, "single": `+single+`, "old": ""`)
}

func TestParseBad(t *testing.T) {
	for _, c := range badFiles {
		_, err := Parse([]byte(c.json))
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, ErrUnsupported) != c.unsupported {
			t.Errorf("error %v, want one with %q, unsupported %t, of\n%s", err, c.want, c.unsupported, c.json)
		}
	}
}

func TestLoadBad(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
	huge := filepath.Join(t.TempDir(), "huge")
	if err := os.WriteFile(huge, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, maxFile+1); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(huge); err == nil || !strings.Contains(err.Error(), "more than 67108864 bytes") {
		t.Errorf("huge file: %v", err)
	}
}
