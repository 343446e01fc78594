package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/model/tokenizer"
)

// tokensOf is the oracle of what /tokenize writes by hand.
func tokensOf(t *tokenizer.Tokenizer, e *tokenizer.Encoding, text string) []client.Token {
	tokens := make([]client.Token, e.Len())
	for i, id := range e.IDs {
		tokens[i] = client.Token{ID: id, Special: e.Special[i]}
		if e.Special[i] {
			tokens[i].Text, _ = t.Token(id)
			continue
		}
		at := e.Offsets[i]
		start, stop := len([]rune(text[:at.Start])), len([]rune(text[:at.End]))
		tokens[i].Text, tokens[i].Start, tokens[i].Stop = text[at.Start:at.End], &start, &stop
	}
	return tokens
}

// The tokens written by hand are those that package client declares, member by
// member; those of a byte-level tokenizer, too, which has several a character.
func TestTokensOnTheWire(t *testing.T) {
	d := startModels(t)
	texts := []string{"", "Volunteer days: 漢字 🙂🙂", "a\"b\\c\n\x01<&>\u2028é", strings.Repeat("word 🙂 ", 3000)}
	bytewise, err := tokenizer.Load("../model/tokenizer/testdata/bpe_roberta/tokenizer.json")
	require.NoError(t, err)
	for _, one := range []*tokenizer.Tokenizer{d.fake.models.Tokenizer(), bytewise} {
		out, want := &pages{q: &request{s: d.Server}}, [][]client.Token{}
		for i, text := range texts {
			var e tokenizer.Encoding
			require.NoError(t, one.Encode(&e, text, tokenizer.Options{NoSpecialTokens: i%2 == 0}))
			require.NoError(t, out.writeTokens(one, &e, text, i))
			want = append(want, tokensOf(one, &e, text))
		}
		require.NoError(t, out.write("]"))
		var got strings.Builder
		for _, page := range append(out.full, out.last) {
			require.LessOrEqual(t, cap(page), largestPage)
			got.Write(page)
		}
		text, err := json.Marshal(want)
		require.NoError(t, err)
		require.JSONEq(t, string(text), got.String())
	}
}

// An answer of tokens is charged while it grows, and given up where there is no
// room for more of it.
func TestTokenizeStopsAtTheBudget(t *testing.T) {
	d := startModels(t, withTotal)
	fits := fmt.Sprintf(`{"inputs":%q}`, strings.Repeat("!", 1000))
	require.Equal(t, 200, d.refused("/tokenize", fits).status)
	for name, inputs := range map[string][]string{
		"tokens": {strings.Repeat("!", 2000), strings.Repeat("?", 2000)},
		"a text": {strings.Repeat("a", 5000)},
	} {
		text, _ := json.Marshal(object{"inputs": inputs})
		a := d.refused("/tokenize", string(text))
		require.Equal(t, 429, a.status, name)
		requireInferenceError(t, a, 429, "Overloaded", "limits.total_bytes")
	}
	requireInferenceError(t, d.refused("/tokenize", `{"inputs":"`+strings.Repeat("!", maxTokenize)+`"}`), 413, "Validation", "1048576")
	d.requireWholeBudget()
}
