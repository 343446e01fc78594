package chat

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func serve(t *testing.T, handler http.HandlerFunc) *Client {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return New(server.URL+"/v1/", "m", "key")
}

func TestAsk(t *testing.T) {
	var asked map[string]any
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/v1/chat/completions", r.URL.Path)
		require.Equal(t, "Bearer key", r.Header.Get("Authorization"))
		require.NoError(t, json.NewDecoder(r.Body).Decode(&asked))
		w.Write([]byte(`{"choices": [{"message": {"role": "assistant", "content": "{}"}}], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}, "more": 1}`))
	})
	reply, err := c.Ask(t.Context(), []Message{{"user", "hello"}})
	require.NoError(t, err)
	require.Equal(t, Reply{Content: "{}", Usage: Usage{Prompt: 7, Completion: 3}}, reply)
	require.Equal(t, map[string]any{
		"model": "m", "temperature": 0.0, "response_format": map[string]any{"type": "json_object"},
		"messages": []any{map[string]any{"role": "user", "content": "hello"}},
	}, asked)
}

func TestWhatIsNoReply(t *testing.T) {
	for name, body := range map[string]string{
		"nothing": "", "a page": "<html>", "no choice": `{"choices": []}`, "wrong types": `{"choices": [{"message": {"content": 3}}]}`, "huge": strings.Repeat(" ", maxReply+1),
	} {
		_, err := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(body)) }).Ask(t.Context(), nil)
		require.ErrorIs(t, err, ErrReply, name)
		require.False(t, Lasting(err), name)
	}
}

func TestStatuses(t *testing.T) {
	for status, lasting := range map[int]bool{400: true, 401: true, 404: true, 307: true, 408: false, 429: false, 500: false, 503: false} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(status)
		})
		_, err := c.Ask(t.Context(), nil)
		var e *StatusError
		require.ErrorAs(t, err, &e)
		require.Equal(t, StatusError{status, 7 * time.Second}, *e)
		require.Equal(t, lasting, Lasting(err), status)
	}
	require.Zero(t, after("soon"))
	require.Zero(t, after("-1"))
	require.Equal(t, maxAfter, after("999999999"))
}

func TestNoKeyIsSentWhereThereIsNone(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.Empty(t, r.Header["Authorization"])
	}))
	defer server.Close()
	_, err := New(server.URL, "m", "").Ask(t.Context(), nil)
	require.Error(t, err)
}
