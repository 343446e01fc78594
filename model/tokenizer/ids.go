package tokenizer

import (
	"errors"
	"fmt"
	"slices"
)

// ErrUnknownID says that an id is that of no token.
var ErrUnknownID = errors.New("unknown token id")

// EncodeIDs makes of a text's token ids what Encode makes of the text, offsets
// and words aside. Ids that have the special tokens around them already get no
// others. The error is ErrUnknownID or ErrCannotTruncate.
func (t *Tokenizer) EncodeIDs(dst *Encoding, ids []int32, o Options) error {
	for _, id := range ids {
		if t.vocabulary.token(id) == "" {
			return fmt.Errorf("%w %d", ErrUnknownID, id)
		}
	}
	if !o.NoSpecialTokens {
		ids = bare(ids, t.template.single)
	}
	kept, _, err := o.keep(len(ids), 0, t.template.single)
	if err != nil {
		return err
	}
	dst.reset()
	whole := sequence{ids: ids, offsets: make([]Span, len(ids)), words: make([]int32, len(ids))}
	apply(t.template.single, dst, whole.window(kept, o.TruncateLeft), sequence{}, !o.NoSpecialTokens)
	dst.Cut = len(ids) - kept
	return nil
}

// bare takes the template's special tokens off the ends of ids, if all are there.
func bare(ids []int32, pieces []templatePiece) []int32 {
	at := slices.IndexFunc(pieces, func(p templatePiece) bool { return p.source == firstText })
	before, after := added(pieces[:at]), added(pieces[at:])
	if len(ids) < before+after || !hasSpecial(ids[:before], pieces[:at]) || !hasSpecial(ids[len(ids)-after:], pieces[at:]) {
		return ids
	}
	return ids[before : len(ids)-after]
}

// hasSpecial reports whether ids are the special tokens of pieces.
func hasSpecial(ids []int32, pieces []templatePiece) bool {
	for _, p := range pieces {
		if !slices.Equal(ids[:len(p.special)], p.special) {
			return false
		}
		ids = ids[len(p.special):]
	}
	return true
}
