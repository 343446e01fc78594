package tokenizer

import (
	"errors"
	"fmt"
	"unicode/utf8"
	"unsafe"
)

// wordPiece cuts a word greedily into the longest pieces that it knows. A word
// with a part that it does not know, or of too many characters, is unknown as
// a whole.
type wordPiece struct {
	pieces    *trie
	inside    int32 // the node of the prefix of pieces that do not start a word
	unknown   int32
	maxLength int // of a word, in characters
}

func readWordPiece(c component) (*wordPiece, *vocabulary, error) {
	var m struct {
		Unknown   *string          `json:"unk_token"`
		Prefix    *string          `json:"continuing_subword_prefix"`
		MaxLength *int             `json:"max_input_chars_per_word"`
		Vocab     map[string]int32 `json:"vocab"`
	}
	if err := c.decode(&m); err != nil {
		return nil, nil, err
	}
	if m.Unknown == nil || m.Prefix == nil || m.MaxLength == nil || *m.MaxLength < 1 {
		return nil, nil, errors.New("WordPiece needs unk_token, continuing_subword_prefix and max_input_chars_per_word")
	}
	vocab, err := newVocabulary(m.Vocab)
	if err != nil {
		return nil, nil, fmt.Errorf("WordPiece: %w", err)
	}
	unknown, err := vocab.id(*m.Unknown)
	if err != nil {
		return nil, nil, fmt.Errorf("WordPiece: unk_token: %w", err)
	}
	pieces := newTrie(m.Vocab)
	return &wordPiece{pieces, pieces.walk(*m.Prefix), unknown, *m.MaxLength}, vocab, nil
}

func (w *wordPiece) tokenize(_ *workspace, dst []piece, word string) []piece {
	unknown := piece{w.unknown, 0, int32(len(word))}
	if w.tooLong(word) {
		return append(dst, unknown)
	}
	kept, node := len(dst), int32(root)
	for start := 0; start < len(word); node = w.inside {
		id, n := w.longest(node, word[start:])
		if n == 0 {
			return append(dst[:kept], unknown)
		}
		dst = append(dst, piece{id, int32(start), int32(start + n)})
		start += n
	}
	return dst
}

func (w *wordPiece) longest(node int32, text string) (int32, int) {
	if node == noNode {
		return noValue, 0
	}
	return w.pieces.longest(node, text)
}

func (w *wordPiece) tooLong(word string) bool {
	return len(word) > w.maxLength && utf8.RuneCountInString(word) > w.maxLength
}

// memory is little: long words are unknown.
func (w *wordPiece) memory(length int) int {
	return min(length, w.maxLength*utf8.UTFMax) * int(unsafe.Sizeof(piece{}))
}
