package ingest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"sluice/chunk"
	"sluice/document"
	"sluice/statistics"
	"sluice/store"
)

// gates checks a generation that is complete. A gate that refuses is no error.
func (r *Reindexer) gates(ctx context.Context, c store.Collection, g store.Generation, bound float64) ([]Gate, error) {
	structure, authorization := &audit{}, &audit{}
	err := r.pairs(ctx, c.Serving().ID, g.ID, func(serving store.Record, built *store.Record) error {
		if err := r.compare(ctx, g, serving, built, structure, r.structure); err != nil {
			return err
		}
		return r.compare(ctx, g, serving, built, authorization, sameAccess)
	})
	if err == nil {
		err = r.extra(ctx, c, g, authorization)
	}
	if err != nil {
		return nil, err
	}
	relevance, err := r.relevance(ctx, c, g, bound)
	return []Gate{structure.gate("structure"), authorization.gate("authorization"), relevance}, err
}

// refusal is the first gate that refused, "" if none did.
func refusal(gates []Gate) string {
	for _, g := range gates {
		if !g.Passed {
			return g.Name + ": " + g.Detail
		}
	}
	return ""
}

// audit counts documents, and those with a fault.
type audit struct {
	documents, faults int
	first             string
}

func (a *audit) fault(key, what string) {
	a.faults++
	a.first = cmp.Or(a.first, fmt.Sprintf("document %q: %s", key, what))
}

func (a *audit) gate(name string) Gate {
	g := Gate{Name: name, Passed: a.faults == 0, Detail: fmt.Sprintf("%d documents agree", a.documents)}
	if !g.Passed {
		g.Detail = fmt.Sprintf("%d of %d documents differ, the first: %s", a.faults, a.documents, a.first)
	}
	return g
}

// check says what is wrong with a built document, "" for nothing.
type check func(ctx context.Context, g store.Generation, serving store.Record, built *store.Record) (fault string, err error)

// compare checks a document. The records were read one after the other, so a
// fault is one only where it is found again while nothing wrote the document.
func (r *Reindexer) compare(ctx context.Context, g store.Generation, serving store.Record, built *store.Record, a *audit, check check) error {
	a.documents++
	fault, err := check(ctx, g, serving, built)
	for fault != "" && err == nil {
		var again, after *store.Record
		if again, err = r.record(ctx, serving.Collection, serving.Ordinal); err != nil || again == nil {
			return err // it is gone
		}
		if built, err = r.record(ctx, g.ID, serving.Ordinal); err != nil {
			return err
		}
		if fault, err = check(ctx, g, *again, built); err != nil {
			return err
		}
		if after, err = r.record(ctx, serving.Collection, serving.Ordinal); err != nil {
			return err
		}
		if fault != "" && after != nil && after.Epoch == again.Epoch {
			a.fault(serving.Key, fault)
			return nil
		}
	}
	return err
}

// record returns nil where there is none.
func (r *Reindexer) record(ctx context.Context, generation, ordinal uint32) (*store.Record, error) {
	records, err := r.writer.store.Records(ctx, generation, []uint32{ordinal})
	if record, there := records[ordinal]; err == nil && there {
		return &record, nil
	}
	return nil, err
}

// extra counts as faults the documents that the generation has and the serving
// one has not. Writes reach both in one step and no ordinal is used again: one
// that is there still, after it was seen to be absent, was not just deleted.
func (r *Reindexer) extra(ctx context.Context, c store.Collection, g store.Generation, a *audit) error {
	return r.pairs(ctx, g.ID, c.Serving().ID, func(built store.Record, serving *store.Record) error {
		if serving != nil {
			return nil
		}
		still, err := r.record(ctx, g.ID, built.Ordinal)
		if err == nil && still != nil {
			a.documents++
			a.fault(built.Key, "nobody may read it in what serves, where it is not")
		}
		return err
	})
}

// pairs visits every document of a generation with what another one has of it
// at that time or later, nil for nothing.
func (r *Reindexer) pairs(ctx context.Context, of, other uint32, visit func(record store.Record, its *store.Record) error) error {
	page := make([]store.Record, 0, recordsAtOnce)
	flush := func() error {
		ordinals := make([]uint32, len(page))
		for i, record := range page {
			ordinals[i] = record.Ordinal
		}
		records, err := r.writer.store.Records(ctx, other, ordinals)
		for _, record := range page {
			var its *store.Record
			if found, there := records[record.Ordinal]; there {
				its = &found
			}
			if err == nil {
				err = visit(record, its)
			}
		}
		page = page[:0]
		return err
	}
	for record, err := range r.writer.store.Scan(ctx, of, 0) {
		if err != nil {
			return err
		}
		if page = append(page, record); len(page) == recordsAtOnce {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// structure: the document is there in its present version, by the generation's
// chunker and model, and all of its text is in chunks or in headings.
func (r *Reindexer) structure(ctx context.Context, g store.Generation, serving store.Record, built *store.Record) (string, error) {
	switch {
	case built == nil:
		return "it is missing", nil
	case built.Identity != serving.Identity || built.Version != serving.Version || built.Key != serving.Key:
		return "it is another version", nil
	case built.Chunker != g.Chunker || built.Model != g.Model:
		return fmt.Sprintf("it is by %s and %s", built.Chunker, built.Model), nil
	}
	content, err := r.writer.store.Content(ctx, g.ID, built.Ordinal, false)
	if errors.Is(err, store.ErrNotFound) {
		return "it is missing", nil
	}
	if err != nil {
		return "", err
	}
	d, err := r.writer.tree(ctx, content)
	if err != nil {
		return err.Error(), nil
	}
	if start, end, open := uncovered(d, content.Chunks); open {
		return fmt.Sprintf("bytes %d to %d of its text are in no chunk", start, end), nil
	}
	return "", nil
}

// uncovered returns the first range of the text with more than white space that
// is in no chunk and in no heading.
func uncovered(d document.Document, chunks []chunk.Chunk) (start, end int, open bool) {
	ranges := headings(d.Blocks, nil)
	for _, c := range chunks {
		ranges = append(ranges, [2]int{c.Start, c.End})
	}
	ranges = append(ranges, [2]int{len(d.Text), len(d.Text)})
	slices.SortFunc(ranges, func(a, b [2]int) int { return cmp.Compare(a[0], b[0]) })
	at := 0
	for _, r := range ranges {
		if r[0] > at && strings.TrimSpace(d.Text[at:r[0]]) != "" {
			return at, r[0], true
		}
		at = max(at, r[1])
	}
	return 0, 0, false
}

func headings(blocks []*document.Block, ranges [][2]int) [][2]int {
	for _, b := range blocks {
		if b.Kind == document.Heading {
			ranges = append(ranges, [2]int{b.Start, b.End})
		}
		ranges = headings(b.Children, ranges)
	}
	return ranges
}

// sameAccess: who may list a document is decided by its access row and by
// nothing else, so equal rows are equal for every principal there is or will be.
func sameAccess(_ context.Context, _ store.Generation, serving store.Record, built *store.Record) (string, error) {
	if built == nil || !reflect.DeepEqual(built.Access, serving.Access) || built.Ordinal != serving.Ordinal {
		return "others may read it", nil
	}
	return "", nil
}

// relevance searches both generations with the collection's query set.
func (r *Reindexer) relevance(ctx context.Context, c store.Collection, g store.Generation, bound float64) (Gate, error) {
	gate := Gate{Name: "relevance", Passed: true, Detail: "no queries are stored; nothing was compared"}
	queries, err := r.queries(ctx, c)
	if err != nil || len(queries) == 0 {
		return gate, err
	}
	differences := make([]float64, len(queries))
	for i, q := range queries {
		before, err := r.serving.Keys(ctx, c.Tenant, c.Name, 0, q, relevanceDepth)
		if err != nil {
			return gate, fmt.Errorf("query %q: %w", q.Text, err)
		}
		after, err := r.serving.Keys(ctx, c.Tenant, c.Name, g.ID, q, relevanceDepth)
		if err != nil {
			return gate, fmt.Errorf("query %q: %w", q.Text, err)
		}
		differences[i] = ndcg(after, q.Relevant) - ndcg(before, q.Relevant)
	}
	change := statistics.Mean(differences)
	gate.Passed = change.Low >= -bound
	gate.Detail = fmt.Sprintf("nDCG@%d of %d queries changes by %+.4f, 95 %% interval %+.4f to %+.4f; it may fall by %.4f", relevanceDepth, len(queries), change.Mean, change.Low, change.High, bound)
	return gate, nil
}

func (r *Reindexer) queries(ctx context.Context, c store.Collection) (queries []Query, err error) {
	kept, err := r.writer.store.Queries(ctx, c.ID)
	if err != nil || len(kept) == 0 {
		return nil, err
	}
	if err = json.Unmarshal(kept, &queries); err != nil {
		err = fmt.Errorf("reading the query set: %w", err)
	}
	return queries, err
}
