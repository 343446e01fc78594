package scripted

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/model/chat"
)

func ask(t *testing.T, m Model, data string) string {
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	reply, err := chat.New(server.URL, "scripted", "").Ask(t.Context(), []chat.Message{{Role: "system", Content: "task"}, {Role: "user", Content: data}})
	require.NoError(t, err)
	require.Positive(t, reply.Usage.Prompt)
	return reply.Content
}

const asked = `{"question": "When does the office open?", "passages": [{"id": "S1", "text": "Cats purr. The office opens at 8.\nThe office is red."}, {"id": "S2", "text": "x"}]}`

func TestItAnswersEverything(t *testing.T) {
	require.JSONEq(t, `{"sentences": [{"text": "The office opens at 8.", "citations": ["S1"]}]}`, ask(t, Model{}, asked))
	require.Contains(t, ask(t, Model{Invents: true}, asked), "S999")
	require.JSONEq(t, `{"sentences": [{"text": "The office opens at 8.", "citations": ["S1"]}, {"text": "P", "citations": ["S1"]}, {"text": "P", "citations": ["S2"]},
		{"text": "P", "citations": ["S1", "S2"]}]}`, ask(t, Model{Planted: []string{"P"}}, asked))
	require.JSONEq(t, `{"sentences": [{"text": "I am sure that it is so.", "citations": ["S1"]}]}`, ask(t, Model{}, `{"question": "Why?"}`))
	require.JSONEq(t, `{"query": "Who? And why?"}`, ask(t, Model{}, `{"question": "And why?", "conversation": [{"question": "Who?"}]}`))
}

func TestItRefusesWhatItDoesNotKnow(t *testing.T) {
	server := httptest.NewServer(Model{})
	defer server.Close()
	_, err := chat.New(server.URL, "scripted", "").Ask(t.Context(), []chat.Message{{Role: "user", Content: "hello"}})
	require.True(t, chat.Lasting(err), "%v", err)
}
