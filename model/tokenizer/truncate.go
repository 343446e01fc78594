package tokenizer

import (
	"errors"
	"fmt"
)

// Strategy says which text of a pair is cut.
type Strategy uint8

const (
	LongestFirst Strategy = iota // the longer one, then both
	OnlyFirst
	OnlySecond
)

// ErrCannotTruncate says that the texts cannot be cut to the maximum length in
// the way asked for.
var ErrCannotTruncate = errors.New("the text cannot be cut to the maximum length")

// keep returns how many of the first and second tokens stay when at most limit
// may. The formulas are those of Hugging Face tokenizers' truncate_encodings.
func keep(first, second, limit int, strategy Strategy) (int, int, error) {
	excess := first + second - limit
	switch {
	case excess <= 0:
		return first, second, nil
	case limit == 0:
		return 0, 0, nil
	case strategy == OnlyFirst && first > excess:
		return first - excess, second, nil
	case strategy == OnlySecond && second > excess:
		return first, second - excess, nil
	case strategy != LongestFirst:
		return 0, 0, fmt.Errorf("%w: the other text alone leaves no room, or there is none; cut the longest first", ErrCannotTruncate)
	}
	first, second = longestFirst(first, second, limit)
	return first, second, nil
}

// longestFirst shares limit out: the shorter text stays whole if it fits into
// half. The odd token goes to the longer text, or to the second.
func longestFirst(first, second, limit int) (int, int) {
	if first > second {
		second, first = longestFirst(second, first, limit)
		return first, second
	}
	if first > limit/2 {
		first = limit / 2
	}
	return first, limit - first
}
