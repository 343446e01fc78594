package server

import (
	"slices"
	"unicode/utf8"

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
	t, o := s.backend.Tokenizer(), tokenizer.Options{NoSpecialTokens: body.AddSpecialTokens != nil && !*body.AddSpecialTokens}
	all := make([][]client.Token, len(body.Inputs))
	var e tokenizer.Encoding
	for i, text := range body.Inputs {
		if err := q.ctx.Err(); err != nil {
			return err
		}
		text = prompt + text
		if err := t.Encode(&e, text, o); err != nil {
			return badRequest("inputs: text %d: %v", i, err)
		}
		all[i] = tokensOf(t, &e, text)
	}
	return q.reply(fasthttp.StatusOK, all)
}

// tokensOf gives places in characters: an encoding has them in bytes.
func tokensOf(t *tokenizer.Tokenizer, e *tokenizer.Encoding, text string) []client.Token {
	tokens := make([]client.Token, e.Len())
	place := counter{text: text}
	for i, id := range e.IDs {
		tokens[i] = client.Token{ID: id, Special: e.Special[i]}
		if e.Special[i] {
			tokens[i].Text, _ = t.Token(id)
			continue
		}
		at := e.Offsets[i]
		start, stop := place.of(at.Start), place.of(at.End)
		tokens[i].Text, tokens[i].Start, tokens[i].Stop = text[at.Start:at.End], &start, &stop
	}
	return tokens
}

// counter turns places in bytes into places in characters. It goes on from the
// last place, as tokens come in the order of the text.
type counter struct {
	text              string
	bytes, characters int
}

func (c *counter) of(place int) int {
	if place < c.bytes {
		c.bytes, c.characters = 0, 0
	}
	c.characters += utf8.RuneCountInString(c.text[c.bytes:place])
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
		var err error
		if texts[i], err = s.backend.Tokenizer().Decode(ids, skip); err != nil {
			return badRequest("ids: %v", err)
		}
	}
	return q.reply(fasthttp.StatusOK, texts)
}
