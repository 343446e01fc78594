package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"sluice/document"
	"sluice/store"
)

// errSendAgain: the document's tree was not kept, and its text alone does not give it.
var errSendAgain = errors.New("it was written before documents' trees were kept; send it again")

// tree is a stored document as it was parsed.
func (w *Writer) tree(ctx context.Context, c store.Content) (document.Document, error) {
	parsed, err := w.store.Parsed(ctx, c.Collection, c.Ordinal)
	if err != nil {
		return document.Document{}, err
	}
	if parsed != nil {
		return document.Decode(c.Text, parsed)
	}
	d, err := document.Parse(c.Format, []byte(c.Text))
	if err != nil || d.Text != c.Text || c.Format == "html" {
		return d, errSendAgain
	}
	return d, nil
}

// rechunked is what a generation is to have of a stored document; it lacks its
// vectors. store.ErrNotFound: the document is gone, or no longer that version.
func (w *Writer) rechunked(ctx context.Context, r store.Record, g store.Generation) (store.Content, store.Build, error) {
	content, err := w.store.Content(ctx, r.Collection, r.Ordinal, false)
	if err != nil {
		return content, store.Build{}, err
	}
	d, err := w.tree(ctx, content)
	if err == nil {
		var b store.Build
		if b, err = w.chunked(ctx, d, content.Title, g); err == nil {
			return content, b, nil
		}
	}
	// Text and tree are read one after the other: a write in between parts them.
	now, gone := w.store.Lookup(ctx, r.Collection, r.Key)
	if gone == nil && (now.Version != content.Version || now.Ordinal != content.Ordinal) {
		gone = store.ErrNotFound
	}
	return content, store.Build{}, fmt.Errorf("document %q: %w", r.Key, cmp.Or(gone, err))
}

// rebuild adds a stored document to a generation; built false: it changed
// meanwhile, and is there by the write that changed it, or is gone.
func (w *Writer) rebuild(ctx context.Context, c store.Collection, r store.Record, g store.Generation) (count Embeddings, built bool, err error) {
	content, b, err := w.rechunked(ctx, r, g)
	if errors.Is(err, store.ErrNotFound) {
		return count, false, nil
	}
	if err != nil {
		return count, false, err
	}
	known, err := w.known(ctx, c, r.Key)
	if err != nil {
		return count, false, err
	}
	if count, err = w.embed(ctx, c, content.Text, &b, known); err != nil {
		return count, false, err
	}
	built, err = w.store.Build(ctx, c.ID, content.Record, b)
	return count, built, err
}
