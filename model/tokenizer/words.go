package tokenizer

import "slices"

// preTokenizer cuts each of the words further, or rewrites them.
type preTokenizer interface {
	preTokenize(w *words)
}

// words is a text in the middle of pre-tokenization.
type words struct {
	draft
	spans []Span // of text, in order
	next  []Span
}

// start makes one word of text[at.Start:at.End]; from says where the text is from.
func (w *words) start(text string, from origins, at Span) {
	w.text, w.edits, w.turn = text, from.edits, 0
	w.spans = append(w.spans[:0], at)
}

// length is that of the words, and what is between them.
func (w *words) length() int {
	if len(w.spans) == 0 {
		return 0
	}
	return w.spans[len(w.spans)-1].End - w.spans[0].Start
}

// splitter finds the first word of text[at.Start:at.End], which is not empty, and
// where to look for the next one. The word is empty where there is none.
type splitter interface {
	next(text string, at Span) (word, rest Span)
}

// splitting is the pre-tokenizer that only splits.
type splitting struct{ splitter }

func (s splitting) preTokenize(w *words) {
	w.next = w.next[:0]
	for _, at := range w.spans {
		w.next = appendWords(w.next, s.splitter, w.text, at)
	}
	w.spans, w.next = w.next, w.spans
}

// appendWords appends the words of text[at.Start:at.End] to dst, in order.
func appendWords(dst []Span, s splitter, text string, at Span) []Span {
	for at.Start < at.End {
		var word Span
		if word, at = s.next(text, at); word.Start < word.End {
			dst = append(dst, word)
		}
	}
	return dst
}

// lastSplitters takes those after which nothing is rewritten apart.
func lastSplitters(all []preTokenizer) (before []preTokenizer, last []splitter) {
	n := len(all)
	for n > 0 {
		s, ok := all[n-1].(splitting)
		if !ok {
			break
		}
		last = append(last, s.splitter)
		n--
	}
	slices.Reverse(last)
	return all[:n], last
}
