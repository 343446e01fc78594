// Package tokenizer turns texts into the token ids of Hugging Face models,
// exactly as the reference implementation does with the model's tokenizer.json.
//
// A text goes through normalizers, pre-tokenizers, which cut it into words, a
// model (WordPiece, byte-level BPE or Unigram), which cuts words into tokens,
// and a template, which adds special tokens. A decoder makes text of tokens. The truncation and padding that a file asks for are not obeyed: they
// are the caller's to choose.
package tokenizer

import (
	"fmt"
	"sync"
)

// model appends a word's tokens to dst.
type model interface {
	tokenize(w *workspace, dst []piece, word string) []piece
	memory(length int) int // bytes that it holds for a word of so many, at most
}

// piece is a token of a word and its place in the word, in bytes.
type piece struct {
	id, start, end int32
}

// Tokenizer is safe for concurrent use.
type Tokenizer struct {
	added           *addedTokens   // found in the text as it is
	addedNormalized *addedTokens   // found in the normalised text
	normalizers     []normalizer   // at least one
	preTokenizers   []preTokenizer // but for those of splitters
	splitters       []splitter     // cut what the preTokenizers leave into words
	model           model
	trimming        trimming
	template        template
	vocabulary      *vocabulary
	normalTokens    map[int32]string // added tokens that are found in the normalised text, as they are in it
	decoder         decoder
	noDecoder       error // why decoder is nil
	cuts            *cuts
	scratch         sync.Pool // of *scratch
}

// Options says how to encode. The zero value is for documents and queries:
// with special tokens around the text but none parsed in it, and uncut. What is
// not parsed cannot become a special token in another way either; the reference
// lets "＜s＞" become one if a normalizer turns it into "<s>".
type Options struct {
	MaxLength          int // in tokens, special ones included; 0: no limit
	Strategy           Strategy
	TruncateLeft       bool // cut at the start instead of the end
	NoSpecialTokens    bool // do not add any
	ParseSpecialTokens bool // "[SEP]" in a text is the separator
	Room               Room // nil: there is no end of it
}

// VocabSize is the highest token id plus one.
func (t *Tokenizer) VocabSize() int { return len(t.vocabulary.tokens) }

// Encode tokenizes a text into dst. Bytes that are not UTF-8 count as U+FFFD.
// The error is ErrCannotTruncate or the Room's.
func (t *Tokenizer) Encode(dst *Encoding, text string, o Options) error {
	s := t.borrow(o)
	defer t.giveBack(s)
	t.tokenize(s, &s.first, text, o)
	return t.finish(dst, s, t.template.single, o)
}

// EncodePair tokenizes two texts, either of which may be empty, into dst. The
// errors are those of Encode.
func (t *Tokenizer) EncodePair(dst *Encoding, first, second string, o Options) error {
	s := t.borrow(o)
	defer t.giveBack(s)
	t.tokenize(s, &s.first, first, o)
	s.account.first = len(s.first.ids)
	t.tokenize(s, &s.second, second, o)
	return t.finish(dst, s, t.template.pair, o)
}

// Text is a text's tokens, for pairs that it is the first of. It can be
// used again: each Tokenize overwrites it.
type Text struct{ tokens sequence }

// Tokenize tokenizes a text into dst. The options are those of the pairs, but for
// their Strategy. The error is the Room's.
func (t *Tokenizer) Tokenize(dst *Text, text string, o Options) error {
	s := t.borrow(o)
	defer t.giveBack(s)
	t.tokenize(s, &dst.tokens, text, o)
	return s.account.err
}

// EncodePairOf is EncodePair of a first text that is tokenized already.
func (t *Tokenizer) EncodePairOf(dst *Encoding, first *Text, second string, o Options) error {
	s := t.borrow(o)
	defer t.giveBack(s)
	s.first.copy(&first.tokens) // finish changes its offsets
	s.account.first = len(s.first.ids)
	t.tokenize(s, &s.second, second, o)
	return t.finish(dst, s, t.template.pair, o)
}

// finish cuts the two sequences and puts them into dst.
func (t *Tokenizer) finish(dst *Encoding, s *scratch, pieces []templatePiece, o Options) error {
	dst.reset()
	if s.account.err != nil {
		return s.account.err
	}
	n1, n2 := s.first.count, s.second.count
	k1, k2, err := o.keep(n1, n2, pieces)
	if err != nil {
		return err
	}
	first, second := s.first.window(k1, o.TruncateLeft), s.second.window(k2, o.TruncateLeft)
	t.trimming.apply(&first, t.vocabulary)
	t.trimming.apply(&second, t.vocabulary)
	apply(pieces, dst, first, second, !o.NoSpecialTokens)
	dst.Cut = n1 - k1 + n2 - k2
	return nil
}

func (o Options) keep(first, second int, pieces []templatePiece) (int, int, error) {
	if o.MaxLength == 0 {
		return first, second, nil
	}
	limit := o.MaxLength
	if !o.NoSpecialTokens {
		limit -= added(pieces)
	}
	if limit < 0 {
		return 0, 0, fmt.Errorf("%w: %d tokens are too few for the special ones", ErrCannotTruncate, o.MaxLength)
	}
	return keep(first, second, limit, o.Strategy)
}

// scratch is what encoding needs room for.
type scratch struct {
	first, second sequence
	account       account
	checked       bool // there is room for all of words
	draft         draft
	words         words
	workspace     workspace
	pieces        []piece
}

// workspace is what models need room for.
type workspace struct {
	kinds    []kind // by id, if special tokens are not allowed
	arrivals []arrival
	queue    mergeQueue
}

// allows says whether a word may become the token.
func (w *workspace) allows(id int32) bool {
	return w.kinds == nil || w.kinds[id]&specialKind == 0
}

func (t *Tokenizer) borrow(o Options) *scratch {
	s, ok := t.scratch.Get().(*scratch)
	if !ok {
		s = &scratch{}
	}
	s.workspace.kinds = t.vocabulary.kinds
	if o.ParseSpecialTokens {
		s.workspace.kinds = nil
	}
	s.account = account{room: o.Room, tokens: freeTokens}
	return s
}

func (t *Tokenizer) giveBack(s *scratch) {
	s.account.close()
	if s.account.large {
		return // what others could use is no more than FreeBytes
	}
	s.first.reset("", Options{})
	s.second.reset("", Options{})
	t.scratch.Put(s)
}

// tokenize turns a whole text into tokens, without special ones around it.
func (t *Tokenizer) tokenize(s *scratch, dst *sequence, text string, o Options) {
	dst.reset(text, o)
	if t.added.none(o.ParseSpecialTokens) {
		t.tokenizeText(s, dst, text, Span{0, len(text)}, o.ParseSpecialTokens)
		return
	}
	segments := t.added.segments(text, o.ParseSpecialTokens)
	for g, ok := segments.next(); ok; g, ok = segments.next() {
		if g.token != nil {
			t.addToken(s, dst, g.token.ID, g.at)
			continue
		}
		t.tokenizeText(s, dst, text, g.at, o.ParseSpecialTokens)
	}
}

// addToken appends a token that is a word of its own.
func (t *Tokenizer) addToken(s *scratch, dst *sequence, id int32, at Span) {
	if s.account.tokensFit(dst, 1) {
		dst.addWord(id, at)
	}
}

// tokenizeText normalises one part of text[at.Start:at.End] after the other.
func (t *Tokenizer) tokenizeText(s *scratch, dst *sequence, text string, at Span, parseSpecial bool) {
	for part := (Span{}); at.Start < at.End; at.Start = part.End {
		part = t.cuts.text(text, at)
		if !t.normalize(s, text, part) {
			return
		}
		if part != at && s.draft.behind {
			if part = at; !t.normalize(s, text, part) {
				return
			}
		}
		t.tokenizeNormalized(s, dst, parseSpecial)
	}
}

// normalize makes s.draft of a part of a text, if there is room.
func (t *Tokenizer) normalize(s *scratch, text string, at Span) bool {
	if !s.roomForText(t, text[at.Start:at.End]) {
		return false
	}
	s.draft.normalize(t.normalizers, text, at)
	return true
}

func (t *Tokenizer) tokenizeNormalized(s *scratch, dst *sequence, parseSpecial bool) {
	text, from := s.draft.text, origins{s.draft.edits}
	if t.addedNormalized.none(parseSpecial) {
		t.tokenizeParts(s, dst, text, from, Span{0, len(text)})
		return
	}
	segments := t.addedNormalized.segments(text, parseSpecial)
	for g, ok := segments.next(); ok; g, ok = segments.next() {
		if g.token != nil {
			t.addToken(s, dst, g.token.ID, from.of(g.at.Start, g.at.End))
			continue
		}
		from.edit(g.at.Start) // what is before is done
		t.tokenizeParts(s, dst, text, from, g.at)
	}
}

// tokenizeParts cuts text[at.Start:at.End], which is normalised, into words.
func (t *Tokenizer) tokenizeParts(s *scratch, dst *sequence, text string, from origins, at Span) {
	for part := (Span{}); at.Start < at.End; at.Start = part.End {
		part = t.cuts.normalised(text, at)
		from.edit(part.Start)
		s.words.start(text, from, part)
		t.tokenizeWords(s, dst)
	}
}

func (t *Tokenizer) tokenizeWords(s *scratch, dst *sequence) {
	for _, p := range t.preTokenizers {
		if !s.roomForWords() {
			return
		}
		p.preTokenize(&s.words)
	}
	from := origins{s.words.edits}
	s.checked = s.account.fits(dst, s.words.length())
	for _, w := range s.words.spans {
		t.tokenizeSplit(s, dst, &from, t.splitters, w)
	}
}

// tokenizeSplit goes through the words one by one: a list of them would be many
// times as large as the text.
func (t *Tokenizer) tokenizeSplit(s *scratch, dst *sequence, from *origins, splitters []splitter, at Span) {
	if len(splitters) == 0 {
		t.tokenizeWord(s, dst, from, at)
		return
	}
	for at.Start < at.End {
		var word Span
		if word, at = splitters[0].next(s.words.text, at); word.Start < word.End {
			t.tokenizeSplit(s, dst, from, splitters[1:], word)
		}
	}
}

func (t *Tokenizer) tokenizeWord(s *scratch, dst *sequence, from *origins, w Span) {
	if !s.checked && !s.roomForWord(t.model, dst, w.End-w.Start) {
		return
	}
	text := s.words.text
	s.pieces = t.model.tokenize(&s.workspace, s.pieces[:0], text[w.Start:w.End])
	for i, p := range s.pieces {
		if dst.full() {
			dst.count += len(s.pieces) - i
			break
		}
		dst.add(p.id, from.characters(text, Span{w.Start + int(p.start), w.Start + int(p.end)}))
	}
	dst.next++
}
