package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"
	"golang.org/x/sync/errgroup"

	"sluice/bench/figures"
	"sluice/filter"
	"sluice/index"
	"sluice/index/milvus"
	"sluice/index/text"
	"sluice/kernels/ref"
)

// MilvusOptions says what Milvus measures.
type MilvusOptions struct {
	Address string
	Vectors VectorOptions
	Queries int // of each way at each filter
	Log     io.Writer
}

const (
	milvusCollection = "sluice_bench"
	milvusClasses    = 100
	milvusBatch      = 1000
	milvusIDs        = 10_000 // documents in the list that classes are compared with
)

// Milvus measures the index on a Milvus server beside bare calls of its library,
// query by query in turns. Every row is a document, of a hundred classes.
//
// Figures: selp.p50_ms and bare.selp.p50_ms of searches that allow p percent of
// the classes, bare with the same filter and k and nothing else; selp.overhead_p50_ms
// their difference, and selp.recall@10 and bare.selp.recall@10; leaks, hits that are not allowed; ids.qps and class.qps of
// bare calls for the same 10,000 documents by a list and by their classes, and
// ratio.class_to_id_list_qps; concurrent.qps of eight callers at once with the same
// filter, bare.concurrent.qps of as many bare ones and bare.nq8.qps of two that ask
// eight queries in a call, with the ratios to bare.concurrent.qps; load.rows_per_s of filling the index with rows
// without text, bare.load.rows_per_s of bare inserts of the same columns into a
// collection like it, batch by batch in turns, and ratio.bulk_load; load_texts the
// same with sentences as texts, which the embedded index analyses.
func Milvus(ctx context.Context, o MilvusOptions) (file figures.File, err error) {
	b, err := o.open(ctx)
	if err != nil {
		return file, err
	}
	defer func() { err = errors.Join(err, b.close(context.WithoutCancel(ctx))) }()
	file = b.File
	for _, percent := range []int{1, 10, 50} {
		if err := b.share(ctx, percent); err != nil {
			return file, err
		}
	}
	if err = b.lists(ctx); err == nil {
		err = b.together(ctx)
	}
	for _, name := range slices.Sorted(maps.Keys(b.Figures)) {
		fmt.Fprintf(o.Log, "%-32s %.4g\n", name, b.Figures[name])
	}
	return file, err
}

type milvusBench struct {
	MilvusOptions
	recorder
	vectors *Vectors
	cluster *milvus.Cluster
	options milvus.Options
	index   *milvus.Index
	bare    client.Client
}

func (o MilvusOptions) open(ctx context.Context) (_ *milvusBench, err error) {
	b := &milvusBench{MilvusOptions: o, recorder: newRecorder(ctx, o.Log)}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close(context.WithoutCancel(ctx)))
		}
	}()
	if b.vectors, err = LoadVectors(ctx, o.Vectors); err != nil {
		return nil, err
	}
	b.options = milvus.Options{Name: milvusCollection, Dimensions: b.vectors.Dims, Model: "bench"}
	if b.options.Analyzer, err = text.New(text.Default); err != nil {
		return nil, err
	}
	if b.options.Dir, err = os.MkdirTemp("", "sluice-bench-"); err != nil {
		return nil, err
	}
	if b.cluster, err = milvus.Connect(ctx, o.Address); err != nil {
		return nil, err
	}
	if b.bare, err = client.NewClient(ctx, client.Config{Address: o.Address}); err != nil {
		return nil, err
	}
	return b, b.fill(ctx)
}

func (b *milvusBench) close(ctx context.Context) error {
	var errs []error
	if b.index != nil {
		errs = append(errs, b.index.Close())
	}
	if b.cluster != nil {
		for _, o := range []milvus.Options{b.options, b.twin()} {
			errs = append(errs, milvus.Remove(ctx, []*milvus.Cluster{b.cluster}, o))
		}
		errs = append(errs, b.cluster.Close())
	}
	if b.bare != nil {
		errs = append(errs, b.bare.Close())
	}
	return errors.Join(errs...)
}

// fill fills the index twice, with the sentences of the corpora as texts and then
// without any, which it keeps.
func (b *milvusBench) fill(ctx context.Context) error {
	sentences, err := readSentences(b.Vectors.Corpora)
	if err != nil {
		return err
	}
	if err := b.load(ctx, "load_texts", sentences); err != nil {
		return err
	}
	if err := b.index.Close(); err != nil {
		return err
	}
	if err := b.load(ctx, "load", []string{""}); err != nil {
		return err
	}
	return b.bare.Flush(ctx, b.collection(b.options), false) // so that the graph is searched
}

// load puts the vectors, with texts in turn, into an empty index, in turns with
// bare inserts into the collection of another. Both take turns in going first: the
// server is still at work on what the last one brought.
func (b *milvusBench) load(ctx context.Context, name string, texts []string) (err error) {
	if b.index, err = b.fresh(ctx, b.options); err != nil {
		return err
	}
	twin, err := b.fresh(ctx, b.twin())
	if err != nil {
		return err
	}
	if err := twin.Close(); err != nil {
		return err
	}
	var ours, bare time.Duration
	for from := 0; from < b.rows(); from += milvusBatch {
		batch, columns := b.part(from, min(from+milvusBatch, b.rows()), texts)
		ways := []func() error{
			timed(&ours, func() error { return b.index.Apply(ctx, batch) }),
			timed(&bare, func() error {
				_, err := b.bare.Insert(ctx, b.collection(b.twin()), "", columns...)
				return err
			}),
		}
		first := from / milvusBatch % 2
		if err := errors.Join(ways[first](), ways[1-first]()); err != nil {
			return err
		}
	}
	if err := timed(&ours, func() error { return b.index.Apply(ctx, index.Batch{Epoch: 1}) })(); err != nil {
		return err
	}
	b.Figures[name+".rows_per_s"], b.Figures["bare."+name+".rows_per_s"] = float64(b.rows())/ours.Seconds(), float64(b.rows())/bare.Seconds()
	b.Figures["ratio.bulk_"+name] = bare.Seconds() / ours.Seconds()
	return milvus.Remove(ctx, []*milvus.Cluster{b.cluster}, b.twin())
}

// timed adds to took how long a call takes.
func timed(took *time.Duration, call func() error) func() error {
	return func() error {
		began := time.Now()
		defer func() { *took += time.Since(began) }()
		return call()
	}
}

// fresh opens an empty index.
func (b *milvusBench) fresh(ctx context.Context, o milvus.Options) (*milvus.Index, error) {
	clusters := []*milvus.Cluster{b.cluster}
	if err := milvus.Remove(ctx, clusters, o); err != nil {
		return nil, err
	}
	return milvus.Open(ctx, clusters, o)
}

// twin has a collection that is like the measured one.
func (b *milvusBench) twin() milvus.Options {
	o := b.options
	o.Name += "_bare"
	o.Dir += "-bare"
	return o
}

func (b *milvusBench) collection(o milvus.Options) string {
	return milvus.CollectionNames([]*milvus.Cluster{b.cluster}, o)[0]
}

// part is a range of the rows, as a batch, with texts in turn, and as columns.
func (b *milvusBench) part(from, to int, texts []string) (batch index.Batch, columns []entity.Column) {
	var rows, classes, epochs, buckets []int64
	var vectors [][]float32
	for i := from; i < to; i++ {
		batch.Put = append(batch.Put, index.Document{
			Ordinal: uint32(i), Class: uint64(i % milvusClasses), Rows: []index.Row{{Row: uint32(i), Vector: b.vector(i), Text: texts[i%len(texts)]}},
		})
		rows, classes, epochs = append(rows, int64(i)), append(classes, int64(i%milvusClasses)), append(epochs, 0)
		vectors = append(vectors, b.vector(i))
		buckets = append(buckets, int64(i%milvusClasses%64))
	}
	return batch, []entity.Column{
		entity.NewColumnInt64("row", rows), entity.NewColumnInt64("document", rows), entity.NewColumnInt64("class", classes),
		entity.NewColumnInt64("bucket", buckets), entity.NewColumnInt64("epoch", epochs), entity.NewColumnFloatVector("vector", b.vectors.Dims, vectors),
	}
}

func (b *milvusBench) rows() int { return len(b.vectors.Rows) / b.vectors.Dims }
func (b *milvusBench) vector(i int) []float32 {
	return b.vectors.Rows[i*b.vectors.Dims:][:b.vectors.Dims]
}

// allowed is what may be read of the first classes of a hundred.
func (b *milvusBench) allowed(percent int) (set filter.Set, ordinals []uint32, expression string) {
	var classes []string
	for i := range b.rows() {
		if i%milvusClasses < percent {
			ordinals = append(ordinals, uint32(i))
		}
	}
	for class := range percent {
		classes = append(classes, strconv.Itoa(class))
	}
	return filter.SetOf(ordinals...), ordinals, "class in [" + strings.Join(classes, ",") + "]"
}

// share measures searches that may read the first classes of a hundred. Ours and
// the bare call take turns in going first: the second finds the server's caches warm.
func (b *milvusBench) share(ctx context.Context, percent int) error {
	set, ordinals, expression := b.allowed(percent)
	r, err := b.index.Reader()
	if err != nil {
		return err
	}
	defer r.Close()
	p := &point{vectors: b.vectors, dot: ref.Dot, sets: []filter.Set{set}, least: make([]float32, b.Queries)}
	var ours, bare []float64
	var found, bareFound [][]int
	for i := range b.Queries {
		query := b.vectors.query(i)
		p.least[i] = p.exact(query, ordinals)
		search := func() error {
			began := time.Now()
			hits, err := r.Dense(ctx, set, query, neighbours)
			ours = append(ours, time.Since(began).Seconds()*1e3)
			found = append(found, b.rowsOf(hits, set))
			return err
		}
		searchBare := func() error {
			rows, took, err := b.search(ctx, expression, query)
			bare, bareFound = append(bare, took), append(bareFound, rows)
			return err
		}
		ways := []func() error{search, searchBare}
		if err := errors.Join(ways[i%2](), ways[1-i%2]()); err != nil {
			return err
		}
	}
	name := fmt.Sprintf("sel%d.", percent)
	b.Figures["leaks"] += 0
	b.Figures[name+"p50_ms"], b.Figures["bare."+name+"p50_ms"] = middle(ours), middle(bare)
	b.Figures[name+"recall@10"], b.Figures["bare."+name+"recall@10"] = p.recall(found), p.recall(bareFound)
	b.Figures[name+"overhead_p50_ms"] = middle(ours) - middle(bare)
	return nil
}

// rowsOf also counts the hits that are not allowed.
func (b *milvusBench) rowsOf(hits []index.Hit, allowed filter.Set) (rows []int) {
	for _, h := range hits {
		rows = append(rows, int(h.Row))
		if !allowed.Contains(h.Ordinal) {
			b.Figures["leaks"]++
		}
	}
	return rows
}

func middle(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// search makes a bare call; it takes so many milliseconds.
func (b *milvusBench) search(ctx context.Context, expression string, query []float32) (rows []int, ms float64, err error) {
	began := time.Now()
	results, err := b.call(ctx, expression, entity.FloatVector(query))
	ms = time.Since(began).Seconds() * 1e3
	if err != nil || len(results) != 1 {
		return nil, ms, err
	}
	ids, ok := results[0].IDs.(*entity.ColumnInt64)
	if !ok {
		return nil, ms, fmt.Errorf("an answer with %T", results[0].IDs)
	}
	for _, id := range ids.Data() {
		rows = append(rows, int(id))
	}
	return rows, ms, nil
}

func (b *milvusBench) call(ctx context.Context, expression string, queries ...entity.Vector) ([]client.SearchResult, error) {
	params, err := entity.NewIndexHNSWSearchParam(64)
	if err != nil {
		return nil, err
	}
	return b.bare.Search(ctx, b.collection(b.options), nil, expression, nil, queries, "vector", entity.IP,
		neighbours, params, client.WithSearchQueryConsistencyLevel(entity.ClSession))
}

const (
	concurrent      = 8 // callers, and queries in one call
	concurrentTurns = 4 // of each way
)

// together compares callers that ask at once with calls of several queries.
func (b *milvusBench) together(ctx context.Context) error {
	const percent = 10
	set, _, expression := b.allowed(percent)
	r, err := b.index.Reader()
	if err != nil {
		return err
	}
	defer r.Close()
	bare := func(ctx context.Context, queries ...entity.Vector) error {
		_, err := b.call(ctx, expression, queries...)
		return err
	}
	ways := map[string]func(context.Context) error{
		"concurrent": func(ctx context.Context) error {
			return b.ask(ctx, 1, concurrent, func(ctx context.Context, queries ...entity.Vector) error {
				_, err := r.Dense(ctx, set, queries[0].(entity.FloatVector), neighbours)
				return err
			})
		},
		"bare.concurrent": func(ctx context.Context) error { return b.ask(ctx, 1, concurrent, bare) },
		"bare.nq8":        func(ctx context.Context) error { return b.ask(ctx, concurrent, 2, bare) },
	}
	took := map[string]time.Duration{}
	for range concurrentTurns {
		for name, way := range ways {
			began := time.Now()
			if err := way(ctx); err != nil {
				return err
			}
			took[name] += time.Since(began)
		}
	}
	for name := range ways {
		b.Figures[name+".qps"] = float64(concurrentTurns*b.shared()) / took[name].Seconds()
	}
	b.Figures["ratio.concurrent_qps"] = took["bare.concurrent"].Seconds() / took["concurrent"].Seconds()
	b.Figures["ratio.nq8_to_nq1_qps"] = took["bare.concurrent"].Seconds() / took["bare.nq8"].Seconds()
	return nil
}

// shared is how many queries callers share out, evenly in each way.
func (b *milvusBench) shared() int { return b.Queries - b.Queries%(2*concurrent) }

// ask shares the queries out among callers, each of which asks nq in a call.
func (b *milvusBench) ask(ctx context.Context, nq, callers int, call func(context.Context, ...entity.Vector) error) error {
	group, ctx := errgroup.WithContext(ctx)
	each := b.shared() / callers
	for caller := range callers {
		group.Go(func() error {
			for i := 0; i < each; i += nq {
				var queries []entity.Vector
				for j := range nq {
					queries = append(queries, entity.FloatVector(b.vectors.query(caller*each+i+j)))
				}
				if err := call(ctx, queries...); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// lists compares the classes of half the documents, up to 10,000, with a list of them.
func (b *milvusBench) lists(ctx context.Context) error {
	var ids, classes []string
	for i := 0; len(ids) < milvusIDs && i < b.rows(); i++ {
		if i%milvusClasses < milvusClasses/2 {
			ids = append(ids, strconv.Itoa(i))
		}
	}
	for class := range milvusClasses / 2 {
		classes = append(classes, strconv.Itoa(class))
	}
	var byID, byClass []float64
	for i := range max(1, b.Queries/4) {
		for _, way := range []struct {
			expression string
			took       *[]float64
		}{{"document in [" + strings.Join(ids, ",") + "]", &byID}, {"class in [" + strings.Join(classes, ",") + "]", &byClass}} {
			_, took, err := b.search(ctx, way.expression, b.vectors.query(i))
			if err != nil {
				return err
			}
			*way.took = append(*way.took, took)
		}
	}
	b.Figures["ids.qps"], b.Figures["class.qps"] = 1000/middle(byID), 1000/middle(byClass)
	b.Figures["ratio.class_to_id_list_qps"] = middle(byID) / middle(byClass)
	return nil
}
