// Package chat asks a chat model behind an OpenAI-compatible API.
package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	maxReply = 1 << 20 // bytes of a reply on the wire
	maxAfter = time.Hour
)

// ErrReply marks what is no reply of a chat model.
var ErrReply = errors.New("not a chat model's reply")

// Client asks one model. It is safe for concurrent use.
type Client struct {
	url   string
	model string
	key   string
	http  *http.Client
}

// New returns a client of the model at the API, such as
// "http://127.0.0.1:8000/v1". An empty key is not sent.
func New(url, model, key string) *Client {
	return &Client{
		url: strings.TrimSuffix(url, "/") + "/chat/completions", model: model, key: key,
		// a key goes to nobody else
		http: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
}

// Over is the same client over another transport.
func (c *Client) Over(transport http.RoundTripper) *Client {
	other, client := *c, *c.http
	client.Transport = transport
	other.http = &client
	return &other
}

// Model is the model's name.
func (c *Client) Model() string { return c.model }

// Message is one of a conversation. Role: system, user or assistant.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Reply is what the model says, and what it took.
type Reply struct {
	Content string
	Usage   Usage
}

// JSON is the content without the code fence that some models put around it.
func (r Reply) JSON() string {
	text := strings.TrimSpace(r.Content)
	if inner, fenced := strings.CutPrefix(text, "```"); fenced {
		inner = strings.TrimPrefix(inner, "json")
		return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(inner), "```"))
	}
	return text
}

// Usage is tokens, as the server counts them; 0 where it does not.
type Usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
}

// StatusError is an answer with a status other than 200.
type StatusError struct {
	Status int
	After  time.Duration // when to ask again; 0: the server does not say
}

func (e *StatusError) Error() string { return fmt.Sprintf("status %d", e.Status) }

// Lasting reports an error that asking again cannot mend: a refused request.
func Lasting(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Status < 500 &&
		status.Status != http.StatusTooManyRequests && status.Status != http.StatusRequestTimeout
}

// Ask asks once, for JSON, at temperature 0.
func (c *Client) Ask(ctx context.Context, messages []Message) (Reply, error) {
	response, err := c.post(ctx, map[string]any{
		"model": c.model, "temperature": 0, "messages": messages, "response_format": map[string]string{"type": "json_object"},
	})
	if err != nil {
		return Reply{}, fmt.Errorf("asking %s: %w", c.model, err)
	}
	defer response.Body.Close()
	return replyOf(response.Body)
}

func (c *Client) post(ctx context.Context, body any) (*http.Response, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if c.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, &StatusError{Status: response.StatusCode, After: after(response.Header.Get("Retry-After"))}
	}
	return response, nil
}

func after(header string) time.Duration {
	seconds, err := strconv.Atoi(header)
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxAfter)
}

func replyOf(body io.Reader) (Reply, error) {
	text, err := io.ReadAll(io.LimitReader(body, maxReply+1))
	if err != nil {
		return Reply{}, fmt.Errorf("reading the model's reply: %w", err)
	}
	if len(text) > maxReply {
		return Reply{}, fmt.Errorf("%w: longer than %d bytes", ErrReply, maxReply)
	}
	var reply struct {
		Choices []struct{ Message Message }
		Usage   Usage
	}
	if err := json.Unmarshal(text, &reply); err != nil {
		return Reply{}, fmt.Errorf("%w: %w", ErrReply, err)
	}
	if len(reply.Choices) == 0 {
		return Reply{}, fmt.Errorf("%w: it has no choice", ErrReply)
	}
	return Reply{Content: reply.Choices[0].Message.Content, Usage: reply.Usage}, nil
}
