package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"sluice/chunk"
	"sluice/document"
	"sluice/filter"
	"sluice/gpu"
	"sluice/index/late"
	"sluice/index/text"
	"sluice/store"
)

// Serving is what searches run on.
type Serving interface {
	// Await blocks until searches see everything up to the epoch.
	Await(ctx context.Context, epoch uint64) error
	// CollectionID is the number of a collection, where searches know it already.
	CollectionID(tenant, collection string) (id uint32, known bool)
	// CheckDocument says why the policies in force could never permit a document
	// with these attributes, or nil.
	CheckDocument(filter.Attributes) error
}

// Writer writes documents. Safe for concurrent use.
type Writer struct {
	store    store.Store
	embedder gpu.Embedder
	coders   *late.Coders
	serving  Serving
	parse    Parse
	planner  chunk.Planner // nil: rules
}

// Parse parses raw as format.
type Parse func(ctx context.Context, format string, raw []byte) (document.Document, error)

// parsePlain knows the formats that need no engine.
func parsePlain(_ context.Context, format string, raw []byte) (document.Document, error) {
	return document.Parse(format, raw)
}

// NewWriter returns a Writer.
func NewWriter(st store.Store, embedder gpu.Embedder, serving Serving) *Writer {
	return &Writer{st, embedder, late.NewCoders(), serving, parsePlain, nil}
}

// Parsing makes the Writer parse by p. It is called before the first write.
func (w *Writer) Parsing(p Parse) *Writer {
	w.parse = p
	return w
}

// Planning makes the Writer ask p how to cut, where the chunker is plan/1. It is
// called before the first write.
func (w *Writer) Planning(p chunk.Planner) *Writer {
	w.planner = p
	return w
}

// Outcome is a write's receipt and how many of its chunks are longer than what
// the model sees.
type Outcome struct {
	store.Receipt
	Truncated int
}

// CreateCollection creates it or returns the one that exists.
func (w *Writer) CreateCollection(ctx context.Context, tenant, name string, settings store.Settings) (store.Collection, bool, error) {
	settings.Analyzer = cmp.Or(settings.Analyzer, text.Default)
	if _, err := text.New(settings.Analyzer); err != nil {
		return store.Collection{}, false, fmt.Errorf("%w: analyzer: %w", store.ErrInvalid, err)
	}
	if _, err := chunkerOf(settings.Chunker, "text"); err != nil {
		return store.Collection{}, false, err
	}
	c, created, err := w.store.CreateCollection(ctx, tenant, name, settings)
	if err != nil {
		return c, created, err
	}
	epoch, err := w.store.Epoch(ctx)
	if err != nil {
		return c, created, err
	}
	return c, created, w.serving.Await(ctx, epoch)
}

// Collection returns a collection of the tenant, or store.ErrNotFound.
func (w *Writer) Collection(ctx context.Context, tenant, name string) (store.Collection, error) {
	return w.store.Collection(ctx, tenant, name)
}

// Write creates or replaces a document. When it returns, the write is durable
// and searchable.
func (w *Writer) Write(ctx context.Context, tenant, collection string, d Document) (Outcome, error) {
	if err := d.check(); err != nil {
		return Outcome{}, err
	}
	c, err := w.store.Collection(ctx, tenant, collection)
	if err != nil {
		return Outcome{}, err
	}
	if err := w.checkWritten(ctx, c, d); err != nil {
		return Outcome{}, err
	}
	out, err := w.commit(ctx, c, d)
	if err != nil {
		return Outcome{}, err
	}
	return out, w.serving.Await(ctx, out.Epoch)
}

// checkWritten checks the access row that the write would leave as things are.
// Should the document change meanwhile, what gets by is hidden from everybody.
func (w *Writer) checkWritten(ctx context.Context, c store.Collection, d Document) error {
	if d.Keeps == 0 {
		return w.checkAccess(d.Access)
	}
	present, err := w.store.Lookup(ctx, c.Serving().ID, d.Key)
	if errors.Is(err, store.ErrNotFound) {
		return w.checkAccess(d.Access)
	}
	if err != nil {
		return err
	}
	return w.checkAccess(d.Access.Keeping(d.Keeps, present.Access))
}

// checkAccess refuses a document that a mistyped attribute would hide from
// everybody, or that would never apply.
func (w *Writer) checkAccess(a filter.Access) error {
	if a.Applicability.Never() {
		return fmt.Errorf("%w: valid_until: not after valid_from", store.ErrInvalid)
	}
	if err := w.serving.CheckDocument(a.Attributes); err != nil {
		return fmt.Errorf("%w: the policies could never permit this document: %w", store.ErrInvalid, err)
	}
	return nil
}

// commit writes the document for the generations that the collection has, as
// often as they change meanwhile.
func (w *Writer) commit(ctx context.Context, c store.Collection, d Document) (Outcome, error) {
	for {
		out, err := w.commitFor(ctx, c, d)
		if !errors.Is(err, store.ErrGenerations) {
			return out, err
		}
		if c, err = w.store.Collection(ctx, c.Tenant, c.Name); err != nil {
			return Outcome{}, err
		}
	}
}

// commitFor tries the cheap way first: the same content needs no vectors. Where
// the store has other content by then, it asks for them.
func (w *Writer) commitFor(ctx context.Context, c store.Collection, d Document) (Outcome, error) {
	version, err := w.prepare(ctx, c, d)
	if err != nil {
		return Outcome{}, err
	}
	receipt, err := w.store.Commit(ctx, c.ID, version)
	if !errors.Is(err, store.ErrVectorsNeeded) {
		return Outcome{Receipt: receipt}, err
	}
	truncated, err := w.addVectors(ctx, c, d, &version)
	if err != nil {
		return Outcome{}, err
	}
	receipt, err = w.store.Commit(ctx, c.ID, version)
	return Outcome{receipt, truncated}, err
}

// addVectors takes the vectors from the document or from the model, and returns
// how many chunks of the serving generation the model did not see the end of.
func (w *Writer) addVectors(ctx context.Context, c store.Collection, d Document, v *store.Version) (truncated int, err error) {
	if c.Settings.Brings() {
		return 0, bring(d, c.Settings.Own, w.coder(c), v)
	}
	known, err := w.known(ctx, c, d.Key)
	if err != nil {
		return 0, err
	}
	serving := v.Build()
	count, err := w.embed(ctx, c, v.Text, &serving, known)
	v.Dimensions, v.Vectors, v.Codes = serving.Dimensions, serving.Vectors, serving.Codes
	for i := range v.Builds {
		if err == nil {
			_, err = w.embed(ctx, c, v.Text, &v.Builds[i], known)
		}
	}
	return count.Truncated, err
}

// prepare makes a version, for every generation, that lacks only its vectors.
func (w *Writer) prepare(ctx context.Context, c store.Collection, d Document) (store.Version, error) {
	if c.Settings.Brings() {
		v, err := preparePassages(d, c.Settings)
		v.Generation = c.Serving().ID
		return v, err
	}
	return w.prepareText(ctx, c.Live(), d)
}

// prepareText parses, and chunks for each generation, the serving one first.
func (w *Writer) prepareText(ctx context.Context, live []store.Generation, d Document) (store.Version, error) {
	if len(d.Passages) > 0 {
		return store.Version{}, fmt.Errorf("%w: the vectors of this collection are the model's: send text and format, not passages, or create a collection with own_vectors", store.ErrInvalid)
	}
	parsed, err := w.parse(ctx, d.Format, d.Text)
	if ctx.Err() != nil {
		return store.Version{}, ctx.Err()
	}
	if err != nil {
		return store.Version{}, fmt.Errorf("%w: %w", store.ErrInvalid, err)
	}
	tree, err := parsed.Encode()
	if err != nil {
		return store.Version{}, fmt.Errorf("keeping the document's tree: %w", err)
	}
	v := store.Version{
		Key: d.Key, Title: cmp.Or(d.Title, parsed.Title), Format: d.Format, Identity: d.identity(),
		Text: parsed.Text, Parsed: tree, Access: d.Access, Keeps: d.Keeps,
	}
	for _, g := range live {
		b, err := w.chunked(ctx, parsed, v.Title, g)
		if err != nil {
			return store.Version{}, err
		}
		v.Builds = append(v.Builds, b)
	}
	serving := v.Builds[0]
	v.Generation, v.Chunker, v.Model, v.Chunks, v.Builds = serving.Generation, serving.Chunker, serving.Model, serving.Chunks, v.Builds[1:]
	return v, nil
}

// chunked makes a build that lacks its vectors.
func (w *Writer) chunked(ctx context.Context, d document.Document, title string, g store.Generation) (store.Build, error) {
	chunker, err := chunkerOf(g.Chunker, d.Format)
	if err != nil {
		return store.Build{}, err
	}
	chunks, err := w.cut(ctx, chunker, d)
	if err != nil {
		return store.Build{}, err
	}
	if len(chunks) == 0 {
		return store.Build{}, fmt.Errorf("%w: the document has no text", store.ErrInvalid)
	}
	b := store.Build{Generation: g.ID, Chunker: chunker.Version(), Model: w.embedder.Info().Digest, Chunks: titled(title, chunks)}
	return b, nil
}

// cut asks the planner where there is one and the chunker takes one.
func (w *Writer) cut(ctx context.Context, chunker chunk.Chunker, d document.Document) ([]chunk.Chunk, error) {
	if w.planner != nil && chunker.Version() == chunk.PlanVersion {
		return chunk.Planned(ctx, d, w.planner)
	}
	return chunker.Chunk(d), nil
}

// chunkerOf is the chunker of that name or, without a name, of the format.
func chunkerOf(name, format string) (chunk.Chunker, error) {
	if name == "" {
		return chunk.For(format), nil
	}
	chunker, err := chunk.Named(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrInvalid, err)
	}
	return chunker, nil
}

// titled puts the document's title before the heading paths that do not begin with it.
func titled(title string, chunks []chunk.Chunk) []chunk.Chunk {
	for i, c := range chunks {
		if title != "" && (len(c.Headings) == 0 || c.Headings[0] != title) {
			chunks[i].Headings = append([]string{title}, c.Headings...)
		}
	}
	return chunks
}

// SetAccess changes who may read a document. When it returns, no search that
// starts later sees the document for those who lost it.
func (w *Writer) SetAccess(ctx context.Context, tenant, collection, key string, change func(filter.Access) (filter.Access, error)) (store.Receipt, error) {
	id, err := w.numberOf(ctx, tenant, collection)
	if err != nil {
		return store.Receipt{}, err
	}
	receipt, err := w.store.SetAccess(ctx, id, key, func(a filter.Access) (filter.Access, error) {
		changed, err := change(a)
		if err != nil {
			return a, err
		}
		return changed, w.checkAccess(changed)
	})
	if err != nil {
		return store.Receipt{}, err
	}
	return receipt, w.serving.Await(ctx, receipt.Epoch)
}

// Delete removes a document; store.ErrNotFound if there is none.
func (w *Writer) Delete(ctx context.Context, tenant, collection, key string) (store.Receipt, error) {
	id, err := w.numberOf(ctx, tenant, collection)
	if err != nil {
		return store.Receipt{}, err
	}
	receipt, err := w.store.Delete(ctx, id, key)
	if err != nil {
		return store.Receipt{}, err
	}
	return receipt, w.serving.Await(ctx, receipt.Epoch)
}

// numberOf is a collection's number. The store, which may be far, is asked for one
// that searches do not know yet alone: numbers and names stay as they are.
func (w *Writer) numberOf(ctx context.Context, tenant, collection string) (uint32, error) {
	if id, known := w.serving.CollectionID(tenant, collection); known {
		return id, nil
	}
	c, err := w.store.Collection(ctx, tenant, collection)
	return c.ID, err
}
