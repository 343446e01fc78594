package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// template puts special tokens around the texts.
type template struct {
	single, pair []templatePiece
}

// bareTemplate adds no special tokens.
var bareTemplate = template{
	[]templatePiece{{source: firstText}},
	[]templatePiece{{source: firstText}, {source: secondText, typeID: 1}},
}

// templatePiece is the first text, the second, or special tokens.
type templatePiece struct {
	source  source
	special []int32
	typeID  int32
}

type source uint8

const (
	specialTokens source = iota
	firstText
	secondText
)

// added is the number of special tokens.
func added(pieces []templatePiece) int {
	n := 0
	for _, p := range pieces {
		n += len(p.special)
	}
	return n
}

// apply writes the texts' tokens into dst.
func apply(pieces []templatePiece, dst *Encoding, first, second sequence, special bool) {
	for _, p := range pieces {
		switch {
		case p.source == firstText:
			dst.addSequence(first, p.typeID)
		case p.source == secondText:
			dst.addSequence(second, p.typeID)
		case special:
			dst.addSpecial(p.special, p.typeID)
		}
	}
}

// readTemplate reads TemplateProcessing.
func readTemplate(c component, v *vocabulary) (template, error) {
	var f templateFile
	if err := c.decode(&f); err != nil {
		return template{}, err
	}
	single, err := f.pieces(f.Single, 1, v)
	if err != nil {
		return template{}, fmt.Errorf("TemplateProcessing: single: %w", err)
	}
	pair, err := f.pieces(f.Pair, 2, v)
	if err != nil {
		return template{}, fmt.Errorf("TemplateProcessing: pair: %w", err)
	}
	return template{single, pair}, nil
}

type templateFile struct {
	Single  []templatePart `json:"single"`
	Pair    []templatePart `json:"pair"`
	Special map[string]struct {
		IDs []int32 `json:"ids"`
	} `json:"special_tokens"`
}

// templatePart holds one of the two.
type templatePart struct {
	Sequence, SpecialToken *struct {
		ID     string `json:"id"`
		TypeID uint8  `json:"type_id"`
	}
}

// pieces checks that each of the texts is there, once.
func (f *templateFile) pieces(parts []templatePart, texts int, v *vocabulary) ([]templatePiece, error) {
	var pieces []templatePiece
	seen := map[string]bool{}
	for _, part := range parts {
		switch {
		case part.Sequence != nil && !seen[part.Sequence.ID]:
			seen[part.Sequence.ID] = true
			pieces = append(pieces, templatePiece{source: textSource(part.Sequence.ID), typeID: int32(part.Sequence.TypeID)})
		case part.SpecialToken != nil:
			ids := f.Special[part.SpecialToken.ID].IDs
			if err := v.known(ids); err != nil {
				return nil, fmt.Errorf("special token %q: %w", part.SpecialToken.ID, err)
			}
			pieces = append(pieces, templatePiece{special: ids, typeID: int32(part.SpecialToken.TypeID)})
		default:
			return nil, errors.New("a part is neither a special token nor a text that is not there yet")
		}
	}
	if len(seen) != texts || !seen["A"] || seen["B"] != (texts == 2) {
		return nil, errors.New("single needs the text A, pair needs A and B, and no other")
	}
	return pieces, nil
}

func textSource(id string) source {
	if id == "A" {
		return firstText
	}
	return secondText
}

// clsSep is a BertProcessing or RobertaProcessing.
type clsSep struct {
	Sep       specialToken `json:"sep"`
	Cls       specialToken `json:"cls"`
	Trim      bool         `json:"trim_offsets"`     // RobertaProcessing
	AddPrefix bool         `json:"add_prefix_space"` // RobertaProcessing
}

func readClsSep(c component, v *vocabulary) (*clsSep, error) {
	f := &clsSep{}
	if err := c.decode(f); err != nil {
		return nil, err
	}
	for _, s := range []specialToken{f.Cls, f.Sep} {
		if id, err := v.id(s.content); err != nil || id != s.id {
			return nil, fmt.Errorf("%s: token %q with id %d is not in the vocabulary", c.kind, s.content, s.id)
		}
	}
	return f, nil
}

// bert is [CLS] A [SEP], or [CLS] A [SEP] B [SEP] with type 1 for the last two.
func (f *clsSep) bert() template {
	cls, sep := []int32{f.Cls.id}, []int32{f.Sep.id}
	single := []templatePiece{{special: cls}, {source: firstText}, {special: sep}}
	pair := append(slices.Clone(single), templatePiece{source: secondText, typeID: 1}, templatePiece{special: sep, typeID: 1})
	return template{single, pair}
}

// roberta is <s> A </s>, or <s> A </s></s> B </s>, with type 0 for all.
func (f *clsSep) roberta() template {
	cls, sep := []int32{f.Cls.id}, []int32{f.Sep.id}
	single := []templatePiece{{special: cls}, {source: firstText}, {special: sep}}
	pair := append(slices.Clone(single), templatePiece{special: sep}, templatePiece{source: secondText}, templatePiece{special: sep})
	return template{single, pair}
}

// specialToken is written as ["[SEP]", 102].
type specialToken struct {
	content string
	id      int32
}

func (s *specialToken) UnmarshalJSON(data []byte) error {
	s.id = -1 // unless there is one
	return json.Unmarshal(data, &[]any{&s.content, &s.id})
}
