package tokenizer

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var models = []string{
	"bert_uncased", "wordpiece_cased", "bpe_roberta", "bpe_modernbert", "bpe_split", "unigram_precompiled", "unigram_nfkc",
}

// wordPieces are the models that the oracle knows.
var wordPieces = models[:2]

// golden is a line of any of the golden files.
type golden struct {
	I            int
	Text         string
	IDs          []int32
	IDsNoSpecial []int32  `json:"ids_no_special"`
	TypeIDs      string   `json:"type_ids"`
	Offsets      [][2]int `json:"offsets_byte"`
	SpecialMask  string   `json:"special_mask"`
	WordIDs      []*int32 `json:"word_ids"`

	Pair      int
	Strategy  string
	MaxLength int `json:"max_length"`
	Side      string
	Special   bool
	Error     string
}

func (g golden) options() Options {
	strategies := map[string]Strategy{"": LongestFirst, "longest_first": LongestFirst, "only_first": OnlyFirst, "only_second": OnlySecond}
	return Options{MaxLength: g.MaxLength, Strategy: strategies[g.Strategy], TruncateLeft: g.Side == "left", NoSpecialTokens: !g.Special, ParseSpecialTokens: true}
}

func (g golden) name() string {
	return fmt.Sprintf("%s, at most %d, side %s, special %t, pair %d, text %+q", g.Strategy, g.MaxLength, g.Side, g.Special, g.Pair, g.Text)
}

// encoding is what a golden says, with what it leaves out zero.
func (g golden) encoding() Encoding {
	e := Encoding{IDs: g.IDs, TypeIDs: digits(g.TypeIDs)}
	if g.TypeIDs == "" {
		e.TypeIDs = make([]int32, len(g.IDs))
	}
	for _, o := range g.Offsets {
		e.Offsets = append(e.Offsets, Span{o[0], o[1]})
	}
	for _, w := range g.WordIDs {
		if w == nil {
			e.Words = append(e.Words, NoWord)
		} else {
			e.Words = append(e.Words, *w)
		}
	}
	for _, c := range g.SpecialMask {
		e.Special = append(e.Special, c == '1')
	}
	return e
}

func digits(s string) []int32 {
	out := make([]int32, len(s))
	for i, c := range s {
		out[i] = c - '0'
	}
	return out
}

// checkLike compares got with those slices of want that are not nil.
func checkLike(t *testing.T, name string, got, want Encoding) {
	t.Helper()
	if want.Offsets == nil {
		got.Offsets = nil
	}
	if want.Words == nil {
		got.Words = nil
	}
	if want.Special == nil {
		got.Special = nil
	}
	got.Cut = want.Cut
	if slices.Equal(got.IDs, want.IDs) && len(got.IDs) == 0 {
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", name, diff)
	}
}

func load(t testing.TB, model string) *Tokenizer {
	t.Helper()
	tok, err := Load(filepath.Join("testdata", model, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// readLines reads a JSON lines file, gzipped or not.
func readLines[T any](t testing.TB, path ...string) []T {
	t.Helper()
	data := open(t, filepath.Join(append([]string{"testdata"}, path...)...))
	var out []T
	lines := bufio.NewScanner(data)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var row T
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatalf("%v: %v", path, err)
		}
		out = append(out, row)
	}
	if err := lines.Err(); err != nil || len(out) == 0 {
		t.Fatalf("%v: %d lines, %v", path, len(out), err)
	}
	return out
}

// open opens path, unzipped, or path.gz.
func open(t testing.TB, path string) io.Reader {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		path += ".gz"
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	if !strings.HasSuffix(path, ".gz") {
		return file
	}
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	return unzipped
}

func TestSingle(t *testing.T) {
	for _, model := range models {
		tok := load(t, model)
		var got Encoding
		for _, g := range readLines[golden](t, model, "ids.jsonl") {
			g.Special = true
			encode(t, tok, &got, g)
			checkLike(t, g.name(), got, g.encoding())

			g.Special = false
			encode(t, tok, &got, g)
			if g.IDsNoSpecial == nil {
				g.IDsNoSpecial = g.IDs[1 : len(g.IDs)-1]
			}
			if !slices.Equal(got.IDs, g.IDsNoSpecial) {
				t.Fatalf("%s:\nids  %v\nwant %v", g.name(), got.IDs, g.IDsNoSpecial)
			}
		}
	}
}

func encode(t *testing.T, tok *Tokenizer, dst *Encoding, g golden) {
	t.Helper()
	if err := tok.Encode(dst, g.Text, g.options()); err != nil {
		t.Fatalf("%s: %v", g.name(), err)
	}
}

func TestDetail(t *testing.T) {
	for _, model := range models {
		tok := load(t, model)
		var got Encoding
		for _, g := range readLines[golden](t, model, "detail.jsonl") {
			g.Special = true
			encode(t, tok, &got, g)
			checkLike(t, g.name(), got, g.encoding())
		}
	}
}

func TestSingleTruncation(t *testing.T) {
	tok := load(t, "bert_uncased")
	var got, whole Encoding
	for _, g := range readLines[golden](t, "bert_uncased", "single_truncation.jsonl") {
		encode(t, tok, &got, g)
		checkLike(t, g.name(), got, g.encoding())

		g.MaxLength = 0
		encode(t, tok, &whole, g)
		if got.Cut != whole.Len()-got.Len() || got.Truncated() != (got.Len() < whole.Len()) {
			t.Fatalf("%s: %d of %d tokens, Cut %d", g.name(), got.Len(), whole.Len(), got.Cut)
		}
	}
}

func TestPairs(t *testing.T) {
	type pair struct{ A, B string }
	for _, model := range models {
		tok := load(t, model)
		pairs := readLines[pair](t, model, "pairs.jsonl")
		var got Encoding
		for _, g := range readLines[golden](t, model, "pair_encodings.jsonl") {
			p := pairs[g.Pair]
			err := tok.EncodePair(&got, p.A, p.B, g.options())
			if (g.Error != "") != errors.Is(err, ErrCannotTruncate) {
				t.Fatalf("%s, %+q: error %v, want %q", g.name(), p, err, g.Error)
			}
			if g.Error == "" {
				checkLike(t, fmt.Sprintf("%s, %+q", g.name(), p), got, g.encoding())
			}
			checkPairOf(t, tok, p.A, p.B, g.options())
		}
	}
}

// checkPairOf checks that a first text that is tokenized once, for several
// pairs, makes the very same ones.
func checkPairOf(t failer, tok *Tokenizer, first, second string, o Options) {
	t.Helper()
	var text Text
	tok.Tokenize(&text, "another before", Options{})
	tok.Tokenize(&text, first, o)
	for _, second := range []string{"x", second} {
		var want, got Encoding
		wantErr, gotErr := tok.EncodePair(&want, first, second, o), tok.EncodePairOf(&got, &text, second, o)
		same := slices.Equal(want.IDs, got.IDs) && slices.Equal(want.TypeIDs, got.TypeIDs) && slices.Equal(want.Offsets, got.Offsets) &&
			slices.Equal(want.Words, got.Words) && slices.Equal(want.Special, got.Special) && want.Cut == got.Cut
		if !same || fmt.Sprint(wantErr) != fmt.Sprint(gotErr) {
			t.Fatalf("%+q, %+q: %v, %v; want %v, %v", first, second, got, gotErr, want, wantErr)
		}
	}
}

// TestOptions covers what the two published tokenizers do not use.
func TestOptions(t *testing.T) {
	type configuration struct {
		Normalizer  map[string]any
		AddedTokens []any `json:"added_tokens"`
		Rows        []struct {
			golden
			ParseSpecial bool     `json:"parse_special"`
			Offsets      [][2]int `json:"offsets"`
		}
	}
	for _, c := range readLines[configuration](t, "options.jsonl") {
		c.Normalizer["type"] = "BertNormalizer"
		tok := parse(t, change(t, "wordpiece_cased", map[string]any{"normalizer": c.Normalizer, "added_tokens": c.AddedTokens}))
		var got Encoding
		for _, g := range c.Rows {
			g.golden.Offsets = g.Offsets
			if err := tok.Encode(&got, g.Text, Options{ParseSpecialTokens: g.ParseSpecial}); err != nil {
				t.Fatal(err)
			}
			checkLike(t, fmt.Sprintf("%v, parse special %t, %+q", c.Normalizer, g.ParseSpecial, g.Text), got, g.encoding())
		}
	}
}

// TestComponents covers what the tokenizers in the other goldens do not use.
func TestComponents(t *testing.T) {
	type configuration struct {
		Base    string
		Changes map[string]any
		Rows    []struct {
			golden
			Offsets [][2]int `json:"offsets"`
		}
	}
	for _, c := range readLines[configuration](t, "components.jsonl") {
		tok := parse(t, change(t, c.Base, c.Changes))
		delete(c.Changes, "added_tokens")
		var got Encoding
		for _, g := range c.Rows {
			g.golden.Offsets = g.Offsets
			if err := tok.Encode(&got, g.Text, Options{ParseSpecialTokens: true}); err != nil {
				t.Fatal(err)
			}
			checkLike(t, fmt.Sprintf("%s, %v, %+q", c.Base, c.Changes, g.Text), got, g.encoding())
		}
	}
}

func TestDecode(t *testing.T) {
	type configuration struct {
		Base    string
		Changes map[string]any
		Rows    []struct {
			IDs           []int32
			Text, Skipped string
		}
	}
	for _, c := range readLines[configuration](t, "decode.jsonl") {
		tok := parse(t, change(t, c.Base, c.Changes))
		for _, row := range c.Rows {
			text, err1 := tok.Decode(row.IDs, false)
			skipped, err2 := tok.Decode(row.IDs, true)
			if text != row.Text || skipped != row.Skipped || err1 != nil || err2 != nil {
				t.Fatalf("%s, ids %v: %q, %v, without special tokens %q, %v;\nwant %q, %q", c.Base, row.IDs, text, err1, skipped, err2, row.Text, row.Skipped)
			}
		}
	}
}

// change returns a model's tokenizer.json with some of its fields, or, after
// "model.", of its model's fields, replaced. An empty precompiled_charsmap stands
// for that of unigram_precompiled.
func change(t testing.TB, model string, fields map[string]any) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", model, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]any
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	for name, value := range fields {
		if field, ok := strings.CutPrefix(name, "model."); ok {
			file["model"].(map[string]any)[field] = value
		} else {
			file[name] = value
		}
	}
	if data, err = json.Marshal(file); err != nil {
		t.Fatal(err)
	}
	return bytes.ReplaceAll(data, []byte(`"precompiled_charsmap":""`), charsMap(t))
}

// charsMap is the field of unigram_precompiled.
func charsMap(t testing.TB) []byte {
	data, err := os.ReadFile("testdata/unigram_precompiled/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	start := bytes.Index(data, []byte(`"precompiled_charsmap"`))
	return data[start : start+bytes.IndexByte(data[start:], '}')]
}

func parse(t testing.TB, data []byte) *Tokenizer {
	t.Helper()
	tok, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}
