package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"sluice/bench/figures"
	"sluice/filter"
	"sluice/index"
	"sluice/index/local"
	"sluice/index/text"
)

// LexicalOptions says what Lexical measures.
type LexicalOptions struct {
	Data     string // folder with texts (.md, .txt, .tar.xz)
	Cache    string // folder for the built index
	Passages int    // default 300,000
	Queries  int    // of a turn (default 300)
	Rounds   int    // turns of each contestant at each filter (default 5)
	K        int    // default 100
	Peers    *Peers // nil: this program alone
	Log      io.Writer
}

func (o *LexicalOptions) setDefaults() {
	if o.Passages <= 0 {
		o.Passages = 300_000
	}
	if o.Queries <= 0 {
		o.Queries = 300
	}
	if o.Rounds <= 0 {
		o.Rounds = 5
	}
	if o.K <= 0 {
		o.K = 100
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
}

// Lexical measures BM25 over passages with one thread, unfiltered and with
// filters, the peers in between, turn by turn. Each contestant answers the
// same queries over the same terms; ours also analyses the text of the query.
// The caller sets the file's Command.
//
// Figures of a contestant c at a filter f (100, 50, 10, 1, 0.1: percent of the
// documents): c.lexical.f.qps (median of the rounds), .p50_ms and .p95_ms (over
// all rounds), .queries_per_cpu_s. ratio.lexical.f.qps_to_p is the median of
// the rounds' ratios to peer p, with .min and .max, ratio.cpu.… that of the
// medians of queries per CPU second; p.lexical.f.overlap is the
// share of its results that ours are.
func Lexical(ctx context.Context, o LexicalOptions) (file figures.File, err error) {
	o.setDefaults()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	b, err := o.open(ctx)
	if err != nil {
		return file, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	file = b.File
	for _, name := range []string{"100", "50", "10", "1", "0.1"} {
		if err := b.measure(ctx, name); err != nil {
			return file, err
		}
	}
	return file, nil
}

// lexicalBench holds the contestants.
type lexicalBench struct {
	LexicalOptions
	recorder
	passages string // file
	queries  []lexicalQuery
	index    *local.Index
	reader   index.Reader
	classes  []int // of each document
	peers    *peerProcess
}

func (o LexicalOptions) open(ctx context.Context) (_ *lexicalBench, err error) {
	b := &lexicalBench{LexicalOptions: o, recorder: newRecorder(ctx, o.Log)}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	analyzer, err := text.New(text.Default)
	if err != nil {
		return nil, err
	}
	passages, path, err := cachedPassages(o.Data, o.Cache, o.Passages, analyzer)
	if err != nil {
		return nil, err
	}
	b.passages = path
	b.queries = makeQueries(passages, o.Queries, analyzer)
	for i := 0; i < len(passages); i += passagesPerDoc {
		b.classes = append(b.classes, passages[i].Class)
	}
	fmt.Fprintf(o.Log, "%d passages, %d documents\n", len(passages), len(b.classes))
	if err := b.openIndex(ctx, analyzer, passages); err != nil {
		return nil, err
	}
	return b, b.startPeers(ctx)
}

// openIndex opens what an earlier run built of the same passages, or builds it.
func (b *lexicalBench) openIndex(ctx context.Context, analyzer text.Analyzer, passages []passage) (err error) {
	dir := strings.TrimSuffix(b.passages, filepath.Ext(b.passages)) + ".index"
	options := local.Options{Dimensions: 1, Analyzer: analyzer, Log: slog.New(slog.DiscardHandler)}
	b.index, err = local.Open(dir, options)
	if errors.Is(err, index.ErrRebuild) {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		b.index, err = local.Open(dir, options)
	}
	if err != nil {
		return err
	}
	if b.index.Applied() == 0 {
		if err := b.build(ctx, passages); err != nil {
			return err
		}
	}
	stats := b.index.Stats()
	fmt.Fprintf(b.Log, "index: %d rows in %d segments and memory, %.0f MB\n", stats.Rows, stats.Segments, float64(stats.Bytes)/(1<<20))
	b.Figures["lexical.index_bytes"] = float64(b.index.Stats().Bytes)
	b.reader, err = b.index.Reader()
	return err
}

func (b *lexicalBench) build(ctx context.Context, passages []passage) error {
	start, used := time.Now(), cpuTime()
	documents := documentsOf(passages)
	for batch := range slices.Chunk(documents, 512) {
		if err := b.index.Apply(ctx, index.Batch{Put: batch}); err != nil {
			return err
		}
	}
	if err := b.index.Apply(ctx, index.Batch{Epoch: 1}); err != nil {
		return err
	}
	if err := b.index.Flush(ctx); err != nil {
		return err
	}
	b.Figures["lexical.build_cpu_s"] = (cpuTime() - used).Seconds()
	fmt.Fprintf(b.Log, "built in %.1f s, %.1f CPU s\n", time.Since(start).Seconds(), b.Figures["lexical.build_cpu_s"])
	return nil
}

func documentsOf(passages []passage) (documents []index.Document) {
	for i, p := range passages {
		if i%passagesPerDoc == 0 {
			documents = append(documents, index.Document{Ordinal: uint32(i / passagesPerDoc)})
		}
		last := &documents[len(documents)-1]
		last.Rows = append(last.Rows, index.Row{Row: uint32(i), Text: p.Text, Vector: []float32{1}})
	}
	return documents
}

func (b *lexicalBench) startPeers(ctx context.Context) (err error) {
	if b.Peers != nil {
		b.peers, err = b.Peers.start(ctx, "--passages", b.passages)
	}
	return err
}

func (b *lexicalBench) close() (err error) {
	if b.reader != nil {
		b.reader.Close()
	}
	if b.index != nil {
		err = b.index.Close()
	}
	if b.peers != nil {
		err = errors.Join(err, b.peers.Close())
	}
	return err
}

// lexicalTurn is what one contestant took for all queries.
type lexicalTurn struct {
	Seconds    []float64  `json:"seconds"`
	CPUSeconds float64    `json:"cpu_seconds"`
	Hits       [][]uint32 `json:"hits"`
}

func (t lexicalTurn) qps() float64 { return float64(len(t.Seconds)) / sum(t.Seconds) }

func sum(x []float64) (total float64) {
	for _, v := range x {
		total += v
	}
	return total
}

// lexicalFilter is one of passageFilters, or all.
type lexicalFilter struct {
	name    string // of the figures
	term    string // of the peers; "" for all
	classes []int
	allowed filter.Set
}

func (b *lexicalBench) filter(name string) lexicalFilter {
	f := lexicalFilter{name: name}
	limit := passageClasses
	for _, p := range passageFilters {
		if p.name == name {
			f.term, limit = name, p.classes
		}
	}
	var ordinals []uint32
	for ordinal, class := range b.classes {
		if class < limit {
			ordinals = append(ordinals, uint32(ordinal))
		}
	}
	for class := range limit {
		f.classes = append(f.classes, class)
	}
	f.allowed = filter.SetOf(ordinals...)
	return f
}

func (b *lexicalBench) measure(ctx context.Context, name string) error {
	f := b.filter(name)
	if f.allowed.Len() == 0 {
		fmt.Fprintf(b.Log, "%4s %% left out: none of so few documents is in it\n", name)
		return nil
	}
	names := []string{"sluice"}
	if b.peers != nil {
		for _, peer := range b.peers.names {
			if b.Peers.chosen(peer) && (f.term != "" || peer == b.peers.names[0]) {
				names = append(names, peer)
			}
		}
	}
	turns := make([][]lexicalTurn, len(names))
	for round := range b.Rounds + 1 { // the first warms up, and compares results
		for i, name := range names {
			t, err := b.turn(ctx, name, f, round == 0)
			if err != nil {
				return fmt.Errorf("measuring %s at %s %%: %w", name, f.name, err)
			}
			turns[i] = append(turns[i], t)
		}
	}
	b.report(f, names, turns)
	return nil
}

func (b *lexicalBench) turn(ctx context.Context, name string, f lexicalFilter, results bool) (t lexicalTurn, err error) {
	if name == "sluice" {
		return b.own(ctx, f, results)
	}
	request := struct {
		Peer    string     `json:"peer"`
		Queries [][]string `json:"queries"`
		K       int        `json:"k"`
		Filter  string     `json:"filter"`
		Classes []int      `json:"classes"`
		Results bool       `json:"results"`
	}{name, nil, b.K, f.term, f.classes, results}
	for _, q := range b.queries {
		request.Queries = append(request.Queries, q.terms)
	}
	return t, b.peers.ask(request, &t)
}

func (b *lexicalBench) own(ctx context.Context, f lexicalFilter, results bool) (t lexicalTurn, err error) {
	used := cpuTime()
	for _, q := range b.queries {
		start := time.Now()
		hits, err := b.reader.Lexical(ctx, f.allowed, q.text, b.K)
		t.Seconds = append(t.Seconds, time.Since(start).Seconds())
		if err != nil {
			return t, err
		}
		if results {
			rows := make([]uint32, len(hits))
			for i, h := range hits {
				rows[i] = h.Row
			}
			t.Hits = append(t.Hits, rows)
		}
	}
	t.CPUSeconds = (cpuTime() - used).Seconds()
	return t, nil
}

func (b *lexicalBench) report(f lexicalFilter, names []string, turns [][]lexicalTurn) {
	rates, perCPUs := make([][]float64, len(names)), make([]float64, len(names))
	for i, name := range names {
		var all, perCPU []float64
		for _, t := range turns[i][1:] {
			rates[i] = append(rates[i], t.qps())
			all = append(all, t.Seconds...)
			perCPU = append(perCPU, float64(len(t.Seconds))/t.CPUSeconds)
		}
		slices.Sort(all)
		prefix := name + ".lexical." + f.name
		b.Median(prefix+".qps", rates[i])
		perCPUs[i] = b.Median(prefix+".queries_per_cpu_s", perCPU)
		b.Figures[prefix+".p50_ms"] = all[len(all)/2] * 1000
		b.Figures[prefix+".p95_ms"] = all[len(all)*95/100] * 1000
		fmt.Fprintf(b.Log, "%4s %% %-12s %8.0f QPS (%.0f to %.0f), %.0f per CPU s, p50 %.3f ms, p95 %.3f ms", f.name, name,
			figures.MedianOf(rates[i]), slices.Min(rates[i]), slices.Max(rates[i]), perCPUs[i], b.Figures[prefix+".p50_ms"], b.Figures[prefix+".p95_ms"])
		if i > 0 {
			b.Figures["ratio.cpu.lexical."+f.name+".qps_to_"+name] = perCPUs[0] / perCPUs[i]
			ratio := "ratio.lexical." + f.name + ".qps_to_" + name
			q := quotients(rates[0], rates[i])
			b.Spread(ratio, q)
			b.Figures[prefix+".overlap"] = overlap(turns[0][0].Hits, turns[i][0].Hits)
			fmt.Fprintf(b.Log, ", ours %.2f × (%.2f to %.2f), overlap %.4f", figures.MedianOf(q), slices.Min(q), slices.Max(q), b.Figures[prefix+".overlap"])
		}
		fmt.Fprintln(b.Log)
	}
}

// overlap is which share of theirs ours are, over all queries.
func overlap(ours, theirs [][]uint32) float64 {
	both, all := 0, 0
	for i := range theirs {
		for _, row := range theirs[i] {
			all++
			if slices.Contains(ours[i], row) {
				both++
			}
		}
	}
	return float64(both) / float64(max(all, 1))
}
