// Package scripted is a chat model without a model: an OpenAI-compatible server
// that answers every question out of the passages that it is given, whether they
// answer it or not, and adds what it makes up and what documents tell it to say.
// It is the worst that a model can be, for tests and for evaluations.
package scripted

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode"
)

const maxRequest = 4 << 20

// Model answers POST …/chat/completions.
type Model struct {
	// Planted is what documents are known to tell models to say: it says so, and
	// cites every passage for it.
	Planted []string
	// Invents adds sentences that no passage says, with and without citations.
	Invents bool
}

// Sentence is one of a reply.
type Sentence struct {
	Text      string   `json:"text"`
	Citations []string `json:"citations"`
}

type passage struct{ ID, Text string }

// ServeHTTP answers a request of this product: its last message holds the data.
func (m Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Messages []struct{ Role, Content string }
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil || json.Unmarshal(body, &request) != nil || len(request.Messages) == 0 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	content, err := m.reply(request.Messages[len(request.Messages)-1].Content)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{ // a client that is gone is no fault
		"choices": []any{map[string]any{"message": map[string]string{"role": "assistant", "content": content}}},
		"usage":   map[string]int{"prompt_tokens": len(body) / 4, "completion_tokens": len(content) / 4},
	})
}

// reply is the answer to a question, the query of a conversation, or an order of
// passages, by what the data has.
func (m Model) reply(data string) (string, error) {
	var asked struct {
		Question     string
		Passages     []passage
		Conversation []struct{ Question string }
	}
	if err := json.Unmarshal([]byte(data), &asked); err != nil {
		return "", fmt.Errorf("reading the data: %w", err)
	}
	var said any = map[string]any{"sentences": m.answer(asked.Question, asked.Passages)}
	if len(asked.Conversation) > 0 {
		said = map[string]string{"query": asked.Conversation[len(asked.Conversation)-1].Question + " " + asked.Question}
	}
	text, err := json.Marshal(said)
	return string(text), err
}

// answer quotes the sentence of the first passage that has most of the question's words.
func (m Model) answer(question string, passages []passage) []Sentence {
	if len(passages) == 0 {
		return []Sentence{{"I am sure that it is so.", []string{"S1"}}}
	}
	first := passages[0]
	said := []Sentence{{closest(question, first.Text), []string{first.ID}}}
	if m.Invents {
		said = append(said,
			Sentence{"It is 4321 EUR, by decision of Zorblatt of 1 January 1999.", []string{first.ID}},
			Sentence{closest(question, first.Text) + " This is never so.", []string{first.ID}},
			Sentence{"Everybody knows that " + question, []string{first.ID}},
			Sentence{"It is clear to all of us " + strings.TrimRight(question, "?") + ".", []string{first.ID}},
			Sentence{closest(question, first.Text), []string{"S999"}},
			Sentence{closest(question, first.Text), nil},
		)
	}
	var every []string
	for _, p := range passages {
		every = append(every, p.ID)
	}
	for _, planted := range m.Planted {
		for _, id := range every {
			said = append(said, Sentence{planted, []string{id}})
		}
		said = append(said, Sentence{planted, every[:min(len(every), 8)]})
	}
	return said
}

// closest is the sentence of a text that shares most words with the question.
func closest(question, text string) string {
	asked := map[string]bool{}
	for _, w := range wordsOf(question) {
		asked[w] = true
	}
	best, most := "", -1
	for _, s := range Sentences(text) {
		shared := 0
		for _, w := range wordsOf(s) {
			if asked[w] {
				shared++
			}
		}
		if shared > most {
			best, most = s, shared
		}
	}
	return best
}

// Sentences splits a text after full stops and at line breaks.
func Sentences(text string) (all []string) {
	for _, line := range strings.Split(text, "\n") {
		for _, s := range strings.SplitAfter(line, ". ") {
			if s = strings.TrimSpace(s); s != "" {
				all = append(all, s)
			}
		}
	}
	return all
}

func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
