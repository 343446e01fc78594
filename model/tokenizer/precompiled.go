package tokenizer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// precompiled is Precompiled: what SentencePiece's character map makes of each
// grapheme cluster.
type precompiled struct {
	properties []property
	units      []uint32            // a double array as Darts-clone writes it
	results    []byte              // of the replacements, each ended by a zero byte
	plain      [utf8.RuneSelf]bool // ASCII that stays as it is
}

// clusterLimit is the length in bytes from which on a cluster is not looked up
// as a whole.
const clusterLimit = 6

func readPrecompiled(c component) (normalizer, error) {
	var f struct {
		Map []byte `json:"precompiled_charsmap"`
	}
	if err := c.decode(&f); err != nil {
		return nil, err
	}
	if len(f.Map) < 4 {
		return nil, errors.New("a Precompiled normalizer needs precompiled_charsmap")
	}
	size, rest := uint64(binary.LittleEndian.Uint32(f.Map)), f.Map[4:]
	if size > uint64(len(rest)) || size%4 != 0 {
		return nil, errors.New("precompiled normalizer: precompiled_charsmap is damaged")
	}
	p := &precompiled{properties: properties(), units: make([]uint32, size/4), results: rest[size:]}
	for i := range p.units {
		p.units[i] = binary.LittleEndian.Uint32(rest[4*i:])
	}
	for c := range byte(utf8.RuneSelf) {
		_, changed := p.find(string(rune(c)))
		p.plain[c] = !changed && c != '\r'
	}
	return p, nil
}

func (p *precompiled) normalize(dst *normalized, text string, at Span) {
	w, state := newRewriter(dst, text, at), -1
	for at.Start < at.End {
		if n := p.plainASCII(text[at.Start:at.End]); n > 0 {
			w.copy(Span{at.Start, at.Start + n})
			at.Start, state = at.Start+n, -1
			continue
		}
		var size int
		size, state = p.cluster(text[at.Start:at.End], state)
		p.rewrite(&w, Span{at.Start, at.Start + size})
		at.Start += size
	}
	dst.behind = w.unread.Start < at.End
}

// plainASCII is the number of characters that stay as they are and are not in
// a cluster with others.
func (p *precompiled) plainASCII(text string) int {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c >= utf8.RuneSelf {
			return max(i-1, 0)
		} else if !p.plain[c] {
			return i
		}
	}
	return len(text)
}

// cluster is the length of the grapheme cluster that text starts with; state is
// that of the one before, or -1.
func (p *precompiled) cluster(text string, state int) (int, int) {
	r, size := utf8.DecodeRuneInString(text)
	next, _ := utf8.DecodeRuneInString(text[size:])
	if (p.properties[r]|p.properties[next])&joiner == 0 {
		return size, -1
	}
	whole, rest, _, state := uniseg.FirstGraphemeClusterInString(text, state)
	next, _ = utf8.DecodeRuneInString(rest)
	last, _ := utf8.DecodeLastRuneInString(whole)
	if (p.properties[last]|p.properties[next])&joiner == 0 {
		state = -1
	}
	return len(whole), state
}

// rewrite looks the cluster up as a whole and then each of its characters.
func (p *precompiled) rewrite(w *rewriter, at Span) {
	cluster := w.text[at.Start:at.End]
	if len(cluster) < clusterLimit {
		if result, ok := p.find(cluster); ok {
			substitute(w, result, utf8.RuneCountInString(cluster))
			return
		}
	}
	for i, r := range cluster {
		end := i + utf8.RuneLen(r)
		if result, ok := p.find(cluster[i:end]); ok {
			substitute(w, result, 1)
		} else {
			w.copy(Span{at.Start + i, at.Start + end})
		}
	}
}

// substitute writes result for n characters: one for one, and what is left over
// is added, or removed, at the end. What the reference removes before it has
// written anything, it still counts as unread.
func substitute(w *rewriter, result []byte, n int) {
	for len(result) > 0 {
		r, size := utf8.DecodeRune(result)
		result = result[size:]
		if n > 0 {
			w.replace(r, 0)
		} else {
			w.add(r)
		}
		n--
	}
	if len(w.dst.text) > 0 {
		w.remove(max(n, 0))
	}
}

// find returns the replacement of the shortest prefix of text that has one; the
// reference takes it for the whole.
func (p *precompiled) find(text string) ([]byte, bool) {
	at := uint32(0)
	for i := 0; ; i++ {
		if int(at) >= len(p.units) {
			return nil, false
		}
		unit := p.units[at]
		if i > 0 && unit&(1<<31|0xFF) != uint32(text[i-1]) {
			return nil, false
		}
		at ^= unit >> 10 << (unit & (1 << 9) >> 6)
		if i > 0 && unit>>8&1 == 1 {
			return p.result(at)
		}
		if i == len(text) || text[i] == 0 {
			return nil, false
		}
		at ^= uint32(text[i])
	}
}

func (p *precompiled) result(leaf uint32) ([]byte, bool) {
	if int(leaf) >= len(p.units) {
		return nil, false
	}
	start := p.units[leaf] &^ (1 << 31)
	if int(start) > len(p.results) {
		return nil, false
	}
	result, _, _ := bytes.Cut(p.results[start:], []byte{0})
	return result, true
}
