package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"
)

// bpe is byte-level byte pair encoding: of a word's bytes, and then of what
// they were merged to, it merges the pair that comes first in the list of
// merges, leftmost first, until there is none.
type bpe struct {
	bytes  [256]int32
	merges mergeTable
	whole  *trie // the words that are one token
}

type bpeFile struct {
	Dropout      float64          `json:"dropout"`
	Prefix       string           `json:"continuing_subword_prefix"`
	Suffix       string           `json:"end_of_word_suffix"`
	ByteFallback bool             `json:"byte_fallback"`
	IgnoreMerges bool             `json:"ignore_merges"` // for words that are in the vocabulary
	Vocab        map[string]int32 `json:"vocab"`
	Merges       []mergePair      `json:"merges"`
}

// mergePair is written as ["a", "b"] or, in older files, as "a b".
type mergePair [2]string

func (m *mergePair) UnmarshalJSON(data []byte) error {
	if data[0] == '[' {
		var pair []string
		if err := json.Unmarshal(data, &pair); err != nil {
			return err
		}
		if len(pair) != 2 {
			return fmt.Errorf("a merge of %d tokens", len(pair))
		}
		*m = mergePair(pair)
		return nil
	}
	var line string
	if err := json.Unmarshal(data, &line); err != nil {
		return err
	}
	first, second, ok := strings.Cut(line, " ")
	if !ok || strings.Contains(second, " ") {
		return fmt.Errorf("the merge %q is not of two tokens", line)
	}
	*m = mergePair{first, second}
	return nil
}

func readBPE(c component) (*bpe, *vocabulary, error) {
	var f bpeFile
	if err := c.decode(&f); err != nil {
		return nil, nil, err
	}
	switch {
	case f.Dropout != 0:
		return nil, nil, fmt.Errorf("%w: BPE with dropout", ErrUnsupported)
	case f.Prefix != "" || f.Suffix != "":
		return nil, nil, fmt.Errorf("%w: BPE with continuing_subword_prefix or end_of_word_suffix", ErrUnsupported)
	case f.ByteFallback:
		return nil, nil, fmt.Errorf("%w: BPE with byte_fallback", ErrUnsupported)
	}
	vocab, err := newVocabulary(f.Vocab)
	if err != nil {
		return nil, nil, fmt.Errorf("BPE: %w", err)
	}
	b := &bpe{}
	if err := b.build(&f, vocab); err != nil {
		return nil, nil, fmt.Errorf("BPE: %w", err)
	}
	return b, vocab, nil
}

func (b *bpe) build(f *bpeFile, v *vocabulary) error {
	for i, r := range byteAlphabet {
		id, err := v.id(string(r))
		if err != nil {
			return fmt.Errorf("%w: not byte-level: %w", ErrUnsupported, err)
		}
		b.bytes[i] = id
	}
	if err := b.buildMerges(f.Merges, v); err != nil {
		return err
	}
	b.whole = b.buildWhole(f)
	return nil
}

func (b *bpe) buildMerges(pairs []mergePair, v *vocabulary) error {
	b.merges = newMergeTable(len(pairs))
	for rank, p := range pairs {
		first, err1 := v.id(p[0])
		second, err2 := v.id(p[1])
		merged, err3 := v.id(p[0] + p[1])
		if err := errors.Join(err1, err2, err3); err != nil {
			return fmt.Errorf("merge %d, %q and %q: %w", rank, p[0], p[1], err)
		}
		b.merges.set(first, second, merge{int32(rank), merged})
	}
	return nil
}

// buildWhole finds the tokens that are all of what is made of them.
func (b *bpe) buildWhole(f *bpeFile) *trie {
	whole := make(map[string]int32, len(f.Vocab))
	var w workspace
	var pieces []piece
	for token, id := range f.Vocab {
		word, ok := appendBytes(nil, token)
		if !ok {
			continue // of no text
		}
		pieces = b.mergeAll(&w, pieces[:0], string(word))
		if f.IgnoreMerges || len(pieces) == 1 && pieces[0].id == id {
			whole[string(word)] = id
		}
	}
	return newTrie(whole)
}

func (b *bpe) tokenize(w *workspace, dst []piece, word string) []piece {
	if node := b.whole.walk(word); node != noNode {
		if id := b.whole.nodes[node].value; id != noValue && w.allows(id) {
			return append(dst, piece{id, 0, int32(len(word))})
		}
	}
	return b.mergeAll(w, dst, word)
}

// longWord is the length in bytes from which on a queue finds the next merge
// faster than a look at all pairs.
const longWord = 64

func (b *bpe) mergeAll(w *workspace, dst []piece, word string) []piece {
	kept := len(dst)
	dst = slices.Grow(dst, len(word))
	for i := range int32(len(word)) {
		dst = append(dst, piece{b.bytes[word[i]], i, i + 1})
	}
	if len(word) < longWord {
		return dst[:kept+b.mergeShort(dst[kept:])]
	}
	return dst[:kept+w.queue.mergeLong(&b.merges, dst[kept:])]
}

// mergeShort merges in place and returns how many pieces are left.
func (b *bpe) mergeShort(pieces []piece) int {
	var next [longWord]merge // of each piece and the one after it
	for i := range len(pieces) - 1 {
		next[i] = b.merges.get(pieces[i].id, pieces[i+1].id)
	}
	for n := len(pieces); ; n-- {
		best := -1
		for i, m := range next[:max(n-1, 0)] {
			if m.rank >= 0 && (best < 0 || m.rank < next[best].rank) {
				best = i
			}
		}
		if best < 0 {
			return n
		}
		pieces[best] = piece{next[best].id, pieces[best].start, pieces[best+1].end}
		copy(pieces[best+1:n-1], pieces[best+2:n])
		copy(next[best:n-2], next[best+1:n-1])
		if best > 0 {
			next[best-1] = b.merges.get(pieces[best-1].id, pieces[best].id)
		}
		if best < n-2 {
			next[best] = b.merges.get(pieces[best].id, pieces[best+1].id)
		}
	}
}

// memory is of the pieces, and of a queue in which each may be twice.
func (b *bpe) memory(length int) int {
	return length * int(unsafe.Sizeof(piece{})+unsafe.Sizeof(link{})+3*unsafe.Sizeof(candidate{}))
}
