package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice/chunk"
	"sluice/store"
)

// estimator counts what a generation would take.
type estimator struct {
	w        *Writer
	c        store.Collection
	g        store.Generation
	estimate Estimate
	seen     map[store.EmbeddingKey]bool
	newBytes int // of the texts to embed
	sample   []string
}

// Estimate says what a reindex by a chunker would take. It reads and cuts every
// document, and embeds a sample of what is new, which the cache keeps.
func (r *Reindexer) Estimate(ctx context.Context, tenant, collection, chunker string) (Estimate, error) {
	of := estimated{tenant, collection, chunker}
	estimate, err := r.estimate(ctx, of)
	if err != nil {
		return Estimate{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.estimates[of] = estimate
	return estimate, nil
}

func (r *Reindexer) estimate(ctx context.Context, of estimated) (Estimate, error) {
	c, err := r.reindexable(ctx, of.tenant, of.collection, of.chunker)
	if err != nil {
		return Estimate{}, err
	}
	e := &estimator{w: r.writer, c: c, g: store.Generation{Chunker: of.chunker}, seen: map[store.EmbeddingKey]bool{}}
	e.estimate.Chunker = of.chunker
	for record, err := range r.writer.store.Scan(ctx, c.Serving().ID, 0) {
		if err != nil {
			return Estimate{}, err
		}
		if err := e.add(ctx, record); err != nil && !errors.Is(err, store.ErrNotFound) {
			return Estimate{}, fmt.Errorf("%w: %w", store.ErrInvalid, err)
		}
	}
	return e.estimate, e.measure(ctx)
}

// add counts a document.
func (e *estimator) add(ctx context.Context, r store.Record) error {
	content, b, err := e.w.rechunked(ctx, r, e.g)
	if err != nil {
		return err
	}
	known, err := e.w.known(ctx, e.c, r.Key)
	if err != nil {
		return err
	}
	texts := make([]string, len(b.Chunks))
	for i, piece := range b.Chunks {
		texts[i] = chunk.EmbedText(content.Text, piece)
	}
	if err := e.w.recall(ctx, e.c, texts, known); err != nil {
		return err
	}
	for _, text := range texts {
		_, there := known[text]
		e.count(text, there)
	}
	e.estimate.Documents++
	e.estimate.Bytes += int64(len(content.Text))
	return nil
}

func (e *estimator) count(text string, there bool) {
	e.estimate.Chunks++
	key := e.w.key(e.c, text)
	if there || e.seen[key] {
		e.estimate.Reused++
		return
	}
	e.seen[key] = true
	e.estimate.New++
	e.newBytes += len(text)
	if len(e.sample) < embedTexts {
		e.sample = append(e.sample, text)
	}
}

// measure embeds the sample, and scales what it took to all that is new.
func (e *estimator) measure(ctx context.Context) error {
	dimensions := e.w.embedder.Info().Dimensions
	e.estimate.Bytes += int64(e.estimate.Chunks) * int64(8*dimensions) // in the store and in the index
	if len(e.sample) == 0 {
		return nil
	}
	began := time.Now()
	count, err := e.w.embedNew(ctx, e.c, e.sample, map[string]embedded{})
	if err != nil {
		return fmt.Errorf("embedding a sample: %w", err)
	}
	took, size := time.Since(began), 0
	for _, text := range e.sample {
		size += len(text)
	}
	share := float64(e.newBytes) / float64(size)
	e.estimate.Tokens = int(float64(count.Tokens) * share)
	e.estimate.Duration = time.Duration(float64(took) * share)
	return nil
}
