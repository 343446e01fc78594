package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"sluice/client"
)

type answerCommand struct {
	remote
	Question   string `arg:"" help:"The question."`
	Collection string `required:"" short:"c" help:"Collection to ask."`
	JSON       bool   `help:"Print the answer as JSON."`
}

func (c answerCommand) Run(ctx context.Context) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	answer, err := api.Answer(ctx, c.Collection, client.AnswerRequest{Question: c.Question})
	if err != nil {
		return c.hint(err)
	}
	if c.JSON {
		return printJSON(os.Stdout, answer)
	}
	printAnswer(os.Stdout, answer)
	return nil
}

// refusals says why there is no answer.
var refusals = map[string]string{
	"nothing_found": "nothing is found that you may read",
	"not_mentioned": "no passage that you may read mentions what the question names",
	"declined":      "the passages that you may read do not answer it",
	"unsupported":   "what the model said is not in the passages that you may read",
}

func printAnswer(w io.Writer, a client.Answer) {
	if a.Outcome == "no_answer" {
		fmt.Fprintln(w, "no answer:", refusals[a.Reason])
	}
	if len(a.Sentences)+len(a.Passages) == 0 && a.Outcome == "evidence" {
		fmt.Fprintln(w, "nothing found that you may read")
	}
	for _, s := range a.Sentences {
		fmt.Fprintf(w, "%s [%s]\n", s.Text, strings.Join(s.Citations, ", "))
	}
	if len(a.Sentences) > 0 {
		fmt.Fprintln(w)
	}
	for _, p := range a.Passages {
		fmt.Fprintf(w, "%s. %s  (%s, version %d)\n", p.ID, heading(client.SearchResult{Headings: p.Headings, Title: p.Title, Document: p.Document}), p.Document, p.Version)
		fmt.Fprintf(w, "    %s\n", excerpt(p.Text, 200))
	}
	if a.Outcome == "evidence" && !slices.Contains(a.Degraded, "answer_unavailable") {
		fmt.Fprintln(w, "These are the passages alone: the daemon has no chat model (its setting answer).")
	}
	if len(a.Degraded) > 0 {
		fmt.Fprintln(w, "degraded:", strings.Join(a.Degraded, ", "))
	}
}
