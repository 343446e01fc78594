package tokenizer

import (
	"errors"
	"fmt"
)

// maxToken bounds a token, in bytes.
const maxToken = 1024

// vocabulary pairs tokens and ids, one to one.
type vocabulary struct {
	ids    map[string]int32
	tokens map[int32]string
	size   int // the highest id plus one
}

func newVocabulary(ids map[string]int32) (*vocabulary, error) {
	v := &vocabulary{ids: make(map[string]int32, len(ids)), tokens: make(map[int32]string, len(ids))}
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
	if old, ok := v.ids[token]; ok && old != id {
		return fmt.Errorf("token %q has the ids %d and %d", token, old, id)
	}
	if old, ok := v.tokens[id]; ok && old != token {
		return fmt.Errorf("id %d is that of %q and %q", id, old, token)
	}
	v.ids[token], v.tokens[id] = id, token
	v.size = max(v.size, int(id)+1)
	return nil
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
		if _, ok := v.tokens[id]; !ok {
			return fmt.Errorf("id %d is not in the vocabulary", id)
		}
	}
	return nil
}
