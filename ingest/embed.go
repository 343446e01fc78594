package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"sluice/chunk"
	"sluice/gpu"
	"sluice/index/late"
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
	if err := w.embedNew(ctx, texts, known, w.coder(c)); err != nil {
		return 0, fmt.Errorf("embedding: %w", err)
	}
	v.Dimensions = w.embedder.Info().Dimensions
	for _, text := range texts {
		e := known[text]
		v.Vectors = append(v.Vectors, e.vector...)
		if c.Settings.CodeBits > 0 {
			v.Codes = append(v.Codes, e.codes)
		}
		if e.cut {
			truncated++
		}
	}
	return truncated, nil
}

// coder is that of the collection's token codes; nil: it keeps none.
func (w *Writer) coder(c store.Collection) *late.Coder {
	if c.Settings.CodeBits == 0 {
		return nil
	}
	return w.coders.Of(late.Kind{Dimensions: c.Settings.TokenDimensions(w.embedder.Info().Dimensions), Bits: c.Settings.CodeBits})
}

// embedNew adds what known lacks, each text embedded once. No coder: no codes.
func (w *Writer) embedNew(ctx context.Context, texts []string, known map[string]embedded, coder *late.Coder) error {
	var fresh []string
	for _, text := range texts {
		if _, there := known[text]; !there {
			known[text] = embedded{}
			fresh = append(fresh, text)
		}
	}
	for part := range slices.Chunk(fresh, embedTexts) {
		embeddings, err := w.embedder.Embed(ctx, gpu.Request{
			Texts: part, Prompt: w.embedder.Info().Prompts.Document(), Priority: gpu.Bulk, TokenVectors: coder != nil,
		})
		if err != nil {
			return err
		}
		for i, e := range embeddings {
			made := embedded{vector: e.Vector, cut: e.Truncated}
			if coder != nil {
				made.codes = coder.Encode(e.TokenVectors, e.Special)
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
	codes := make([][]byte, len(content.Chunks))
	if c.Settings.CodeBits > 0 {
		err = w.store.Codes(ctx, c.ID, rowsOf(content.Record), func(at int, its []byte) { codes[at] = bytes.Clone(its) })
	}
	for i, piece := range content.Chunks {
		if (codes[i] != nil) == (c.Settings.CodeBits > 0) {
			known[chunk.EmbedText(content.Text, piece)] = embedded{vector: content.Vectors[i*content.Dimensions : (i+1)*content.Dimensions], codes: codes[i]}
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
