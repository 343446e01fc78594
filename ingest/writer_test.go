package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"sluice/chunk"
	"sluice/filter"
	"sluice/gpu"
	"sluice/index/late"
	"sluice/model"
	"sluice/store"
	"sluice/store/pebble"
)

const (
	tenant  = "acme"
	library = "library"
)

var errInjected = errors.New("injected failure")

// recorder is an embedder that keeps what it is given.
type recorder struct {
	mu     sync.Mutex
	digest string
	texts  []string
	most   int // texts in one call
	longer int // words of a text that is cut; 0: none
	tokens int // texts whose token vectors were asked for
	err    error
	prompt string // of documents

	failAfter int           // texts; 0: never
	panics    bool          // that is how it fails
	gate      chan struct{} // calls wait until it is closed; nil: they do not
}

// block lets calls wait until unblock, or until their contexts end.
func (r *recorder) block() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gate = make(chan struct{})
}

func (r *recorder) unblock() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.gate)
	r.gate = nil
}

func (r *recorder) fail(yes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err = nil; yes {
		r.err = errInjected
	}
}

func (r *recorder) wait(ctx context.Context) error {
	r.mu.Lock()
	gate := r.gate
	r.mu.Unlock()
	if gate == nil {
		return nil
	}
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *recorder) Info() gpu.Info {
	prompts := model.Prompts{ByName: map[string]string{"document": r.prompt, "query": "no"}}
	return gpu.Info{Model: "m", Digest: r.digest, Dimensions: 4, TokenDimensions: 4, Prompts: prompts}
}

func (r *recorder) Embed(ctx context.Context, q gpu.Request) ([]gpu.Embedding, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failAfter > 0 && len(r.texts)+len(q.Texts) > r.failAfter {
		if r.panics {
			panic(errInjected)
		}
		return nil, errInjected
	}
	if r.err != nil {
		return nil, r.err
	}
	if q.Priority != gpu.Bulk {
		return nil, errors.New("documents must not keep queries waiting")
	}
	for _, text := range q.Texts {
		r.texts = append(r.texts, q.Prompt+text)
	}
	r.most = max(r.most, len(q.Texts))
	out := make([]gpu.Embedding, len(q.Texts))
	for i, text := range q.Texts {
		words := len(strings.Fields(text))
		out[i] = gpu.Embedding{Vector: vectorOf(r.digest, text), Truncated: r.longer > 0 && words > r.longer}
		if q.TokenVectors {
			r.tokens++
			out[i].TokenVectors, out[i].Special = tokensOf(r.digest, text)
		}
	}
	return out, nil
}

// taken returns the texts since the last call.
func (r *recorder) taken() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	texts := r.texts
	r.texts = nil
	return texts
}

// tokensOf is a special token and one token with the text's own vector.
func tokensOf(digest, text string) ([]float32, []bool) {
	return append([]float32{1, 2, 3, 4}, vectorOf(digest, text)...), []bool{true, false}
}

func vectorOf(digest, text string) []float32 {
	sum := Document{Format: digest, Text: []byte(text)}.identity()
	v := make([]float32, 4)
	for i := range v {
		v[i] = float32(sum[i])
	}
	return v
}

// awaiter keeps the epochs that were waited for. It knows no attribute "mistyped".
type awaiter struct {
	mu     sync.Mutex
	epochs []uint64
	err    error
	known  uint32 // number of the collection library; 0: searches do not know it
}

func (a *awaiter) CollectionID(of, collection string) (uint32, bool) {
	return a.known, a.known > 0 && of == tenant && collection == library
}

func (a *awaiter) CheckDocument(attributes filter.Attributes) error {
	if _, there := attributes["mistyped"]; there {
		return errors.New("the attribute mistyped is not declared")
	}
	return nil
}

func (a *awaiter) Await(_ context.Context, epoch uint64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.epochs = append(a.epochs, epoch)
	return a.err
}

type fixture struct {
	*Writer
	t        testing.TB
	store    *pebble.Store
	embedder *recorder
	awaiter  *awaiter
	id       uint32
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	st, err := pebble.Open("store", pebble.Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	f := &fixture{t: t, store: st, embedder: &recorder{digest: "m/1"}, awaiter: &awaiter{}}
	f.Writer = NewWriter(st, f.embedder, f.awaiter)
	f.id = f.create(library, store.Settings{Analyzer: "english"})
	return f
}

func (f *fixture) create(name string, settings store.Settings) uint32 {
	f.t.Helper()
	c, created, err := f.CreateCollection(context.Background(), tenant, name, settings)
	require.NoError(f.t, err)
	require.True(f.t, created)
	return c.ID
}

func (f *fixture) codes(c store.Content) (codes [][]byte) {
	f.t.Helper()
	require.NoError(f.t, f.store.Codes(context.Background(), f.id, rowsOf(c.Record), func(_ int, its []byte) {
		codes = append(codes, bytes.Clone(its))
	}))
	return codes
}

func (f *fixture) write(d Document) Outcome {
	f.t.Helper()
	out, err := f.Write(context.Background(), tenant, library, d)
	require.NoError(f.t, err)
	return out
}

func (f *fixture) content(key string) store.Content {
	f.t.Helper()
	r, err := f.store.Lookup(context.Background(), f.id, key)
	require.NoError(f.t, err)
	c, err := f.store.Content(context.Background(), f.id, r.Ordinal, true)
	require.NoError(f.t, err)
	return c
}

// requireVectors: every chunk has the vector of its own text.
func (f *fixture) requireVectors(key string) {
	f.t.Helper()
	c := f.content(key)
	for i, piece := range c.Chunks {
		want := vectorOf(f.embedder.digest, chunk.EmbedText(c.Text, piece))
		require.Equal(f.t, want, c.Vectors[i*c.Dimensions:(i+1)*c.Dimensions], "chunk %d", i)
	}
}

func readableBy(reader filter.Reader) filter.Access {
	return filter.Access{Readers: filter.Readers{List: []filter.Reader{reader}}}
}

func markdown(key string, sections ...string) Document {
	text := "# Handbook\n"
	for i, s := range sections {
		text += fmt.Sprintf("\n## Part %d\n\n%s\n", i, s)
	}
	return Document{Key: key, Format: "markdown", Text: []byte(text), Access: readableBy("user:a")}
}

func TestWritesOfOneKey(t *testing.T) {
	f := newFixture(t)
	d := markdown("k", "one", "two", "three")
	out := f.write(d)
	require.True(t, out.Created)
	require.Equal(t, uint32(1), out.Version)
	require.Len(t, f.embedder.taken(), 3)
	require.Equal(t, out.Epoch, f.awaiter.epochs[len(f.awaiter.epochs)-1], "acknowledged when searches see it")

	out = f.write(d)
	require.True(t, out.Unchanged)
	require.Empty(t, f.embedder.taken(), "unchanged costs no vectors")

	d.Access = readableBy("user:b")
	out = f.write(d)
	require.True(t, out.AccessOnly)
	require.False(t, out.Unchanged)
	require.Equal(t, uint32(1), out.Version)
	require.Empty(t, f.embedder.taken(), "nor does access")
	require.Equal(t, d.Access.Readers, f.content("k").Access.Readers)
	require.Equal(t, out.Epoch, f.awaiter.epochs[len(f.awaiter.epochs)-1])

	d.Text = markdown("k", "one", "two, changed", "three").Text
	out = f.write(d)
	require.False(t, out.Created || out.Unchanged || out.AccessOnly)
	require.Equal(t, uint32(2), out.Version)
	require.Equal(t, []string{"Handbook > Part 1\ntwo, changed"}, f.embedder.taken(), "only the changed chunk needs a vector")
	f.requireVectors("k")

	require.NoError(t, f.remove(tenant))
	require.ErrorIs(t, f.remove(tenant), store.ErrNotFound)
	require.True(t, f.write(d).Created)
	require.Empty(t, f.embedder.taken(), "the cache has what was paid for")
	f.requireVectors("k")
}

func TestTitleAndFormatAreContent(t *testing.T) {
	f := newFixture(t)
	d := Document{Key: "k", Format: "text", Text: []byte("# Harbour\n\nships")}
	f.write(d)
	require.Empty(t, f.content("k").Title)
	f.embedder.taken()

	d.Title = "Harbours"
	require.Equal(t, uint32(2), f.write(d).Version)
	require.Equal(t, "Harbours", f.content("k").Title)
	require.Equal(t, []string{"Harbours\n# Harbour\n\nships"}, f.embedder.taken())

	d.Format = "markdown"
	require.Equal(t, uint32(3), f.write(d).Version)
	require.Equal(t, "markdown/1", f.content("k").Chunker)
	require.Equal(t, []string{"Harbours > Harbour\nships"}, f.embedder.taken())

	d.Title = ""
	require.Equal(t, uint32(4), f.write(d).Version)
	require.Equal(t, "Harbour", f.content("k").Title, "the document's own")
	require.Equal(t, []string{"Harbour\nships"}, f.embedder.taken(), "the title is not put before itself")
}

func TestMovedChunksKeepTheirVectors(t *testing.T) {
	f := newFixture(t)
	text := func(parts ...string) Document {
		d := markdown("k")
		for _, p := range parts {
			d.Text = append(d.Text, fmt.Sprintf("\n## %s\n\nabout %s\n", p, p)...)
		}
		return d
	}
	f.write(text("a", "b", "c"))
	f.embedder.taken()
	f.write(text("c", "new", "a", "a"))
	require.Equal(t, []string{"Handbook > new\nabout new"}, f.embedder.taken())
	f.requireVectors("k")
}

// Vectors of another model are not mixed with those of this one.
// Token codes come from the pass that makes the vectors, and stay with unchanged chunks.
func TestTokenCodes(t *testing.T) {
	f := newFixture(t)
	f.write(markdown("k", "one"))
	require.Zero(t, f.embedder.tokens, "the collection keeps no codes")
	require.False(t, f.content("k").Coded)
	f.embedder.taken()

	f.id = f.create("coded", store.Settings{Analyzer: "english", CodeBits: 8})
	coder := late.NewCoder(late.Kind{Dimensions: 4, Bits: 8})
	write := func(sections ...string) {
		_, err := f.Write(t.Context(), tenant, "coded", markdown("k", sections...))
		require.NoError(t, err)
		c := f.content("k")
		codes := f.codes(c)
		require.Len(t, codes, len(c.Chunks))
		for i, piece := range c.Chunks {
			want := coder.Encode(tokensOf("m/1", chunk.EmbedText(c.Text, piece)))
			require.Equal(t, want, codes[i], "chunk %d", i)
		}
	}
	write("one", "two", "two")
	require.Len(t, f.embedder.taken(), 3)
	require.Equal(t, 3, f.embedder.tokens)
	write("one", "two", "another", "two")
	require.Equal(t, []string{"Handbook > Part 2\nanother", "Handbook > Part 3\ntwo"}, f.embedder.taken(), "chunks that are new")
	f.requireVectors("k")
}

func TestAnotherModelEmbedsEverything(t *testing.T) {
	f := newFixture(t)
	d := markdown("k", "one", "two")
	f.write(d)
	f.embedder.taken()
	f.embedder.digest = "m/2"
	out := f.write(d)
	require.Equal(t, uint32(1), out.Version, "the content is the same")
	require.Len(t, f.embedder.taken(), 2)
	require.Equal(t, "m/2", f.content("k").Model)
	f.requireVectors("k")
}

func TestTruncatedChunksAreCounted(t *testing.T) {
	f := newFixture(t)
	f.embedder.longer = 6
	out := f.write(markdown("k", "short", "this one has more words than that", "and so has this one, I think"))
	require.Equal(t, 2, out.Truncated)
	require.Zero(t, f.write(markdown("l", "short")).Truncated)
}

// A document of many chunks is embedded in parts, and a text that it has more
// than once a single time.
func TestRepeatedAndManyChunks(t *testing.T) {
	f := newFixture(t)
	f.embedder.longer = 1
	var d Document
	d.Key, d.Format = "k", "markdown"
	for i := range 2*embedTexts + 10 {
		d.Text = append(d.Text, fmt.Sprintf("## Part %d\n\nabout %d\n\n## Same\n\nboilerplate\n\n", i, i)...)
	}
	out := f.write(d)
	require.Equal(t, uint32(2*(2*embedTexts+10)), out.Rows)
	require.Equal(t, int(out.Rows), out.Truncated, "each is counted")
	texts := f.embedder.taken()
	require.Len(t, texts, 2*embedTexts+11)
	slices.Sort(texts)
	require.Len(t, slices.Compact(texts), 2*embedTexts+11)
	require.LessOrEqual(t, f.embedder.most, embedTexts)
	f.requireVectors("k")
}

func TestAFailedEmbeddingWritesNothing(t *testing.T) {
	f := newFixture(t)
	f.write(markdown("k", "one"))
	before := f.content("k")
	f.embedder.err = errInjected
	_, err := f.Write(t.Context(), tenant, library, markdown("k", "two"))
	require.ErrorIs(t, err, errInjected)
	_, err = f.Write(t.Context(), tenant, library, markdown("new", "two"))
	require.ErrorIs(t, err, errInjected)
	require.Equal(t, before, f.content("k"))
	_, err = f.store.Lookup(t.Context(), f.id, "new")
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestAWriteThatIsNotVisibleIsNotAcknowledged(t *testing.T) {
	f := newFixture(t)
	f.write(markdown("k", "one"))
	f.awaiter.err = errInjected
	_, err := f.Write(t.Context(), tenant, library, markdown("k", "two"))
	require.ErrorIs(t, err, errInjected)
	_, err = f.SetAccess(t.Context(), tenant, library, "k", same)
	require.ErrorIs(t, err, errInjected)
	require.ErrorIs(t, f.remove(tenant), errInjected)
	_, _, err = f.CreateCollection(t.Context(), tenant, "more", store.Settings{Analyzer: "english"})
	require.ErrorIs(t, err, errInjected)
}

// A collection that no index can be opened for would stop all of them.
func TestAnUnknownAnalyzerIsRefused(t *testing.T) {
	f := newFixture(t)
	_, _, err := f.CreateCollection(t.Context(), tenant, "odd", store.Settings{Analyzer: "klingon"})
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, "choose one of")
	_, err = f.Collection(t.Context(), tenant, "odd")
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestACollectionNamesItsDefaultAnalyzer(t *testing.T) {
	f := newFixture(t)
	c, created, err := f.CreateCollection(t.Context(), tenant, "plain", store.Settings{})
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, "english", c.Settings.Analyzer)
}

func same(a filter.Access) (filter.Access, error) { return a, nil }

// nameless is a store that cannot read collections by name.
type nameless struct{ store.Store }

func (nameless) Collection(context.Context, string, string) (store.Collection, error) {
	return store.Collection{}, errInjected
}

// What takes a document or its readers away costs the store no look-up of a
// collection that searches know.
func TestKnownCollectionsAreNotRead(t *testing.T) {
	f := newFixture(t)
	f.write(markdown("k", "one"))
	f.Writer.store = nameless{f.store}
	revoked := func(filter.Access) (filter.Access, error) { return readableBy("user:b"), nil }
	_, err := f.SetAccess(t.Context(), tenant, library, "k", revoked)
	require.ErrorIs(t, err, errInjected)
	f.awaiter.known = f.id
	_, err = f.SetAccess(t.Context(), tenant, library, "k", revoked)
	require.NoError(t, err)
	_, err = f.Delete(t.Context(), tenant, library, "k")
	require.NoError(t, err)
	_, err = f.Delete(t.Context(), "globex", library, "k")
	require.ErrorIs(t, err, errInjected, "that of another tenant")
}

func TestSetAccess(t *testing.T) {
	f := newFixture(t)
	f.write(markdown("k", "one"))
	f.embedder.taken()
	receipt, err := f.SetAccess(t.Context(), tenant, library, "k", func(a filter.Access) (filter.Access, error) {
		require.Equal(t, []filter.Reader{"user:a"}, a.Readers.List)
		return readableBy("user:b"), nil
	})
	require.NoError(t, err)
	require.Equal(t, uint32(1), receipt.Version)
	require.Equal(t, receipt.Epoch, f.awaiter.epochs[len(f.awaiter.epochs)-1])
	require.Equal(t, []filter.Reader{"user:b"}, f.content("k").Access.Readers.List)
	require.Empty(t, f.embedder.taken())

	_, err = f.SetAccess(t.Context(), tenant, library, "k", func(filter.Access) (filter.Access, error) { return filter.Access{}, errInjected })
	require.ErrorIs(t, err, errInjected)
	_, err = f.SetAccess(t.Context(), tenant, library, "k", func(a filter.Access) (filter.Access, error) {
		a.Attributes = filter.Attributes{"mistyped": "x"}
		return a, nil
	})
	require.ErrorIs(t, err, store.ErrInvalid)
	_, err = f.SetAccess(t.Context(), tenant, library, "nothing", same)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.Equal(t, []filter.Reader{"user:b"}, f.content("k").Access.Readers.List)
}

func TestRefusedDocuments(t *testing.T) {
	f := newFixture(t)
	for what, change := range map[string]func(*Document){
		"no key":                    func(d *Document) { d.Key = "" },
		"long key":                  func(d *Document) { d.Key = strings.Repeat("k", MaxKeyBytes+1) },
		"key with NUL":              func(d *Document) { d.Key = "a\x00b" },
		"key with a line break":     func(d *Document) { d.Key = "a\nb" },
		"key not UTF-8":             func(d *Document) { d.Key = "a\xff" },
		"long title":                func(d *Document) { d.Title = strings.Repeat("t", MaxTitleBytes+1) },
		"title with NUL":            func(d *Document) { d.Title = "a\x00b" },
		"title not UTF-8":           func(d *Document) { d.Title = "a\xff" },
		"no format":                 func(d *Document) { d.Format = "" },
		"unknown format":            func(d *Document) { d.Format = "docx" },
		"text not UTF-8":            func(d *Document) { d.Text = []byte("a\xffb") },
		"no text":                   func(d *Document) { d.Text = nil },
		"white space":               func(d *Document) { d.Text = []byte(" \n\t\u00a0\n") },
		"HTML without text":         func(d *Document) { d.Format, d.Text = "html", []byte("<p><script>x()</script></p>") },
		"never valid":               func(d *Document) { d.Access.Applicability = filter.Applicability{ValidFrom: noon, ValidUntil: noon} },
		"attribute not declared":    func(d *Document) { d.Access.Attributes = filter.Attributes{"mistyped": "x"} },
		"attribute of another type": func(d *Document) { d.Access.Attributes = filter.Attributes{"a": 1.5} },
	} {
		d := markdown("k", "one")
		change(&d)
		_, err := f.Write(t.Context(), tenant, library, d)
		require.ErrorIs(t, err, store.ErrInvalid, what)
		require.Greater(t, len(err.Error()), len("invalid: "), "%s: says why", what)
	}
	for range f.store.Scan(t.Context(), f.id, 0) {
		t.Fatal("something was written")
	}
	for _, key := range []string{"a/b", "ä", "a b", strings.Repeat("k", MaxKeyBytes)} {
		require.True(t, f.write(markdown(key, "one")).Created, key)
	}
}

// remove deletes the document k of the tenant's library.
func (f *fixture) remove(tenant string) error {
	_, err := f.Delete(context.Background(), tenant, library, "k")
	return err
}

var noon = time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC)

// What a write keeps is checked together with what it brings.
func TestKeptFieldsAreChecked(t *testing.T) {
	f := newFixture(t)
	d := markdown("k", "one")
	d.Access.Attributes = filter.Attributes{"level": "high"}
	d.Access.Applicability.ValidFrom = noon
	d.Keeps = filter.AttributesField
	f.write(d)

	again := markdown("k", "two")
	again.Access.Attributes, again.Access.Applicability.ValidUntil = filter.Attributes{"mistyped": "x"}, noon
	again.Keeps = filter.AttributesField | filter.ValidFromField
	_, err := f.Write(t.Context(), tenant, library, again)
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, "valid_until: not after valid_from")
	again.Access.Applicability.ValidUntil = noon.Add(time.Second)
	f.write(again)
	require.Equal(t, filter.Attributes{"level": "high"}, f.content("k").Access.Attributes)
	again.Key = "new"
	_, err = f.Write(t.Context(), tenant, library, again)
	require.ErrorContains(t, err, "mistyped", "there is nothing to keep")
}

func TestOtherTenantsCollectionsAreMissing(t *testing.T) {
	f := newFixture(t)
	f.write(markdown("k", "one"))
	_, err := f.Write(t.Context(), "globex", library, markdown("k", "one"))
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = f.SetAccess(t.Context(), "globex", library, "k", same)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.ErrorIs(t, f.remove("globex"), store.ErrNotFound)
	_, err = f.Collection(t.Context(), "globex", library)
	require.ErrorIs(t, err, store.ErrNotFound)
}

// Writers of one key at the same time: each version is somebody's, whole.
func TestConcurrentWritesOfOneKey(t *testing.T) {
	f := newFixture(t)
	const writers = 16
	versions := make([]uint32, writers)
	var writing sync.WaitGroup
	for i := range writers {
		writing.Go(func() {
			out, err := f.Write(context.Background(), tenant, library, markdown("k", "common", fmt.Sprint("of ", i)))
			if err != nil {
				t.Errorf("writer %d: %v", i, err)
			}
			versions[i] = out.Version
		})
	}
	writing.Wait()
	last := slices.Index(versions, writers)
	slices.Sort(versions)
	for i, v := range versions {
		require.Equal(t, uint32(i+1), v)
	}
	require.Contains(t, f.content("k").Text, fmt.Sprint("of ", last))
	f.requireVectors("k")
}

// Passages are embedded behind the prompt that the model has for documents.
func TestDocumentPrompt(t *testing.T) {
	f := newFixture(t)
	f.embedder.prompt = "passage: "
	f.write(Document{Key: "a", Format: "text", Text: []byte("ships")})
	require.Equal(t, []string{"passage: ships"}, f.embedder.taken())
}
