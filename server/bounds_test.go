package server

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/gpu"
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
	texts := []string{"", "Volunteer days: 漢字 🙂🙂", "a\"b\\c\n\x01<&>\u2028é", strings.Repeat("word 🙂 ", 800)}
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
		require.Greater(t, len(out.full), 1)
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
	text, err := json.Marshal(object{"inputs": []string{strings.Repeat("!", 4000), strings.Repeat("?", 4000)}})
	require.NoError(t, err)
	requireInferenceError(t, d.refused("/tokenize", string(text)), 429, "Overloaded", "limits.total_bytes")
	requireInferenceError(t, d.refused("/tokenize", `{"inputs":"`+strings.Repeat("!", maxTokenize)+`"}`), 413, "Validation", "1048576")
	d.requireWholeBudget()
}

// Texts are charged while they are tokenized with what that takes beyond what
// every text may: where there is no room now, or never will be, nothing is done,
// and what was taken is given back. Texts of words are not charged.
func TestTokenizingIsCharged(t *testing.T) {
	const total, size = 8 << 20, 100 << 10
	d := startModels(t, func(s *setup) { s.limits.TotalBytes = total })
	for _, c := range []struct{ path, body, hostile string }{
		{"/v1/embeddings", `{"model":"tiny-bert","input":[%q]}`, "\u0301"},
		{"/embed", `{"truncate":true,"inputs":[%q]}`, "\u0301"},
		{"/rerank", `{"truncate":true,"query":"q","texts":[%q]}`, "a"},
		{"/v1/rerank", `{"query":"q","documents":[%q]}`, "a"},
		{"/v2/rerank", `{"model":"tiny-judge","query":"q","documents":[%q]}`, "a"},
		{"/predict", `{"truncate":true,"inputs":%q}`, "a"},
		{"/tokenize", `{"inputs":[%q]}`, "!"},
	} {
		body := func(text string, size int) string {
			return fmt.Sprintf(c.body, strings.Repeat(text, size/len(text)))
		}
		status := func(body string, left int) int {
			t.Helper()
			taken := int(d.budget.left.Load()) - left
			require.True(t, d.budget.take(taken))
			defer d.budget.Give(taken)
			return d.refused(c.path, body).status
		}
		hostile := body(c.hostile, size)
		if c.path == "/tokenize" {
			hostile = body(c.hostile, size/4) // its answer has much of every token
		}
		require.Equal(t, 200, status(hostile, total), c.path)
		require.Equal(t, 429, status(hostile, len(hostile)+64<<10), c.path)
		require.Equal(t, 413, status(body(c.hostile, 4*size), total), c.path)
		if c.path != "/tokenize" {
			words := body("word ", size)
			require.Equal(t, 200, status(words, 2*len(words)+64<<10), c.path) // some answers have the texts
		}
	}
	d.requireWholeBudget()
}

// Vectors of tokens written by hand are what package client declares.
func TestTokenVectorsOnTheWire(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	d := start(t)
	out, want := &pages{q: &request{s: d.Server}}, [][][]float32{}
	for i := range 5 {
		var e gpu.Embedding
		var vectors [][]float32
		for _, one := range oddVectors(r, 30*i) {
			v := one.Vector[:50]
			vectors, e.TokenVectors, e.Tokens = append(vectors, v), append(e.TokenVectors, v...), e.Tokens+1
		}
		require.NoError(t, out.writeTokenVectors(e, 50, i))
		want = append(want, append([][]float32{}, vectors...))
	}
	require.NoError(t, out.write("]"))
	require.Greater(t, len(out.full), 3)
	var got []byte
	for _, page := range append(out.full, out.last) {
		got = append(got, page...)
	}
	requireSame(t, want, got)
	require.Len(t, string(appendNumber([]byte{','}, -123456780000000000000)), maxNumber)
}

// Token vectors are charged before they are made: a request that can never have
// room is told so, one that has none now may come again, and nothing runs on.
func TestEmbedAllIsChargedBeforehand(t *testing.T) {
	d := startModels(t, withTotal)
	body := func(texts, n int) string {
		inputs := make([]string, texts)
		for i := range inputs {
			inputs[i] = words(n)
		}
		text, err := json.Marshal(object{"inputs": inputs})
		require.NoError(t, err)
		return string(text)
	}
	requireInferenceError(t, d.refused("/embed_all", body(8, limit-2)), 413, "Validation", "limits.total_bytes")
	const one = limit * 32 * (4 + digits)
	require.True(t, d.budget.take(total-one+1), "there is room for one text but for a byte")
	requireInferenceError(t, d.refused("/embed_all", body(1, limit-2)), 429, "Overloaded", "limits.total_bytes")
	require.Equal(t, 200, d.refused("/embed_all", body(1, 3)).status)
	d.budget.Give(total - one + 1)
	a := d.refused("/embed_all", body(6, limit-2))
	require.Equal(t, 200, a.status, a.body)
	d.requireWholeBudget()
}

// Lists are counted before they are decoded, whatever their items are.
func TestTooManyInputs(t *testing.T) {
	d := startModels(t)
	for _, c := range []struct {
		path, before, item, after string
		status                    int
	}{
		{"/embed", `{"inputs":[`, `[]`, `]}`, 413},
		{"/embed_all", `{"inputs":[`, `"a"`, `]}`, 413},
		{"/tokenize", `{"inputs":[`, `""`, `]}`, 413},
		{"/decode", `{"ids":[`, `[]`, `]}`, 413},
		{"/predict", `{"inputs":[`, `[""]`, `]}`, 413},
		{"/v1/rerank", `{"query":"a","documents":[`, `""`, `]}`, 413},
		{"/v1/embeddings", `{"model":"tiny-bert","input":[`, `[]`, `]}`, 400},
	} {
		list := strings.Repeat(c.item+",", maxInputs)
		a := d.refused(c.path, c.before+list+c.item+c.after)
		require.Equal(t, c.status, a.status, "%s: %s", c.path, a.body)
		require.Contains(t, a.body, "1 to 2048 texts, or lists", c.path)

		require.NotContains(t, d.refused(c.path, c.before+strings.TrimSuffix(list, ",")+c.after).body, "1 to 2048", c.path)
	}
	var ids client.Inputs
	require.NoError(t, decode([]byte("["+strings.Repeat("7,", 2*maxInputs)+"7]"), &ids), "the tokens of one text")
	require.Len(t, ids.IDs, 1)
	require.Error(t, decode([]byte(`[1,null]`), &ids))
}

// A query is part of every pair, so it is bounded before there are any.
func TestQueriesOfRerankersAreBounded(t *testing.T) {
	d := startModels(t)
	for path, body := range map[string]string{
		"/rerank":    `{"truncate":true,"texts":["a"],"query":"%s"}`,
		"/v1/rerank": `{"documents":["a"],"query":"%s"}`,
		"/v2/rerank": `{"model":"tiny-judge","documents":["a"],"query":"%s"}`,
	} {
		longest := strings.Repeat("a", maxRerankQuery)
		require.Equal(t, 200, d.refused(path, fmt.Sprintf(body, longest)).status, path)
		a := d.refused(path, fmt.Sprintf(body, longest+"a"))
		require.Equal(t, 413, a.status, path)
		require.Contains(t, a.body, "query", path)
	}
}

// Few bytes of ids can be a long text.
func TestDecodeIsChargedBeforehand(t *testing.T) {
	d := startModels(t, withTotal)
	one, longest := d.fake.models.Tokenizer(), int32(0)
	text := func(id int32) string { s, _ := one.Token(id); return s }
	for id := range int32(one.VocabSize()) {
		if len(text(id)) > len(text(longest)) {
			longest = id
		}
	}
	n := total / 4 / (len(text(longest)) + 1)
	require.Equal(t, 200, d.refused("/decode", fmt.Sprintf(`{"ids":[%d]}`, longest)).status)
	body := fmt.Sprintf(`{"ids":[%s%d]}`, strings.Repeat(fmt.Sprintf("%d,", longest), n), longest)
	require.Less(t, len(body), maxSmallBody, "the body itself has room")
	requireInferenceError(t, d.refused("/decode", body), 429, "Overloaded", "limits.total_bytes")
	d.requireWholeBudget()
}
