package planner

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/chunk"
	"sluice/document"
	"sluice/model/chat"
)

// script answers with its lines, one a request; a number is a status.
func script(t *testing.T, answers ...any) (Planner, *[]map[string]any) {
	t.Helper()
	var asked []map[string]any
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer key" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		asked = append(asked, body)
		switch answer := answers[min(len(asked), len(answers))-1].(type) {
		case int:
			w.WriteHeader(answer)
		case string:
			json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": map[string]string{"role": "assistant", "content": answer}}}})
		}
	}))
	t.Cleanup(server.Close)
	return Planner{chat.New(server.URL+"/v1", "m", "key")}, &asked
}

func parsed(t *testing.T) document.Document {
	t.Helper()
	doc, err := document.Parse("markdown", []byte("# A\n\none\n\ntwo\n\n## B\n\nthree\n\n|k|v|\n|-|-|\n|1|2|\n"))
	require.NoError(t, err)
	return doc
}

func texts(doc document.Document, chunks []chunk.Chunk) []string {
	var all []string
	for _, c := range chunks {
		all = append(all, chunk.EmbedText(doc.Text, c))
	}
	return all
}

func TestPlan(t *testing.T) {
	doc := parsed(t)
	p, asked := script(t, `{"chunks":[["h1","p1","p2"],["h2","p3","t1"]]}`)
	chunks, err := chunk.Planned(t.Context(), doc, p)
	require.NoError(t, err)
	require.Equal(t, []string{"A\none\n\ntwo", "A > B\nthree\n\nk: 1; v: 2."}, texts(doc, chunks))
	require.Len(t, *asked, 1)
	require.EqualValues(t, 0, (*asked)[0]["temperature"])
	require.Equal(t, "m", (*asked)[0]["model"])
}

// TestWrongPlansAreAskedForAgain: an unknown id, an id twice, no JSON, a fault of the server.
func TestWrongPlansAreAskedForAgain(t *testing.T) {
	doc := parsed(t)
	right := `{"chunks":[["p1"],["p2"],["p3"],["t1"]]}`
	for _, wrong := range []any{`{"chunks":[["p9"]]}`, `{"chunks":[["p1"],["p1"]]}`, `no JSON`, 503, 429} {
		p, asked := script(t, wrong, right)
		chunks, err := chunk.Planned(t.Context(), doc, p)
		require.NoError(t, err, "%v", wrong)
		require.Len(t, chunks, 4)
		require.Len(t, *asked, 2)
	}
	p, asked := script(t, `no JSON`)
	_, err := chunk.Planned(t.Context(), doc, p)
	require.ErrorIs(t, err, chunk.ErrPlan)
	require.ErrorIs(t, err, chunk.ErrPlanner)
	require.Len(t, *asked, attempts)
	p, asked = script(t, 401)
	_, err = chunk.Planned(t.Context(), doc, p)
	require.ErrorContains(t, err, "status 401")
	require.Len(t, *asked, 1)
}

// TestMissingIDsAreAChunk: what the model forgets is not lost.
func TestMissingIDsAreAChunk(t *testing.T) {
	doc := parsed(t)
	p, _ := script(t, `{"chunks":[["h1","p1"],["t1"]]}`)
	chunks, err := chunk.Planned(t.Context(), doc, p)
	require.NoError(t, err)
	require.Equal(t, []string{"A\none", "A\ntwo", "A > B\nthree", "A > B\nk: 1; v: 2."}, texts(doc, chunks))
}

// hung is a server that takes requests and never answers.
type hung struct{ asked int }

func (h *hung) RoundTrip(r *http.Request) (*http.Response, error) {
	h.asked++
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestNoAnswerIsNotWaitedForForEver: the planner's own patience is its failure,
// the end of the caller's is the caller's.
func TestNoAnswerIsNotWaitedForForEver(t *testing.T) {
	doc := parsed(t)
	synctest.Test(t, func(t *testing.T) {
		h := &hung{}
		p := Planner{chat.New("http://planner.test/v1", "m", "").Over(h)}
		began := time.Now()
		_, err := chunk.Planned(t.Context(), doc, p)
		require.ErrorIs(t, err, chunk.ErrPlanner)
		require.Equal(t, attempts*patience, time.Since(began))
		require.Equal(t, attempts, h.asked)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = chunk.Planned(ctx, doc, p)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, chunk.ErrPlanner)
	})
}

// TestLongAnswersAreNotRead: not beyond a mebibyte.
func TestLongAnswersAreNotRead(t *testing.T) {
	p, asked := script(t, `{"chunks":[`+strings.Repeat(" ", 1<<20)+`["p1"],["p2"],["p3"],["t1"]]}`)
	_, err := chunk.Planned(t.Context(), parsed(t), p)
	require.ErrorIs(t, err, chunk.ErrPlanner)
	require.Len(t, *asked, attempts)
}
