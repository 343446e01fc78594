// Package planner plans chunks with a chat model.
package planner

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sluice/chunk"
	"sluice/document"
	"sluice/model/chat"
)

const (
	attempts   = 3               // that are made for a section
	patience   = 2 * time.Minute // with an attempt
	maxExcerpt = 400             // bytes of an element that the model is shown
)

// Planner asks a chat model to group the elements of a section. The answer is
// ids alone: text never comes from the model.
type Planner struct{ Chat *chat.Client }

const instructions = `Group the elements of a document into chunks for retrieval. Each chunk is about one thing and has at most about 150 words. ` +
	`Keep an element that leads to the next one with it. Use every id except those of headings exactly once; headings may be repeated or left out. ` +
	`Do not group elements that are far apart. Answer with JSON alone: {"chunks": [["h1", "p1"], ["p2", "t1"]]}.`

// Plan asks up to three times, and waits two minutes for each answer at most: what is no plan of the section is said to the
// model with the next question. A status that asking again cannot mend ends it.
func (p Planner) Plan(ctx context.Context, s chunk.Section) ([][]string, error) {
	messages := []chat.Message{{Role: "system", Content: instructions}, {Role: "user", Content: describe(s)}}
	var failed error
	for range attempts {
		reply, err := p.ask(ctx, messages)
		if ctx.Err() != nil || chat.Lasting(err) {
			return nil, err
		}
		if err == nil {
			groups, fault := groupsOf(s, reply.Content)
			if fault == nil {
				return groups, nil
			}
			again := "That is wrong: " + fault.Error() + ". Answer again."
			messages = append(messages[:2:2], chat.Message{Role: "assistant", Content: reply.Content}, chat.Message{Role: "user", Content: again})
			err = fault
		}
		failed = err
	}
	return nil, fmt.Errorf("%s gave no plan in %d attempts: %w", p.Chat.Model(), attempts, failed)
}

func (p Planner) ask(ctx context.Context, messages []chat.Message) (chat.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return p.Chat.Ask(ctx, messages)
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
