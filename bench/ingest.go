package bench

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"sluice/bench/figures"
	"sluice/bench/load"
	"sluice/client"
	"sluice/index/text"
)

const (
	ingestPassages = 8   // of a document
	wordsOfAPage   = 500 // by convention
)

// IngestOptions says what Ingest measures.
type IngestOptions struct {
	Data      string // folder with texts (.md, .txt, .tar.xz)
	Cache     string // folder for the passages made of them
	Documents int    // of eight passages of about 90 words each (default 200)
	Streams   int    // requests side by side (default 4)
	Rounds    int    // default 3
	Log       io.Writer

	API func(tenant string) (*client.Client, error) // of a daemon, as an administrator
	PID int                                         // its process
}

func (o *IngestOptions) setDefaults() {
	if o.Documents <= 0 {
		o.Documents = 200
	}
	if o.Streams <= 0 {
		o.Streams = 4
	}
	if o.Rounds <= 0 {
		o.Rounds = 3
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
}

// Ingest measures how fast a daemon takes documents, all in bulk requests: those
// whose text it has never seen, and the same again in another collection of the
// tenant, whose embeddings are there. Each round is a tenant of its own. The
// caller sets the file's Command.
//
// Figures of k (new, known): k.documents_per_s, k.pages_per_s (of 500 words),
// k.mb_per_s (of text), k.cpu_ms of a document, medians over the rounds, the
// first with .min and .max; k.ack.p50_ms, …, k.ack.max_ms, from sending a
// document to its acknowledgement, when it is durable; rss_mb at the end.
func Ingest(ctx context.Context, o IngestOptions) (file figures.File, err error) {
	o.setDefaults()
	analyzer, err := text.New(text.Default)
	if err != nil {
		return file, err
	}
	passages, _, err := cachedPassages(o.Data, o.Cache, o.Documents*ingestPassages, analyzer)
	if err != nil {
		return file, err
	}
	b := &ingestBench{IngestOptions: o, recorder: newRecorder(ctx, o.Log)}
	for i := range o.Documents {
		b.add(i, passages[i*ingestPassages:(i+1)*ingestPassages])
	}
	return b.File, b.run(ctx)
}

type ingestBench struct {
	IngestOptions
	recorder
	documents    []client.Document
	words, bytes int // of all
}

func (b *ingestBench) add(i int, passages []passage) {
	var texts []string
	for _, p := range passages {
		texts = append(texts, p.Text)
	}
	d := client.Document{Key: strconv.Itoa(i), Format: "text", Text: strings.Join(texts, "\n\n")}
	b.documents = append(b.documents, d)
	b.words, b.bytes = b.words+len(strings.Fields(d.Text)), b.bytes+len(d.Text)
}

// ingestTurn is all documents once.
type ingestTurn struct {
	took, cpu time.Duration
	ack       load.Histogram
}

func (b *ingestBench) run(ctx context.Context) error {
	turns := map[string][]ingestTurn{}
	for round := range b.Rounds {
		api, err := b.API(fmt.Sprintf("round-%d", round))
		if err != nil {
			return err
		}
		defer api.CloseIdle()
		for _, kind := range []string{"new", "known"} {
			t, err := b.turn(ctx, api, kind)
			if err != nil {
				return fmt.Errorf("ingesting %s documents: %w", kind, err)
			}
			turns[kind] = append(turns[kind], t)
		}
	}
	for _, kind := range []string{"new", "known"} {
		b.reportTurns(kind, turns[kind])
	}
	usage, err := load.UsageOf(b.PID)
	b.Figures["rss_mb"] = float64(usage.Resident) / (1 << 20)
	return err
}

// turn writes all documents into a new collection.
func (b *ingestBench) turn(ctx context.Context, api *client.Client, collection string) (t ingestTurn, err error) {
	if _, err := api.CreateCollection(ctx, collection, client.CollectionSettings{}); err != nil {
		return t, err
	}
	before, err := load.UsageOf(b.PID)
	if err != nil {
		return t, err
	}
	began := time.Now()
	streams := make([]*ingestStream, b.Streams)
	group, writing := errgroup.WithContext(ctx)
	for i := range streams {
		streams[i] = &ingestStream{sent: map[string]time.Time{}, ack: load.NewHistogram()}
		group.Go(func() error {
			return api.Ingest(writing, collection, streams[i].documents(b, i), streams[i].acknowledged)
		})
	}
	if err := group.Wait(); err != nil {
		return t, err
	}
	t.took, t.ack = time.Since(began), load.NewHistogram()
	for _, s := range streams {
		t.ack.Merge(s.ack)
	}
	after, err := load.UsageOf(b.PID)
	t.cpu = after.CPU - before.CPU
	if got := t.ack.Count(); err == nil && got != len(b.documents) {
		err = fmt.Errorf("%d of %d documents were acknowledged", got, len(b.documents))
	}
	return t, err
}

// ingestStream is one request. Documents are sent on one goroutine and
// acknowledged on another.
type ingestStream struct {
	mu   sync.Mutex
	sent map[string]time.Time
	ack  load.Histogram
}

// documents is every so manieth, from the first on.
func (s *ingestStream) documents(b *ingestBench, first int) iter.Seq2[client.Document, error] {
	return func(yield func(client.Document, error) bool) {
		for i := first; i < len(b.documents); i += b.Streams {
			s.mu.Lock()
			s.sent[b.documents[i].Key] = time.Now()
			s.mu.Unlock()
			if !yield(b.documents[i], nil) {
				return
			}
		}
	}
}

func (s *ingestStream) acknowledged(r client.WriteResult) error {
	if r.Error != nil {
		return r.Error
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ack.Record(time.Since(s.sent[r.Key]))
	return nil
}

func (b *ingestBench) reportTurns(kind string, turns []ingestTurn) {
	per := func(n float64) []float64 {
		return each(turns, func(t ingestTurn) float64 { return n / t.took.Seconds() })
	}
	b.spread(kind+".documents_per_s", per(float64(len(b.documents))))
	b.Median(kind+".mb_per_s", per(float64(b.bytes)/1e6))
	b.Median(kind+".pages_per_s", per(float64(b.words)/wordsOfAPage))
	b.Median(kind+".cpu_ms", each(turns, func(t ingestTurn) float64 { return milliseconds(t.cpu) / float64(len(b.documents)) }))
	ack := load.NewHistogram()
	for _, t := range turns {
		ack.Merge(t.ack)
	}
	b.Histograms[kind+".ack"] = ack.String()
	for _, q := range quantiles {
		b.Figures[kind+".ack."+q.name+"_ms"] = milliseconds(ack.Quantile(q.of))
	}
	b.Figures[kind+".ack.max_ms"] = milliseconds(ack.Max())
	fmt.Fprintf(b.log, "%-8s %.1f pages/s, %.2f MB/s, %.1f CPU ms a document; acknowledged after p50 %.0f, p95 %.0f, max %.0f ms\n", kind,
		b.Figures[kind+".pages_per_s"], b.Figures[kind+".mb_per_s"], b.Figures[kind+".cpu_ms"],
		milliseconds(ack.Quantile(.5)), milliseconds(ack.Quantile(.95)), milliseconds(ack.Max()))
}
