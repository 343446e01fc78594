package tokenizer

import (
	"errors"
	"fmt"
)

// maxToken bounds a token, in bytes.
const maxToken = 1024

// maxVocabulary bounds the ids; the largest in use have about an eighth.
const maxVocabulary = 1 << 21

// vocabulary pairs tokens and ids, one to one.
type vocabulary struct {
	ids    map[string]int32
	tokens []string // by id; "" is none
	kinds  []kind   // by id
}

// kind is a set of what sets a token apart.
type kind uint8

const (
	addedKind   kind = 1 << iota // not the model's
	specialKind                  // not a part of any text
)

func newVocabulary(ids map[string]int32) (*vocabulary, error) {
	v := &vocabulary{ids: make(map[string]int32, len(ids))}
	for token, id := range ids {
		if err := v.add(token, id); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// add refuses what would make the pairing ambiguous.
func (v *vocabulary) add(token string, id int32) error {
	if token == "" || len(token) > maxToken {
		return fmt.Errorf("token %d is empty or longer than %d bytes", id, maxToken)
	}
	if id < 0 {
		return fmt.Errorf("token %q has the negative id %d", token, id)
	}
	if id >= maxVocabulary {
		return fmt.Errorf("token %q has the id %d, above %d", token, id, maxVocabulary)
	}
	if old, ok := v.ids[token]; ok && old != id {
		return fmt.Errorf("token %q has the ids %d and %d", token, old, id)
	}
	if old := v.token(id); old != "" && old != token {
		return fmt.Errorf("id %d is that of %q and %q", id, old, token)
	}
	if missing := int(id) + 1 - len(v.tokens); missing > 0 {
		v.tokens = append(v.tokens, make([]string, missing)...)
		v.kinds = append(v.kinds, make([]kind, missing)...)
	}
	v.ids[token], v.tokens[id] = id, token
	return nil
}

// token is "" for an id that no token has.
func (v *vocabulary) token(id int32) string {
	if id < 0 || int(id) >= len(v.tokens) {
		return ""
	}
	return v.tokens[id]
}

func (v *vocabulary) id(token string) (int32, error) {
	id, ok := v.ids[token]
	if !ok {
		return 0, fmt.Errorf("token %q is not in the vocabulary", token)
	}
	return id, nil
}

// known checks that there are ids, and that all of them are those of tokens.
func (v *vocabulary) known(ids []int32) error {
	if len(ids) == 0 {
		return errors.New("no ids")
	}
	for _, id := range ids {
		if v.token(id) == "" {
			return fmt.Errorf("id %d is not in the vocabulary", id)
		}
	}
	return nil
}
