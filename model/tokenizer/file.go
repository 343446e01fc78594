package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// maxFile bounds a tokenizer.json, in bytes; the largest in use have about half.
const maxFile = 64 << 20

// ErrUnsupported says that a tokenizer.json asks for what this package does
// not have. It is never ignored, because the ids would be wrong.
var ErrUnsupported = errors.New("unsupported in tokenizer.json")

// Load reads a tokenizer.json.
func Load(path string) (*Tokenizer, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("loading the tokenizer: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("loading the tokenizer %s: %w", path, err)
	}
	t, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("loading the tokenizer %s: %w", path, err)
	}
	return t, nil
}

// Parse reads the contents of a tokenizer.json.
func Parse(data []byte) (*Tokenizer, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("the file has more than %d bytes", maxFile)
	}
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("parsing tokenizer.json: %w", err)
	}
	return f.build()
}

// file is a tokenizer.json. Its truncation and padding are of no use here.
type file struct {
	AddedTokens   []addedToken `json:"added_tokens"`
	Normalizer    component    `json:"normalizer"`
	PreTokenizer  component    `json:"pre_tokenizer"`
	PostProcessor component    `json:"post_processor"`
	Decoder       component    `json:"decoder"`
	Model         component    `json:"model"`
}

// component is a JSON object with a type; the type decides the rest.
type component struct {
	kind string
	raw  json.RawMessage
}

func (c *component) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var head struct {
		Type   string  `json:"type"`
		Prefix *string `json:"continuing_subword_prefix"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	if head.Type == "" && head.Prefix != nil {
		head.Type = "WordPiece" // the oldest files leave it out
	}
	c.kind, c.raw = head.Type, slices.Clone(data)
	return nil
}

// refuse is the error for a component of an unknown kind.
func (c component) refuse(role, supported string) error {
	if c.kind == "" {
		return fmt.Errorf("%w: %s missing or without a type (supported: %s)", ErrUnsupported, role, supported)
	}
	return fmt.Errorf("%w: %s %q (supported: %s)", ErrUnsupported, role, c.kind, supported)
}

// decode reads a component's fields.
func (c component) decode(into any) error {
	if err := json.Unmarshal(c.raw, into); err != nil {
		return fmt.Errorf("%s: %w", c.kind, err)
	}
	return nil
}

// sequence returns the components of a Sequence, which are in field, or c itself.
func (c component) sequence(field string) ([]component, error) {
	if c.kind != "Sequence" {
		return []component{c}, nil
	}
	var fields map[string]json.RawMessage
	if err := c.decode(&fields); err != nil {
		return nil, err
	}
	var parts, all []component
	if err := json.Unmarshal(fields[field], &parts); err != nil {
		return nil, fmt.Errorf("sequence: %s: %w", field, err)
	}
	for _, p := range parts {
		inner, err := p.sequence(field)
		if err != nil {
			return nil, err
		}
		all = append(all, inner...)
	}
	return all, nil
}

func (f *file) build() (*Tokenizer, error) {
	t := &Tokenizer{}
	vocab, err := f.buildModel(t)
	if err != nil {
		return nil, err
	}
	if t.normalizers, err = f.buildNormalizers(); err != nil {
		return nil, err
	}
	if err = f.buildPreTokenizers(t); err != nil {
		return nil, err
	}
	if err := f.buildAddedTokens(t, vocab); err != nil {
		return nil, err
	}
	if err := f.buildTemplate(t, vocab); err != nil {
		return nil, err
	}
	// A model whose texts cannot be decoded is still good for encoding.
	t.decoder, t.noDecoder = f.buildDecoder()
	vocab.ids = nil
	t.vocabulary = vocab
	t.cuts = t.newCuts()
	return t, nil
}

func (f *file) buildModel(t *Tokenizer) (vocab *vocabulary, err error) {
	switch f.Model.kind {
	case "WordPiece":
		t.model, vocab, err = readWordPiece(f.Model)
	case "BPE":
		t.model, vocab, err = readBPE(f.Model)
	case "Unigram":
		t.model, vocab, err = readUnigram(f.Model)
	default:
		err = f.Model.refuse("model", "WordPiece, BPE, Unigram")
	}
	return vocab, err
}

// buildNormalizers makes sure that the first normaliser leaves only UTF-8.
func (f *file) buildNormalizers() ([]normalizer, error) {
	if f.Normalizer.kind == "BertNormalizer" {
		n, err := readBertNormalizer(f.Normalizer)
		return []normalizer{n}, err
	}
	all := []normalizer{wellFormed{}}
	if f.Normalizer.raw == nil { // there is none
		return all, nil
	}
	parts, err := f.Normalizer.sequence("normalizers")
	if err != nil {
		return nil, err
	}
	for _, c := range parts {
		n, err := readNormalizer(c)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

func readNormalizer(c component) (normalizer, error) {
	switch c.kind {
	case "BertNormalizer":
		return readBertNormalizer(c)
	case "NFC":
		return composer{properties(), 0}, nil
	case "NFKC":
		return composer{properties(), compatible}, nil
	case "Lowercase":
		return lowercase{properties()}, nil
	case "Strip":
		var s strip
		return s, c.decode(&s)
	case "Prepend":
		return readPrepend(c)
	case "Replace":
		return readReplace(c)
	case "Precompiled":
		return readPrecompiled(c)
	}
	return nil, c.refuse("normalizer", "BertNormalizer, NFC, NFKC, Lowercase, Strip, Prepend, Replace, Precompiled, Sequence")
}

// buildPreTokenizers refuses a byte-level model without, or another with, a
// byte-level pre-tokenizer: it would be given the wrong alphabet.
func (f *file) buildPreTokenizers(t *Tokenizer) error {
	parts, err := f.PreTokenizer.sequence("pretokenizers")
	if err != nil {
		return err
	}
	var all []preTokenizer
	byteLevel := false
	for _, c := range parts {
		steps, err := readPreTokenizer(c)
		if err != nil {
			return err
		}
		all = append(all, steps...)
		byteLevel = c.kind == "ByteLevel"
	}
	if byteLevel != (f.Model.kind == "BPE") {
		return fmt.Errorf("%w: %s with the pre_tokenizer %q; BPE, and only BPE, must have ByteLevel last", ErrUnsupported, f.Model.kind, f.PreTokenizer.kind)
	}
	t.preTokenizers, t.splitters = lastSplitters(all)
	return nil
}

func readPreTokenizer(c component) ([]preTokenizer, error) {
	switch c.kind {
	case "BertPreTokenizer":
		return []preTokenizer{splitting{bertPreTokenizer{properties()}}}, nil
	case "WhitespaceSplit":
		return []preTokenizer{splitting{whitespaceSplit{properties()}}}, nil
	case "Metaspace":
		m, err := readMetaspace(c)
		if err != nil {
			return nil, err
		}
		return m.preTokenizers(), nil
	case "ByteLevel":
		var b byteLevelFile
		if err := c.decode(&b); err != nil {
			return nil, err
		}
		return b.preTokenizers(), nil
	case "Split":
		return readSplit(c)
	}
	return nil, c.refuse("pre_tokenizer", "BertPreTokenizer, WhitespaceSplit, Metaspace, ByteLevel, Split, Sequence")
}

// buildTemplate reads the post-processor: offsets to trim, or a template, or
// first the one, then the other.
func (f *file) buildTemplate(t *Tokenizer, v *vocabulary) error {
	parts, err := f.PostProcessor.sequence("processors")
	if err != nil {
		return err
	}
	t.template = bareTemplate
	for i, c := range parts {
		if i > 0 && parts[i-1].kind != "ByteLevel" {
			return fmt.Errorf("%w: post_processor %q after %q", ErrUnsupported, c.kind, parts[i-1].kind)
		}
		if err := readPostProcessor(t, c, v); err != nil {
			return err
		}
	}
	return nil
}

func readPostProcessor(t *Tokenizer, c component, v *vocabulary) (err error) {
	switch c.kind {
	case "TemplateProcessing":
		t.template, err = readTemplate(c, v)
		return err
	case "BertProcessing", "RobertaProcessing":
		f, err := readClsSep(c, v)
		if err != nil {
			return err
		}
		if t.template = f.bert(); c.kind == "RobertaProcessing" {
			t.template, t.trimming = f.roberta(), trimming{f.Trim, f.AddPrefix}
		}
		return nil
	case "ByteLevel":
		var b byteLevelFile
		err := c.decode(&b)
		t.trimming = trimming{b.Trim, b.AddPrefix}
		return err
	}
	return c.refuse("post_processor", "TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel, Sequence")
}

// buildAddedTokens sorts the added tokens into those of the text and those of
// the normalised text.
func (f *file) buildAddedTokens(t *Tokenizer, v *vocabulary) error {
	var plain, normal []addedToken
	t.normalTokens = map[int32]string{}
	for _, a := range f.AddedTokens {
		if a.SingleWord {
			return fmt.Errorf("%w: added token %q with single_word", ErrUnsupported, a.Content)
		}
		if err := v.add(a.Content, a.ID); err != nil {
			return fmt.Errorf("added_tokens: %w", err)
		}
		v.kinds[a.ID] |= addedKind
		if a.Special {
			v.kinds[a.ID] |= specialKind
		}
		if !a.Normalized {
			plain = append(plain, a)
			continue
		}
		if a.Content = normalize(t.normalizers, a.Content); a.Content != "" {
			normal = append(normal, a)
		}
		t.normalTokens[a.ID] = a.Content
	}
	t.added, t.addedNormalized = newAddedTokens(plain), newAddedTokens(normal)
	return nil
}
