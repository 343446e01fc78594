package retrieve

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"sluice/chunk"
	"sluice/filter"
	"sluice/gpu"
	"sluice/index"
	"sluice/index/local"
	"sluice/index/text"
	"sluice/model"
	"sluice/store"
	"sluice/store/pebble"
)

const (
	tenant     = "acme"
	library    = "library" // the collection
	dimensions = 64
)

// bagOfWords embeds a text as the normalised sum of its words' directions, which
// are its token vectors. It keeps the texts, and fails with err if that is set,
// or on the requests that fails picks.
type bagOfWords struct {
	mu      sync.Mutex
	texts   []string
	err     error
	fails   func(gpu.Request) error
	prompts model.Prompts
}

func (b *bagOfWords) Info() gpu.Info {
	return gpu.Info{
		Model: "bag", Digest: "bag/1", Dimensions: dimensions, TokenDimensions: dimensions, MaxTokens: 512, Precision: "f32", Prompts: b.prompts,
	}
}

func (b *bagOfWords) Embed(ctx context.Context, request gpu.Request) ([]gpu.Embedding, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range request.Texts {
		b.texts = append(b.texts, request.Prompt+t)
	}
	if b.fails != nil {
		if err := b.fails(request); err != nil {
			return nil, err
		}
	}
	out := make([]gpu.Embedding, len(request.Texts))
	for i, t := range request.Texts {
		out[i] = gpu.Embedding{Vector: vectorOf(t)}
		if request.TokenVectors {
			out[i].TokenVectors, out[i].Special = tokensOf(t)
		}
	}
	return out, b.err
}

// taken returns the texts since the last call.
func (b *bagOfWords) taken() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	texts := b.texts
	b.texts = nil
	return texts
}

// noToken is a word that has no token.
const noToken = "∅"

// tokensOf is the words' directions, of length 2, between special tokens of
// another direction.
func tokensOf(text string) (vectors []float32, special []bool) {
	mark := vectorOf("special")
	vectors, special = append(vectors, mark...), append(special, true)
	for _, word := range strings.Fields(text) {
		if word == noToken {
			continue
		}
		for _, x := range vectorOf(word) {
			vectors = append(vectors, 2*x)
		}
		special = append(special, false)
	}
	return append(vectors, mark...), append(special, true)
}

func (b *bagOfWords) failWith(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

func vectorOf(text string) []float32 {
	v, square := make([]float32, dimensions), 0.0
	for _, word := range strings.Fields(strings.ToLower(text)) {
		h := fnv.New64a()
		h.Write([]byte(word))
		random := rand.New(rand.NewPCG(h.Sum64(), 0))
		for i := range v {
			v[i] += float32(random.NormFloat64())
		}
	}
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(square))
	}
	return v
}

// house is a store and indexes in memory, and what serves them.
type house struct {
	epochsPerFlush uint64 // 0: the default
	t              testing.TB
	storeFS        vfs.FS
	indexFS        vfs.FS
	store          *pebble.Store
	embedder       *bagOfWords
	serving        *Serving
	engine         *Engine
	id             uint32 // of the collection
	wrapIndex      func(index.Index) index.Index
	opened         []bool // whether each index was opened fresh
}

func newHouse(t testing.TB) *house {
	t.Helper()
	h := &house{
		t: t, storeFS: vfs.NewMem(), indexFS: vfs.NewMem(), embedder: &bagOfWords{},
		wrapIndex: func(ix index.Index) index.Index { return ix },
	}
	h.openStore()
	h.setPolicies(starter(t))
	h.open()
	h.id = h.collection(tenant, library)
	t.Cleanup(func() {
		h.close()
		require.NoError(t, h.store.Close())
	})
	return h
}

func starter(t testing.TB) *filter.Policies {
	t.Helper()
	p, err := filter.StarterPolicies()
	require.NoError(t, err)
	return p
}

func (h *house) openStore() {
	h.t.Helper()
	var err error
	h.store, err = pebble.Open("store", pebble.Options{FS: h.storeFS})
	require.NoError(h.t, err)
}

func (h *house) open() {
	h.t.Helper()
	var err error
	h.serving, err = newServing(h.t.Context(), h.store, h.embedder.Info().Digest, h.openIndex, slog.New(slog.DiscardHandler), cmp.Or(h.epochsPerFlush, epochsPerFlush))
	require.NoError(h.t, err)
	h.engine = NewEngine(h.store, h.serving, h.embedder)
}

func (h *house) openIndex(c store.Collection, fresh bool) (index.Index, error) {
	h.opened = append(h.opened, fresh)
	dir := fmt.Sprintf("index/c%08x", c.ID)
	if fresh {
		if err := h.indexFS.RemoveAll(dir); err != nil {
			return nil, err
		}
	}
	analyzer, err := text.New("english")
	if err != nil {
		return nil, err
	}
	ix, err := local.Open(dir, local.Options{
		Dimensions: c.Settings.Dimensions(dimensions), Analyzer: analyzer, Model: c.Settings.Model("bag/1"), FS: h.indexFS,
	})
	if err != nil {
		return nil, err
	}
	return h.wrapIndex(ix), nil
}

func (h *house) close() {
	h.t.Helper()
	if h.serving != nil {
		require.NoError(h.t, h.serving.Close(context.Background()))
		h.serving = nil
	}
}

// flushEvery reopens the house with checkpoints after so many epochs.
func (h *house) flushEvery(epochs uint64) {
	h.t.Helper()
	h.epochsPerFlush = epochs
	h.reopen()
}

func (h *house) reopen() {
	h.t.Helper()
	h.close()
	h.opened = nil
	h.open()
}

func (h *house) await(epoch uint64) {
	h.t.Helper()
	require.NoError(h.t, h.serving.Await(context.Background(), epoch))
}

func (h *house) collection(tenant, name string) uint32 {
	h.t.Helper()
	c, _, err := h.store.CreateCollection(h.t.Context(), tenant, name, store.Settings{Analyzer: "english", CodeBits: 1})
	require.NoError(h.t, err)
	h.awaitAll()
	return c.ID
}

func (h *house) awaitAll() {
	h.t.Helper()
	epoch, err := h.store.Epoch(context.Background())
	require.NoError(h.t, err)
	if h.serving != nil {
		h.await(epoch)
	}
}

func (h *house) setPolicies(p *filter.Policies) {
	h.t.Helper()
	schema, files := p.Source()
	_, _, err := h.store.SetPolicies(context.Background(), store.PolicySource{Schema: schema, Policies: files})
	require.NoError(h.t, err)
	h.awaitAll()
}

// readable admits the readers alone, or leaves it to the policies if there are none.
func readable(readers ...filter.Reader) filter.Access {
	if len(readers) == 0 {
		return filter.Access{Readers: filter.Readers{Undeclared: true}}
	}
	return filter.Access{Readers: filter.Readers{List: readers}}
}

// version is a document of one chunk per passage.
func version(key string, access filter.Access, passages ...string) store.Version {
	v := store.Version{
		Key: key, Title: key, Format: "text", Chunker: "test/1", Model: "bag/1",
		Text: strings.Join(passages, "\n\n"), Dimensions: dimensions, Access: access,
	}
	v.Identity = sha256.Sum256([]byte(v.Text))
	start := 0
	for _, passage := range passages {
		c := chunk.Chunk{Start: start, End: start + len(passage)}
		v.Chunks = append(v.Chunks, c)
		v.Vectors = append(v.Vectors, vectorOf(chunk.EmbedText(v.Text, c))...)
		start = c.End + 2
	}
	return v
}

// put commits a document without waiting for searches to see it.
func (h *house) put(key string, access filter.Access, passages ...string) store.Receipt {
	h.t.Helper()
	r, err := h.store.Commit(context.Background(), h.id, version(key, access, passages...))
	require.NoError(h.t, err)
	return r
}

// write commits a document and waits until searches see it.
func (h *house) write(key string, access filter.Access, passages ...string) store.Receipt {
	h.t.Helper()
	r := h.put(key, access, passages...)
	h.await(r.Epoch)
	return r
}

func (h *house) setAccess(key string, access filter.Access) store.Receipt {
	h.t.Helper()
	r, err := h.store.SetAccess(context.Background(), h.id, key, func(filter.Access) (filter.Access, error) { return access, nil })
	require.NoError(h.t, err)
	return r
}

func (h *house) remove(key string) store.Receipt {
	h.t.Helper()
	r, err := h.store.Delete(context.Background(), h.id, key)
	require.NoError(h.t, err)
	return r
}

func person(name string, groups ...string) filter.Principal {
	return filter.Principal{Tenant: tenant, Subject: name, Groups: groups}
}

// request is of a strategy, or of one with a fusion, as in "hybrid rrf".
func (h *house) request(p filter.Principal, strategy, query string, k int) Request {
	name, fusion, _ := strings.Cut(strategy, " ")
	return Request{Principal: p, Collection: library, Query: query, K: k, Strategy: name, Fusion: fusion, Explain: true}
}

func (h *house) search(p filter.Principal, strategy, query string, k int) Response {
	h.t.Helper()
	r, err := h.engine.Search(context.Background(), h.request(p, strategy, query, k))
	require.NoError(h.t, err)
	return r
}

// bytesOf is a response to the last bit, timings aside.
func bytesOf(t testing.TB, r Response) string {
	t.Helper()
	r.Epoch = 0                // does not reach who asks
	for i := range r.Results { // JSON alone might hide a bit of a score
		r.Results[i].Title += fmt.Sprintf(" %x", math.Float64bits(r.Results[i].Score))
	}
	text, err := json.Marshal(r)
	require.NoError(t, err)
	return string(text)
}

func keysOf(r Response) []string {
	keys := []string{}
	for _, result := range r.Results {
		keys = append(keys, result.Key)
	}
	return keys
}

// list returns the keys of all that the principal may list, by pages of n.
func (h *house) list(p filter.Principal, n int) []string {
	h.t.Helper()
	keys, after := []string{}, ""
	for more := true; more; {
		var page []store.Record
		var err error
		page, more, err = h.engine.List(context.Background(), p, library, after, n)
		require.NoError(h.t, err)
		require.LessOrEqual(h.t, len(page), n)
		for _, r := range page {
			keys = append(keys, r.Key)
		}
		if more {
			after = keys[len(keys)-1]
		}
	}
	return keys
}

var errInjected = errors.New("injected failure")

// flaky is an index whose Apply and Flush fail while told so.
type flaky struct {
	index.Index
	applies, flushes atomic.Bool // fail
	failed           atomic.Int64
}

func (f *flaky) Apply(ctx context.Context, b index.Batch) error {
	if f.applies.Load() {
		f.failed.Add(1)
		return errInjected
	}
	return f.Index.Apply(ctx, b)
}

func (f *flaky) Flush(ctx context.Context) error {
	if f.flushes.Load() {
		f.failed.Add(1)
		return errInjected
	}
	return f.Index.Flush(ctx)
}

// meddler is a store that runs something before the engine reads from it, and
// keeps whose content and the rows whose token codes were read.
type meddler struct {
	store.Store
	beforeRecords, beforeContent, beforeCodes func()
	read                                      []uint32
	coded                                     []uint32
}

func (m *meddler) Codes(ctx context.Context, collection uint32, rows []uint32, visit func(int, []byte)) error {
	once(&m.beforeCodes)
	m.coded = append(m.coded, rows...)
	return m.Store.Codes(ctx, collection, rows, visit)
}

func (m *meddler) Records(ctx context.Context, collection uint32, ordinals []uint32) (map[uint32]store.Record, error) {
	once(&m.beforeRecords)
	return m.Store.Records(ctx, collection, ordinals)
}

func (m *meddler) Content(ctx context.Context, collection, ordinal uint32, withVectors bool) (store.Content, error) {
	once(&m.beforeContent)
	m.read = append(m.read, ordinal)
	return m.Store.Content(ctx, collection, ordinal, withVectors)
}

func once(f *func()) {
	if run := *f; run != nil {
		*f = nil
		run()
	}
}
