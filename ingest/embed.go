package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sluice/chunk"
	"sluice/gpu"
	"sluice/index/late"
	"sluice/store"
)

// embedTexts is how many chunks are embedded at a time: the tokens and vectors
// of a document that its deadline will cut off need not all be held. With
// token vectors this many chunks hold about 10 MiB.
const embedTexts = 32

const keepTimeout = 10 * time.Second // for what was embedded to reach the cache

// embedded is what a forward pass gives for a chunk. codes is nil where the
// collection keeps none.
type embedded struct {
	vector []float32
	codes  []byte
	cut    bool // the model did not see its end
}

// Embeddings counts where those of a document's chunks came from.
type Embeddings struct {
	New       int // made by the model
	Reused    int // known, from the cache, or of a text that is there twice
	Tokens    int // of the new
	Truncated int // chunks that the model did not see the end of
}

func (e Embeddings) plus(f Embeddings) Embeddings {
	return Embeddings{e.New + f.New, e.Reused + f.Reused, e.Tokens + f.Tokens, e.Truncated + f.Truncated}
}

// embed fills in the vectors and token codes of a build of a text, with what is
// known, what is cached, and a forward pass for the others. What it makes is known after.
func (w *Writer) embed(ctx context.Context, c store.Collection, text string, b *store.Build, known map[string]embedded) (Embeddings, error) {
	texts := make([]string, len(b.Chunks))
	for i, c := range b.Chunks {
		texts[i] = chunk.EmbedText(text, c)
	}
	if err := w.recall(ctx, c, texts, known); err != nil {
		return Embeddings{}, err
	}
	count, err := w.embedNew(ctx, c, texts, known)
	if err != nil {
		return Embeddings{}, fmt.Errorf("embedding: %w", err)
	}
	b.Dimensions = w.embedder.Info().Dimensions
	for _, text := range texts {
		e := known[text]
		b.Vectors = append(b.Vectors, e.vector...)
		if c.Settings.CodeBits > 0 {
			b.Codes = append(b.Codes, e.codes)
		}
		if e.cut {
			count.Truncated++
		}
	}
	count.Reused = len(texts) - count.New
	return count, nil
}

// key is that of a text of the collection in the embedding cache.
func (w *Writer) key(c store.Collection, text string) store.EmbeddingKey {
	return embeddingKey(w.embedder.Info(), w.coder(c), c.Tenant, text)
}

// recall adds to known what the cache has of the texts.
func (w *Writer) recall(ctx context.Context, c store.Collection, texts []string, known map[string]embedded) error {
	var keys []store.EmbeddingKey
	var asked []string
	for _, text := range texts {
		if _, there := known[text]; !there {
			asked, keys = append(asked, text), append(keys, w.key(c, text))
		}
	}
	var damaged error
	err := w.store.Embeddings(ctx, keys, func(at int, value []byte) {
		e, err := decodeEmbedded(value)
		damaged = errors.Join(damaged, err)
		known[asked[at]] = e
	})
	if err = errors.Join(err, damaged); err != nil {
		return fmt.Errorf("reading the embedding cache: %w", err)
	}
	return nil
}

// coder is that of the collection's token codes; nil: it keeps none.
func (w *Writer) coder(c store.Collection) *late.Coder {
	if c.Settings.CodeBits == 0 {
		return nil
	}
	return w.coders.Of(late.Kind{Dimensions: c.Settings.TokenDimensions(w.embedder.Info().TokenDimensions), Bits: c.Settings.CodeBits})
}

// embedNew adds what known lacks, each text embedded once.
func (w *Writer) embedNew(ctx context.Context, c store.Collection, texts []string, known map[string]embedded) (count Embeddings, err error) {
	var fresh []string
	asked := map[string]bool{}
	for _, text := range texts {
		if _, there := known[text]; !there && !asked[text] {
			asked[text] = true
			fresh = append(fresh, text)
		}
	}
	for part := range slices.Chunk(fresh, embedTexts) {
		tokens, err := w.embedPart(ctx, c, part, known)
		if err != nil {
			return count, err
		}
		count.New += len(part)
		count.Tokens += tokens
	}
	return count, nil
}

// embedPart embeds texts and keeps what it makes in the cache before anything
// else happens, also when nobody waits for it any more: it is paid for.
func (w *Writer) embedPart(ctx context.Context, c store.Collection, texts []string, known map[string]embedded) (tokens int, err error) {
	coder := w.coder(c)
	embeddings, err := w.embedder.Embed(ctx, gpu.Request{
		Texts: texts, Prompt: w.embedder.Info().Prompts.Document(), Priority: gpu.Bulk, TokenVectors: coder != nil,
	})
	if err != nil {
		return 0, err
	}
	entries := make([]store.Embedding, len(texts))
	for i, e := range embeddings {
		made := embedded{vector: e.Vector, cut: e.Truncated}
		if coder != nil {
			made.codes = coder.Encode(e.TokenVectors, e.Special)
		}
		known[texts[i]] = made
		entries[i] = store.Embedding{Key: w.key(c, texts[i]), Value: made.encode()}
		tokens += e.Tokens
	}
	keeping, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTimeout)
	defer cancel()
	return tokens, w.store.KeepEmbeddings(keeping, entries)
}

// known returns what the serving generation has of a document, by what was embedded.
func (w *Writer) known(ctx context.Context, c store.Collection, key string) (map[string]embedded, error) {
	known := map[string]embedded{}
	record, err := w.store.Lookup(ctx, c.Serving().ID, key)
	if errors.Is(err, store.ErrNotFound) {
		return known, nil
	}
	model := c.Settings.Model(w.embedder.Info().Digest)
	if err != nil || record.Model != model {
		return known, err
	}
	content, err := w.store.Content(ctx, record.Collection, record.Ordinal, true)
	if errors.Is(err, store.ErrNotFound) {
		return known, nil
	}
	if err != nil || content.Model != model {
		return known, err
	}
	codes := make([][]byte, len(content.Chunks))
	if c.Settings.CodeBits > 0 {
		err = w.store.Codes(ctx, record.Collection, rowsOf(content.Record), func(at int, its []byte) { codes[at] = bytes.Clone(its) })
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
