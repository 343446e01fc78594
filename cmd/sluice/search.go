package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"sluice/client"
)

const maxResults = 100 // of the API

type searchCommand struct {
	remote
	Query      string `arg:"" optional:"" help:"The question."`
	Collection string `required:"" short:"c" help:"Collection to search."`
	K          int    `short:"k" default:"5" help:"How many passages, at most 100."`
	Vectors    string `type:"existingfile" help:"JSON file with vector, vectors or both of the question, as the API takes them."`
	Strategy   string `help:"sparse, dense, late (interaction with every passage), hybrid (sparse and dense), hybrid-late (both, then late interaction; the default), hybrid-rerank (both, then the cross-encoder) or auto (sparse, hybrid or hybrid-late, by the question)."`
	Fusion     string `help:"How the hybrid strategies merge: score (weighted scores, the default) or rrf (reciprocal ranks)."`
	Explain    bool   `help:"Show rank and score in each leg and in late interaction."`
	JSON       bool   `help:"Print the response as JSON."`
}

func (c searchCommand) Run(ctx context.Context) error {
	if c.K < 1 || c.K > maxResults {
		return fmt.Errorf("-k %d: give a number of passages from 1 to %d", c.K, maxResults)
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	vectors, err := readQueryVectors(c.Vectors)
	if err != nil {
		return err
	}
	response, err := api.Search(ctx, c.Collection, client.SearchRequest{
		Query: c.Query, Vector: vectors.Vector, Vectors: vectors.Vectors, K: c.K, Strategy: c.Strategy, Fusion: c.Fusion, Explain: c.Explain,
	})
	if err != nil {
		return c.hint(err)
	}
	if c.JSON {
		return printJSON(os.Stdout, response)
	}
	printResults(os.Stdout, response)
	return nil
}

// printJSON is what the commands' --json prints.
func printJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

func printResults(w io.Writer, r client.SearchResponse) {
	for i, hit := range r.Results {
		fmt.Fprintf(w, "%2d. %s  (%s, version %d, score %.4f)\n", i+1, heading(hit), hit.Document, hit.Version, hit.Score)
		fmt.Fprintf(w, "    %s\n", excerpt(hit.Text, 200))
		if hit.Explain != nil {
			printLegs(w, hit.Explain.Legs)
		}
	}
	if len(r.Results) == 0 {
		fmt.Fprintln(w, "nothing found that you may read")
	}
	if len(r.Degraded) > 0 {
		fmt.Fprintln(w, "degraded:", strings.Join(r.Degraded, ", "))
	}
}

// heading says where a passage is; plain text has no headings and no title.
func heading(hit client.SearchResult) string {
	if len(hit.Headings) > 0 {
		return strings.Join(hit.Headings, " > ")
	}
	return cmp.Or(hit.Title, hit.Document)
}

func printLegs(w io.Writer, legs map[string]client.LegExplain) {
	var parts []string
	for name, leg := range legs {
		parts = append(parts, fmt.Sprintf("%s: rank %d, score %.4f", name, leg.Rank, leg.Score))
	}
	slices.Sort(parts)
	fmt.Fprintf(w, "    %s\n", strings.Join(parts, "; "))
}

// excerpt is the text on one line, cut at a word within limit runes.
func excerpt(text string, limit int) string {
	line := strings.Join(strings.Fields(text), " ")
	runes := []rune(line)
	if len(runes) <= limit {
		return line
	}
	cut := string(runes[:limit])
	if space := strings.LastIndexByte(cut, ' '); space > 0 {
		cut = cut[:space]
	}
	return cut + " …"
}
