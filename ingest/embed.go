package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sluice/chunk"
	"sluice/gpu"
	"sluice/store"
)

// embedTexts is how many chunks are embedded at a time: the tokens and vectors
// of a document that its deadline will cut off need not all be held. With
// token vectors this many chunks hold about 10 MiB.
const embedTexts = 32

// embedded is what a forward pass gives for a chunk. codes is nil where the
// collection keeps none.
type embedded struct {
	vector []float32
	codes  []byte
	cut    bool // the model did not see its end
}

// embed fills in vectors and token codes, reusing those of unchanged chunks of
// the version before, and returns how many chunks were cut.
func (w *Writer) embed(ctx context.Context, c store.Collection, v *store.Version) (truncated int, err error) {
	texts := make([]string, len(v.Chunks))
	for i, c := range v.Chunks {
		texts[i] = chunk.EmbedText(v.Text, c)
	}
	known, err := w.known(ctx, c, v)
	if err != nil {
		return 0, err
	}
	if err := w.embedNew(ctx, texts, known, c.Settings.TokenCodes); err != nil {
		return 0, fmt.Errorf("embedding: %w", err)
	}
	v.Dimensions = w.embedder.Info().Dimensions
	for _, text := range texts {
		e := known[text]
		v.Vectors = append(v.Vectors, e.vector...)
		if c.Settings.TokenCodes {
			v.Codes = append(v.Codes, e.codes)
		}
		if e.cut {
			truncated++
		}
	}
	return truncated, nil
}

// embedNew adds what known lacks, each text embedded once.
func (w *Writer) embedNew(ctx context.Context, texts []string, known map[string]embedded, codes bool) error {
	var fresh []string
	for _, text := range texts {
		if _, there := known[text]; !there {
			known[text] = embedded{}
			fresh = append(fresh, text)
		}
	}
	for part := range slices.Chunk(fresh, embedTexts) {
		embeddings, err := w.embedder.Embed(ctx, gpu.Request{
			Texts: part, Prompt: w.embedder.Info().Prompts.Document(), Priority: gpu.Bulk, TokenVectors: codes,
		})
		if err != nil {
			return err
		}
		for i, e := range embeddings {
			made := embedded{vector: e.Vector, cut: e.Truncated}
			if codes {
				made.codes = w.coder.Encode(e.TokenVectors, e.Special)
			}
			known[part[i]] = made
		}
	}
	return nil
}

// known returns what the present version has, by what was embedded.
func (w *Writer) known(ctx context.Context, c store.Collection, v *store.Version) (map[string]embedded, error) {
	known := map[string]embedded{}
	record, err := w.store.Lookup(ctx, c.ID, v.Key)
	if errors.Is(err, store.ErrNotFound) {
		return known, nil
	}
	if err != nil || record.Model != v.Model {
		return known, err
	}
	content, err := w.store.Content(ctx, c.ID, record.Ordinal, true)
	if errors.Is(err, store.ErrNotFound) {
		return known, nil
	}
	if err != nil || content.Model != v.Model {
		return known, err
	}
	var codes map[uint32][]byte
	if c.Settings.TokenCodes {
		codes, err = w.store.Codes(ctx, c.ID, rowsOf(content.Record))
	}
	for i, piece := range content.Chunks {
		its, coded := codes[content.FirstRow+uint32(i)]
		if coded == c.Settings.TokenCodes {
			known[chunk.EmbedText(content.Text, piece)] = embedded{vector: content.Vectors[i*content.Dimensions : (i+1)*content.Dimensions], codes: its}
		}
	}
	return known, err
}

func rowsOf(r store.Record) []uint32 {
	rows := make([]uint32, r.Rows)
	for i := range rows {
		rows[i] = r.FirstRow + uint32(i)
	}
	return rows
}
