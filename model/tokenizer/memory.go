package tokenizer

import "unicode/utf8"

// encodingBytes is what encoding takes of memory, at most, of each byte of a text as
// the normalizers leave it: there may be a token of each.
const encodingBytes = 112

// Memory is about how many bytes encoding the whole of a text takes, at most: the
// Encoding, and what is held meanwhile. A character that becomes eighteen takes as
// much as those.
func (t *Tokenizer) Memory(text string) int {
	n, known := 0, map[rune]int{}
	for _, r := range text {
		if r < utf8.RuneSelf {
			n++
			continue
		}
		size := known[r]
		if size == 0 {
			size = max(utf8.RuneLen(r), len(normalize(t.normalizers, string(r))))
			known[r] = size
		}
		n += size
	}
	return encodingBytes * n
}
