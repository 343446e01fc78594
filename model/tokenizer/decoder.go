package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// decoder appends the text of tokens to dst.
type decoder interface {
	decode(dst []byte, tokens []string) []byte
}

// Decode returns the text of ids. Ids of no token count for nothing, nor do,
// with skipSpecial, special ones. The error is ErrUnsupported.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) (string, error) {
	if t.decoder == nil {
		return "", t.noDecoder
	}
	tokens := make([]string, 0, len(ids))
	for _, id := range ids {
		if t.vocabulary.token(id) == "" || skipSpecial && t.vocabulary.kinds[id]&specialKind != 0 {
			continue
		}
		tokens = append(tokens, t.written(id))
	}
	return string(t.decoder.decode(nil, tokens)), nil
}

// written is the token as the decoder wants it: normalised, if it is looked for
// in normalised text.
func (t *Tokenizer) written(id int32) string {
	if normal, ok := t.normalTokens[id]; ok {
		return normal
	}
	return t.vocabulary.token(id)
}

// Token returns the token as it is in the vocabulary, or false if the id is
// that of none.
func (t *Tokenizer) Token(id int32) (string, bool) {
	token := t.vocabulary.token(id)
	return token, token != ""
}

func (f *file) buildDecoder() (decoder, error) {
	switch f.Decoder.kind {
	case "WordPiece":
		return readWordPieceDecoder(f.Decoder)
	case "ByteLevel":
		return byteLevelDecoder{}, nil
	case "Metaspace":
		return readMetaspaceDecoder(f.Decoder)
	}
	return nil, f.Decoder.refuse("decoder", "WordPiece, ByteLevel, Metaspace")
}

// wordPieceDecoder is WordPiece: a space before each token without the prefix.
type wordPieceDecoder struct {
	Prefix  string `json:"prefix"`
	Cleanup bool   `json:"cleanup"` // no space before punctuation
}

func readWordPieceDecoder(c component) (decoder, error) {
	d := wordPieceDecoder{Prefix: "##", Cleanup: true}
	if err := c.decode(&d); err != nil {
		return nil, err
	}
	return d, nil
}

func (d wordPieceDecoder) decode(dst []byte, tokens []string) []byte {
	for i, token := range tokens {
		if i > 0 {
			rest, inside := strings.CutPrefix(token, d.Prefix)
			if token = rest; !inside {
				token = " " + rest
			}
		}
		if d.Cleanup {
			token = cleanUp(token)
		}
		dst = append(dst, token...)
	}
	return dst
}

// cleanups are made one after the other.
var cleanups = [][2]string{
	{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"},
	{" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
}

func cleanUp(token string) string {
	for _, c := range cleanups {
		token = strings.ReplaceAll(token, c[0], c[1])
	}
	return token
}

// byteLevelDecoder is ByteLevel: the bytes that the alphabet stands for.
type byteLevelDecoder struct{}

func (byteLevelDecoder) decode(dst []byte, tokens []string) []byte {
	var raw []byte
	for _, token := range tokens {
		raw, _ = appendBytes(raw, token)
	}
	return appendValid(dst, raw)
}

// appendValid appends raw with U+FFFD for each maximal part that is not UTF-8
// (Unicode, section 3.9, "U+FFFD Substitution of Maximal Subparts").
func appendValid(dst, raw []byte) []byte {
	for len(raw) > 0 {
		r, size := utf8.DecodeRune(raw)
		if r == utf8.RuneError && size == 1 {
			size = maximalSubpart(raw)
		}
		dst = utf8.AppendRune(dst, r)
		raw = raw[size:]
	}
	return dst
}

// maximalSubpart is the length of the longest start of raw, which does not
// start with a character, that could start one; 1 if there is none.
func maximalSubpart(raw []byte) int {
	for n := min(3, len(raw)); n > 1; n-- {
		whole := [4]byte{0, 0x80, 0x80, 0x80} // any third and fourth byte will do
		copy(whole[:], raw[:n])
		if _, size := utf8.DecodeRune(whole[:]); size > n {
			return n
		}
	}
	return 1
}

// metaspaceDecoder is Metaspace: spaces for marks, but nothing for those of the
// first token, unless it got none.
type metaspaceDecoder struct {
	mark     string
	prefixed bool
}

func readMetaspaceDecoder(c component) (decoder, error) {
	m, err := readMetaspace(c)
	if err != nil {
		return nil, fmt.Errorf("decoder: %w", err)
	}
	return metaspaceDecoder{m.Replacement, m.Scheme != never}, nil
}

func (d metaspaceDecoder) decode(dst []byte, tokens []string) []byte {
	for i, token := range tokens {
		space := " "
		if i == 0 && d.prefixed {
			space = ""
		}
		dst = append(dst, strings.ReplaceAll(token, d.mark, space)...)
	}
	return dst
}
