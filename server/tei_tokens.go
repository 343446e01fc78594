package server

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/valyala/fasthttp"

	"sluice/client"
	"sluice/model/tokenizer"
)

// The calls of text-embeddings-inference about tokens. Nothing is cut.

func (s *Server) teiTokenize(q *request) error {
	var body client.TokenizeRequest
	if err := q.readJSON(&body); err != nil {
		return err
	}
	if err := checkCount("inputs", len(body.Inputs)); err != nil {
		return err
	}
	prompt, err := s.backend.Info().Prompts.Prompt(body.PromptName)
	if err != nil {
		return err
	}
	special, out := body.AddSpecialTokens == nil || *body.AddSpecialTokens, &pages{q: q}
	for i, text := range body.Inputs {
		if err := q.ctx.Err(); err != nil {
			return err
		}
		if err := out.tokenize(s.backend.Tokenizer(), prompt+text, special, i); err != nil {
			return err
		}
	}
	if err := out.write("]\n"); err != nil {
		return err
	}
	return out.reply()
}

// tokenize writes the tokens of the text in place i.
func (p *pages) tokenize(t *tokenizer.Tokenizer, text string, special bool, i int) error {
	held := &heldRoom{q: p.q}
	defer held.giveBack()
	var e tokenizer.Encoding
	if err := t.Encode(&e, text, tokenizer.Options{NoSpecialTokens: !special, Room: held}); err != nil {
		return err
	}
	return p.writeTokens(t, &e, text, i)
}

// heldRoom is a tokenizer.Room of which nothing is given back before the tokens
// are written, too.
type heldRoom struct {
	q     *request
	bytes int
}

func (r *heldRoom) Take(n, held int) error {
	err := r.q.s.budget.Take(n, held)
	if err == nil {
		r.q.taken, r.bytes = r.q.taken+n, r.bytes+n
	}
	return err
}

func (*heldRoom) Give(int) {}

func (r *heldRoom) giveBack() { r.q.giveBack(r.bytes) }

// writeTokens writes the tokens of the text in place i, a list of client.Token.
// Their places are in characters: an encoding has them in bytes.
func (p *pages) writeTokens(t *tokenizer.Tokenizer, e *tokenizer.Encoding, text string, i int) error {
	if err := p.write(before(i) + "["); err != nil {
		return err
	}
	place := counter{text: text}
	for i, id := range e.IDs {
		word := text[e.Offsets[i].Start:e.Offsets[i].End]
		if e.Special[i] {
			word, _ = t.Token(id)
		}
		if err := p.room(tokenBytes + escaped*len(word)); err != nil {
			return err
		}
		if i > 0 {
			p.last = append(p.last, ',')
		}
		p.last = appendToken(p.last, id, word, e.Special[i], place.span(e.Offsets[i]))
	}
	return p.write("]")
}

const (
	tokenBytes = 128           // what a client.Token takes beside its text, at most
	escaped    = len(`\u0000`) // a character, of one byte or more
)

// appendToken appends a client.Token; a special one has no place.
func appendToken(dst []byte, id int32, text string, special bool, at tokenizer.Span) []byte {
	dst = strconv.AppendInt(append(dst, `{"id":`...), int64(id), 10)
	dst, _ = jsontext.AppendQuote(append(dst, `,"text":`...), text) // what is not UTF-8 becomes U+FFFD
	if special {
		return append(dst, `,"special":true,"start":null,"stop":null}`...)
	}
	dst = strconv.AppendInt(append(dst, `,"special":false,"start":`...), int64(at.Start), 10)
	dst = strconv.AppendInt(append(dst, `,"stop":`...), int64(at.End), 10)
	return append(dst, '}')
}

// counter turns places in bytes into places in characters. It goes on from the
// last place, forwards or (several tokens of one character) backwards.
type counter struct {
	text              string
	bytes, characters int
}

func (c *counter) span(at tokenizer.Span) tokenizer.Span {
	return tokenizer.Span{Start: c.of(at.Start), End: c.of(at.End)}
}

func (c *counter) of(place int) int {
	if place < c.bytes {
		c.characters -= utf8.RuneCountInString(c.text[place:c.bytes])
	} else {
		c.characters += utf8.RuneCountInString(c.text[c.bytes:place])
	}
	c.bytes = place
	return c.characters
}

func (s *Server) teiDecode(q *request) error {
	var body client.DecodeRequest
	if err := q.readJSON(&body); err != nil {
		return err
	}
	if err := checkCount("ids", len(body.IDs)); err != nil {
		return err
	}
	skip := body.SkipSpecialTokens == nil || *body.SkipSpecialTokens
	texts := make([]string, len(body.IDs))
	for i, ids := range body.IDs {
		if slices.ContainsFunc(ids, func(id int32) bool { return id < 0 }) {
			return badRequest("ids: a token id is 0 or more")
		}
		if err := q.takeDecoded(s.backend.Tokenizer(), ids); err != nil {
			return err
		}
		var err error
		if texts[i], err = s.backend.Tokenizer().Decode(ids, skip); err != nil {
			return badRequest("ids: %v", err)
		}
	}
	return q.reply(fasthttp.StatusOK, texts)
}

// takeDecoded charges for the text of the ids, and for its being written as JSON:
// two bytes of a body can name a token of a hundred.
func (q *request) takeDecoded(t *tokenizer.Tokenizer, ids []int32) error {
	const copies = 4 // of a buffer that grows, and the text
	bytes := 0
	for _, id := range ids {
		text, _ := t.Token(id)
		bytes += len(text) + len(" ")
	}
	return q.take(copies * bytes)
}
