package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
)

// Inputs is texts, or in their place the token ids of each. On the wire one of
// either may stand alone, without a list around it.
type Inputs struct {
	Texts []string
	IDs   [][]int32
}

// Len is how many there are.
func (in Inputs) Len() int { return len(in.Texts) + len(in.IDs) }

// MarshalJSON writes a list.
func (in Inputs) MarshalJSON() ([]byte, error) {
	if in.IDs != nil {
		return json.Marshal(in.IDs)
	}
	return json.Marshal(in.Texts)
}

// UnmarshalJSON reads a string, a list of strings, a list of numbers or a list
// of such lists.
func (in *Inputs) UnmarshalJSON(data []byte) (err error) {
	*in = Inputs{}
	if in.Texts, err = texts(data); err == nil {
		return nil
	}
	if in.IDs, err = tokenIDs(data); err == nil {
		return nil
	}
	return errors.New("expected a string, a list of strings, a list of token ids, or a list of such lists")
}

// TokenIDs is the token ids of texts; those of one may stand alone.
type TokenIDs [][]int32

// UnmarshalJSON reads a list of numbers or a list of such lists.
func (t *TokenIDs) UnmarshalJSON(data []byte) (err error) {
	if *t, err = tokenIDs(data); err != nil {
		return errors.New("expected a list of token ids, or a list of such lists")
	}
	return nil
}

var errNull = errors.New("null")

// texts reads a string or a list of strings.
func texts(data []byte) ([]string, error) {
	var one *string
	if json.Unmarshal(data, &one) == nil && one != nil {
		return []string{*one}, nil
	}
	return list[string](data)
}

// tokenIDs reads a list of numbers, which stands for one, or of such lists.
func tokenIDs(data []byte) ([][]int32, error) {
	if one, err := numbers(data); err == nil {
		return [][]int32{one}, nil
	}
	several, err := list[json.RawMessage](data)
	if err != nil {
		return nil, err
	}
	all := make([][]int32, len(several))
	for i, one := range several {
		if all[i], err = numbers(one); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// numbers reads a list of them, and makes nothing beside it.
func numbers(data []byte) (all []int32, err error) {
	if bytes.Contains(data, []byte("null")) { // encoding/json takes it for 0
		return nil, errNull
	}
	err = json.Unmarshal(data, &all)
	return all, err
}

// list reads a list without nulls.
func list[T any](data []byte) ([]T, error) {
	var pointers []*T
	if err := json.Unmarshal(data, &pointers); err != nil {
		return nil, err
	}
	if pointers == nil || slices.Contains(pointers, nil) {
		return nil, errNull
	}
	all := make([]T, len(pointers))
	for i, p := range pointers {
		all[i] = *p
	}
	return all, nil
}
