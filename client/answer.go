package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// AnswerRequest is the body of POST …/answer.
type AnswerRequest struct {
	Question string `json:"question"`
	History  []Turn `json:"history,omitempty"` // of the conversation, oldest first; at most 32 turns, 32 KiB
	Scope    *Scope `json:"scope,omitempty"`
}

// Turn is a question and what was answered to it.
type Turn struct {
	Question string `json:"question"`
	Answer   string `json:"answer,omitempty"`
}

// Answer answers it.
type Answer struct {
	Outcome   string           `json:"outcome"`          // "answered"; "no_answer", with a reason and no evidence; "evidence", where no model could be asked
	Reason    string           `json:"reason,omitempty"` // "nothing_found", "not_mentioned", "declined", "unsupported"
	Sentences []AnswerSentence `json:"sentences"`
	Passages  []AnswerPassage  `json:"passages"` // that are cited; with "evidence", all
	Queries   []string         `json:"queries"`  // that were searched, the question last
	Dropped   map[string]int   `json:"dropped"`  // sentences of the model that did not stand, by why
	Degraded  []string         `json:"degraded"`
	Counts    Counts           `json:"counts"`
	Model     string           `json:"model,omitempty"`
	Usage     AnswerUsage      `json:"usage"`
}

// AnswerSentence is one sentence with the ids of the passages that say it.
type AnswerSentence struct {
	Text      string   `json:"text"`
	Citations []string `json:"citations"`
}

// AnswerPassage is the bytes [Start, End) of a document's normalised text.
type AnswerPassage struct {
	ID       string   `json:"id"` // S1, S2, …
	Document string   `json:"document"`
	Version  uint32   `json:"version"`
	Title    string   `json:"title"`
	Start    int      `json:"start"`
	End      int      `json:"end"`
	Headings []string `json:"headings"`
	Text     string   `json:"text"`
}

// AnswerUsage is what the model took. Cost is in the currency of the daemon's prices.
type AnswerUsage struct {
	Calls            int     `json:"calls"`
	ContextTokens    int     `json:"context_tokens"` // of the passages that it was shown, as the daemon counts them; 0 if it was not asked for sentences
	PromptTokens     int     `json:"prompt_tokens"`
	CompletionTokens int     `json:"completion_tokens"`
	Cost             float64 `json:"cost"`
}

// AnswerEvent is one event of a streamed answer: queries, then a sentence for
// each that stands, then the answer as a whole, or a problem. One field is set.
type AnswerEvent struct {
	Queries  []string        `json:"queries,omitempty"`
	Sentence *AnswerSentence `json:"sentence,omitempty"`
	Answer   *Answer         `json:"answer,omitempty"`
	Problem  *Problem        `json:"problem,omitempty"`
}

// Answer asks a question of what the principal may read.
func (c *Client) Answer(ctx context.Context, collection string, r AnswerRequest) (Answer, error) {
	var answer Answer
	err := c.call(ctx, http.MethodPost, collectionPath(collection, "answer"), r, &answer)
	return answer, err
}

// StreamAnswer does so too, and hands each event to onEvent on the way.
func (c *Client) StreamAnswer(ctx context.Context, collection string, r AnswerRequest, onEvent func(AnswerEvent) error) (Answer, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return Answer{}, fmt.Errorf("encoding the request: %w", err)
	}
	request, err := c.request(ctx, http.MethodPost, collectionPath(collection, "answer"), strings.NewReader(string(body)))
	if err != nil {
		return Answer{}, err
	}
	request.Header.Set("Content-Type", jsonType)
	request.Header.Set("Accept", "text/event-stream")
	response, err := c.http.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		return Answer{}, problemOf(response)
	}
	return answerOf(bufio.NewScanner(response.Body), onEvent)
}

// answerOf reads events until the one that is the answer.
func answerOf(lines *bufio.Scanner, onEvent func(AnswerEvent) error) (Answer, error) {
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		data, found := strings.CutPrefix(lines.Text(), "data: ")
		if !found {
			continue
		}
		var e AnswerEvent
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return Answer{}, fmt.Errorf("reading an event: %w", err)
		}
		if e.Problem != nil {
			return Answer{}, e.Problem
		}
		if err := onEvent(e); err != nil {
			return Answer{}, err
		}
		if e.Answer != nil {
			return *e.Answer, nil
		}
	}
	return Answer{}, errors.Join(lines.Err(), errCut)
}

const maxAnswer = 16 << 20

var errCut = errors.New("the stream ended without an answer")
