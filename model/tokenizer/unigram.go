package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// unigram cuts a word into the pieces with the highest sum of scores (Kudo,
// "Subword Regularization", 2018), by the Viterbi algorithm. Characters that
// are no piece are unknown; those in a row are one token.
type unigram struct {
	pieces       *trie
	scores       []float64 // by id
	unknown      int32
	unknownScore float64
}

// unknownPenalty is how much worse than the worst piece an unknown character is.
const unknownPenalty = 10

func readUnigram(c component) (*unigram, *vocabulary, error) {
	var f struct {
		Unknown      *int32        `json:"unk_id"`
		ByteFallback bool          `json:"byte_fallback"`
		Vocab        []scoredPiece `json:"vocab"`
	}
	if err := c.decode(&f); err != nil {
		return nil, nil, err
	}
	if f.ByteFallback {
		return nil, nil, fmt.Errorf("%w: Unigram with byte_fallback", ErrUnsupported)
	}
	if f.Unknown == nil || *f.Unknown < 0 || int(*f.Unknown) >= len(f.Vocab) {
		return nil, nil, errors.New("a Unigram model needs unk_id, the place of a token in vocab")
	}
	u, ids := &unigram{unknown: *f.Unknown, unknownScore: math.Inf(1)}, make(map[string]int32, len(f.Vocab))
	for id, p := range f.Vocab {
		if _, ok := ids[p.token]; ok {
			return nil, nil, fmt.Errorf("%w: Unigram with the token %q twice", ErrUnsupported, p.token)
		}
		if math.IsInf(p.score, 0) || math.IsNaN(p.score) {
			return nil, nil, fmt.Errorf("unigram: the score of %q is no number", p.token)
		}
		ids[p.token] = int32(id)
		u.scores = append(u.scores, p.score)
		u.unknownScore = min(u.unknownScore, p.score-unknownPenalty)
	}
	vocab, err := newVocabulary(ids)
	if err != nil {
		return nil, nil, fmt.Errorf("unigram: %w", err)
	}
	u.pieces = newTrie(ids)
	return u, vocab, nil
}

// scoredPiece is written as ["a", -2.5].
type scoredPiece struct {
	token string
	score float64
}

func (p *scoredPiece) UnmarshalJSON(data []byte) error {
	var score json.Number
	if err := json.Unmarshal(data, &[]any{&p.token, &score}); err != nil {
		return err
	}
	p.score = roundedTwice(string(score))
	return nil
}

// roundedTwice reads a JSON number as the reference does: the digits are rounded
// to a float64, and then, after the division by a power of ten, again. The last
// bit decides between ways of equal score.
func roundedTwice(number string) float64 {
	number, negative := strings.CutPrefix(number, "-")
	number, power, _ := strings.Cut(strings.ToLower(number), "e")
	whole, fraction, _ := strings.Cut(number, ".")
	exponent, _ := strconv.Atoi(power)
	digits := uint64(0)
	for i, c := range whole + fraction {
		digit := uint64(c - '0')
		if digits > (math.MaxUint64-digit)/10 {
			exponent += max(len(whole)-i, 0) // the rest is ignored
			break
		}
		digits = digits*10 + digit
		if i >= len(whole) {
			exponent--
		}
	}
	value := scale(float64(digits), exponent)
	if negative {
		return -value
	}
	return value
}

func scale(value float64, exponent int) float64 {
	if exponent < 0 {
		return value / math.Pow10(-exponent)
	}
	return value * math.Pow10(exponent)
}

// arrival is the best way to a place in a word.
type arrival struct {
	score float64
	start int32 // of its last piece; noStart if there is no way yet
	id    int32 // of its last piece
}

const noStart = -1

func (u *unigram) tokenize(w *workspace, dst []piece, word string) []piece {
	w.arrivals = slices.Grow(w.arrivals[:0], len(word)+1)
	for range len(word) + 1 {
		w.arrivals = append(w.arrivals, arrival{start: noStart})
	}
	for start := 0; start < len(word); {
		_, size := utf8.DecodeRuneInString(word[start:])
		u.extend(w, word, start, size)
		start += size
	}
	return u.follow(dst, w.arrivals)
}

// extend tries all pieces that start where a character of size bytes does.
func (u *unigram) extend(w *workspace, word string, start, size int) {
	known, node, base := false, int32(root), w.arrivals[start].score
	for end := start; end < len(word); {
		if node = u.pieces.step(node, word[end]); node == noNode {
			break
		}
		end++
		id := u.pieces.nodes[node].value
		if id == noValue || !w.allows(id) {
			continue
		}
		w.arrivals[end].improve(arrival{base + u.scores[id], int32(start), id})
		known = known || end == start+size
	}
	if !known {
		w.arrivals[start+size].improve(arrival{base + u.unknownScore, int32(start), u.unknown})
	}
}

func (a *arrival) improve(b arrival) {
	if a.start == noStart || b.score > a.score {
		*a = b
	}
}

// follow appends the pieces of the best way to the end.
func (u *unigram) follow(dst []piece, arrivals []arrival) []piece {
	kept, most := len(dst), 0
	for end := len(arrivals) - 1; end > 0; end = int(arrivals[end].start) {
		most++
	}
	dst = slices.Grow(dst, most)
	for end := len(arrivals) - 1; end > 0; {
		a := arrivals[end]
		if n := len(dst); a.id == u.unknown && n > kept && dst[n-1].id == u.unknown {
			dst[n-1].start = a.start
		} else {
			dst = append(dst, piece{a.id, a.start, int32(end)})
		}
		end = int(a.start)
	}
	slices.Reverse(dst[kept:])
	return dst
}

func (u *unigram) memory(length int) int {
	return length * int(unsafe.Sizeof(arrival{})+unsafe.Sizeof(piece{}))
}
