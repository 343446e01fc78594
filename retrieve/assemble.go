package retrieve

import (
	"context"
	"errors"
	"fmt"

	"sluice/chunk"
	"sluice/store"
)

// overlapMerged is the share of the shorter range from which two ranges of one
// document count as the same passage.
const overlapMerged = 0.5

// assemble loads the text of the best candidates, merging near-duplicate
// ranges into the better-ranked one, until k results stand.
func (q *query) assemble(ctx context.Context, candidates []candidate) error {
	defer q.ended("load")
	for _, c := range candidates {
		if len(q.response.Results) == q.plan.K {
			break
		}
		content, err := q.shown(ctx, c)
		if err != nil {
			return err
		}
		if content != nil {
			q.add(q.result(c, content))
		}
	}
	return nil
}

// shown is the document of a candidate that may still be shown; nil means that
// it may not, or that the row is not of its present version.
func (q *query) shown(ctx context.Context, c candidate) (*store.Content, error) {
	content, err := q.content(ctx, c.ordinal)
	if content == nil || !holds(content.Record, c.row) {
		return nil, err
	}
	return content, nil
}

// passage is the text that the row was embedded as.
func passage(content *store.Content, row uint32) string {
	return chunk.EmbedText(content.Text, content.Chunks[row-content.FirstRow])
}

// content loads a document once per query; nil means that it may not be shown
// (any more): it is decided again on the very record the text comes from.
func (q *query) content(ctx context.Context, ordinal uint32) (*store.Content, error) {
	if content, ok := q.loaded[ordinal]; ok {
		return content, nil
	}
	content, err := q.engine.store.Content(ctx, q.at.ID, ordinal, false)
	if errors.Is(err, store.ErrNotFound) {
		q.loaded[ordinal] = nil
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("loading text: %w", err)
	}
	admitted, err := q.admits(content.Record)
	if err != nil {
		return nil, err
	}
	q.loaded[ordinal] = &content
	if !admitted {
		q.loaded[ordinal] = nil
	}
	return q.loaded[ordinal], nil
}

func (q *query) result(c candidate, content *store.Content) Result {
	piece := content.Chunks[c.row-content.FirstRow]
	r := Result{
		Key: content.Key, Version: content.Version, Title: content.Title,
		Start: piece.Start, End: piece.End, Headings: piece.Headings,
		Text: content.Text[piece.Start:piece.End], Score: c.score,
	}
	if q.request.Explain {
		r.Legs = c.legs
	}
	return r
}

// add appends the result unless a better one already covers its passage.
func (q *query) add(r Result) {
	for _, have := range q.response.Results {
		if have.Key == r.Key && nearDuplicate(have, r) {
			return
		}
	}
	q.response.Results = append(q.response.Results, r)
}

func nearDuplicate(a, b Result) bool {
	shared := min(a.End, b.End) - max(a.Start, b.Start)
	shorter := min(a.End-a.Start, b.End-b.Start)
	return shared > 0 && float64(shared) >= overlapMerged*float64(shorter)
}
