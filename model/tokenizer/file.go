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

// file is a tokenizer.json. Its truncation, padding and decoder are of no use
// here.
type file struct {
	AddedTokens   []addedToken `json:"added_tokens"`
	Normalizer    component    `json:"normalizer"`
	PreTokenizer  component    `json:"pre_tokenizer"`
	PostProcessor component    `json:"post_processor"`
	Model         component    `json:"model"`
}

// component is a JSON object with a type; the type decides the rest.
type component struct {
	kind string
	raw  json.RawMessage
}

func (c *component) UnmarshalJSON(data []byte) error {
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

func (f *file) build() (*Tokenizer, error) {
	t := &Tokenizer{}
	vocab, err := f.buildModel(t)
	if err != nil {
		return nil, err
	}
	if t.normalizer, err = f.buildNormalizer(); err != nil {
		return nil, err
	}
	if t.preTokenizer, err = f.buildPreTokenizer(); err != nil {
		return nil, err
	}
	if err := f.buildAddedTokens(t, vocab); err != nil {
		return nil, err
	}
	if t.template, err = f.buildTemplate(vocab); err != nil {
		return nil, err
	}
	t.vocabSize = vocab.size
	return t, nil
}

func (f *file) buildModel(t *Tokenizer) (*vocabulary, error) {
	if f.Model.kind != "WordPiece" {
		return nil, f.Model.refuse("model", "WordPiece")
	}
	model, vocab, err := readWordPiece(f.Model)
	t.model = model
	return vocab, err
}

func (f *file) buildNormalizer() (normalizer, error) {
	if f.Normalizer.kind != "BertNormalizer" {
		return nil, f.Normalizer.refuse("normalizer", "BertNormalizer")
	}
	return readBertNormalizer(f.Normalizer)
}

func (f *file) buildPreTokenizer() (preTokenizer, error) {
	if f.PreTokenizer.kind != "BertPreTokenizer" {
		return nil, f.PreTokenizer.refuse("pre_tokenizer", "BertPreTokenizer")
	}
	return bertPreTokenizer{properties()}, nil
}

func (f *file) buildTemplate(v *vocabulary) (template, error) {
	switch f.PostProcessor.kind {
	case "TemplateProcessing":
		return readTemplate(f.PostProcessor, v)
	case "BertProcessing":
		return readBertProcessing(f.PostProcessor, v)
	}
	return template{}, f.PostProcessor.refuse("post_processor", "TemplateProcessing, BertProcessing")
}

// buildAddedTokens sorts the added tokens into those of the text and those of
// the normalised text.
func (f *file) buildAddedTokens(t *Tokenizer, v *vocabulary) error {
	var plain, normal []addedToken
	for _, a := range f.AddedTokens {
		if a.SingleWord {
			return fmt.Errorf("%w: added token %q with single_word", ErrUnsupported, a.Content)
		}
		if err := v.add(a.Content, a.ID); err != nil {
			return fmt.Errorf("added_tokens: %w", err)
		}
		if !a.Normalized {
			plain = append(plain, a)
		} else if a.Content = normalize(t.normalizer, a.Content); a.Content != "" {
			normal = append(normal, a)
		}
	}
	t.added, t.addedNormalized = newAddedTokens(plain), newAddedTokens(normal)
	return nil
}
