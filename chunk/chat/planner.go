// Package chat plans chunks with a chat model behind an OpenAI-compatible API.
package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"sluice/chunk"
	"sluice/document"
)

const (
	attempts   = 3               // that are made for a section
	patience   = 2 * time.Minute // with an attempt
	maxAnswer  = 1 << 20         // bytes of an answer
	maxExcerpt = 400             // bytes of an element that the model is shown
)

// Planner asks a chat model to group the elements of a section. The answer is
// ids alone: text never comes from the model.
type Planner struct {
	URL    string // of the API, such as "http://127.0.0.1:8000/v1"
	Model  string
	Key    string       // "": none is sent
	Client *http.Client // nil: http.DefaultClient
}

const instructions = `Group the elements of a document into chunks for retrieval. Each chunk is about one thing and has at most about 150 words. ` +
	`Keep an element that leads to the next one with it. Use every id except those of headings exactly once; headings may be repeated or left out. ` +
	`Do not group elements that are far apart. Answer with JSON alone: {"chunks": [["h1", "p1"], ["p2", "t1"]]}.`

// Plan asks up to three times, and waits two minutes for each answer at most: what is no plan of the section is said to the
// model with the next question. A status that asking again cannot mend ends it.
func (p Planner) Plan(ctx context.Context, s chunk.Section) ([][]string, error) {
	messages := []message{{"system", instructions}, {"user", describe(s)}}
	var failed error
	for range attempts {
		answer, err := p.ask(ctx, messages)
		var status statusError
		if ctx.Err() != nil || errors.As(err, &status) && status < 500 && status != http.StatusTooManyRequests {
			return nil, fmt.Errorf("the chat model at %s: %w", p.URL, err)
		}
		if err == nil {
			groups, fault := groupsOf(s, answer)
			if fault == nil {
				return groups, nil
			}
			messages = append(messages[:2:2], message{"assistant", answer}, message{"user", "That is wrong: " + fault.Error() + ". Answer again."})
			err = fault
		}
		failed = err
	}
	return nil, fmt.Errorf("the chat model at %s gave no plan in %d attempts: %w", p.URL, attempts, failed)
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// describe lists the elements, a line each.
func describe(s chunk.Section) string {
	var out strings.Builder
	for _, e := range s.Ancestors {
		fmt.Fprintf(&out, "above: %s level %d %q\n", e.ID, e.Level, shortened(e.Text))
	}
	for _, e := range s.Elements {
		if e.Kind == document.Heading {
			fmt.Fprintf(&out, "%s level %d %q\n", e.ID, e.Level, shortened(e.Text))
		} else {
			fmt.Fprintf(&out, "%s %s of %d words %q\n", e.ID, e.Kind, e.Words, shortened(e.Text))
		}
	}
	return out.String()
}

func shortened(s string) string {
	if len(s) <= maxExcerpt {
		return s
	}
	return strings.ToValidUTF8(s[:maxExcerpt], "") + "…"
}

// groupsOf reads an answer and checks it.
func groupsOf(s chunk.Section, answer string) ([][]string, error) {
	var plan struct{ Chunks [][]string }
	if err := json.Unmarshal([]byte(answer), &plan); err != nil {
		return nil, fmt.Errorf("%w: not the JSON that is wanted", chunk.ErrPlan)
	}
	_, err := s.Check(plan.Chunks)
	return plan.Chunks, err
}

// statusError is a status other than 200.
type statusError int

func (s statusError) Error() string { return fmt.Sprintf("status %d", int(s)) }

func (p Planner) ask(ctx context.Context, messages []message) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	body, err := json.Marshal(map[string]any{
		"model": p.Model, "temperature": 0, "messages": messages, "response_format": map[string]string{"type": "json_object"},
	})
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(p.URL, "/")+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	if p.Key != "" {
		request.Header.Set("Authorization", "Bearer "+p.Key)
	}
	client := p.Client
	if client == nil {
		client = http.DefaultClient
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", statusError(response.StatusCode)
	}
	return contentOf(io.LimitReader(response.Body, maxAnswer))
}

func contentOf(body io.Reader) (string, error) {
	var answer struct {
		Choices []struct{ Message message }
	}
	if err := json.NewDecoder(body).Decode(&answer); err != nil {
		return "", fmt.Errorf("reading its answer: %w", err)
	}
	if len(answer.Choices) == 0 {
		return "", errors.New("it answered without a choice")
	}
	return answer.Choices[0].Message.Content, nil
}
