package tokenizer

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
	w.text, w.edits = text, from.edits
	w.spans = append(w.spans[:0], at)
}

// splitter appends the words of text[at.Start:at.End] to dst, in order.
type splitter interface {
	split(dst []Span, text string, at Span) []Span
}

// splitting is the pre-tokenizer that only splits.
type splitting struct{ splitter }

func (s splitting) preTokenize(w *words) {
	w.next = w.next[:0]
	for _, at := range w.spans {
		w.next = s.split(w.next, w.text, at)
	}
	w.spans, w.next = w.next, w.spans
}
