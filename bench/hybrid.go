package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sluice/bench/figures"
	"sluice/bench/load"
	"sluice/client"
	"sluice/index/text"
)

const (
	hybridResults    = 10
	hybridCollection = "passages"
	busyConnections  = 4 // of the closed loop that keeps the daemon busy while documents are revoked
)

// HybridOptions says what Hybrid measures.
type HybridOptions struct {
	Data     string        // folder with texts (.md, .txt, .tar.xz)
	Cache    string        // folder for the daemon's data, which a later run takes up
	Name     string        // of the model and its precision, part of that folder's name
	Passages int           // documents of one passage each (default 300,000)
	Filters  []string      // percent of them that who searches may read, in turn: 0.1, 1, 10 (default), 50 or 100
	Rate     float64       // searches a second (default 50)
	Strategy string        // of the searches (default hybrid)
	Beside   []string      // strategies that are compared with it, alone and in turns
	Rounds   int           // turns of each load (default 5)
	Turn     time.Duration // of one turn (default 10 s)
	Warmup   time.Duration // before each turn (default 500 ms)
	Log      io.Writer
	Watch    func(what string, answered int, since time.Duration) // as of a Service

	// Start starts a daemon, without policies, on a data directory.
	Start func(ctx context.Context, dir string) (Daemon, error)
}

// Daemon is one that runs on this machine.
type Daemon struct {
	URL   string
	PID   int
	Token func(ctx context.Context, subject string, groups, roles []string) (string, error)
	Stop  func() error
}

func (o *HybridOptions) setDefaults() {
	if o.Passages <= 0 {
		o.Passages = 300_000
	}
	if len(o.Filters) == 0 {
		o.Filters = []string{"10"}
	}
	if o.Rate <= 0 {
		o.Rate = 50
	}
	if o.Strategy == "" {
		o.Strategy = "hybrid"
	}
	if o.Rounds <= 0 {
		o.Rounds = 5
	}
	if o.Turn <= 0 {
		o.Turn = 10 * time.Second
	}
	if o.Warmup <= 0 {
		o.Warmup = 500 * time.Millisecond
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
}

// Hybrid measures searches through HTTP among many passages: alone, beside a
// writer that never pauses, and what revocations take beside searches. All
// searches have other words; they come at a rate, whatever becomes of those
// before. Turns of the loads alternate. The caller sets the file's Command.
//
// Figures: hybrid.idle.… and hybrid.ingesting.… as those of a service under a
// load in Serve; ratio.hybrid.p95.ingesting_to_idle, the median of the rounds,
// with .min and .max; ingesting.documents_per_s; revocation.c.p50_ms and
// .p95_ms, from the request to its acknowledgement, where c is idle, rate
// (searches at the rate) or busy (a closed loop); with Beside strategy.S.… as
// those of a service, and ratio.p50.S_to_STRATEGY and ratio.p95.… by rounds; visible.F, how many documents
// the searcher of a filter may read; hybrid.rss_mb.
func Hybrid(ctx context.Context, o HybridOptions) (file figures.File, err error) {
	o.setDefaults()
	analyzer, err := text.New(text.Default)
	if err != nil {
		return file, err
	}
	passages, path, err := cachedPassages(o.Data, o.Cache, o.Passages, analyzer)
	if err != nil {
		return file, err
	}
	dir := strings.TrimSuffix(path, filepath.Ext(path)) + "." + o.Name + ".data"
	fmt.Fprintf(o.Log, "%d passages; the daemon's data is in %s\n", len(passages), dir)
	daemon, err := o.Start(ctx, dir)
	if err != nil {
		return file, err
	}
	defer func() { err = errors.Join(err, daemon.Stop()) }()
	b := &hybridBench{HybridOptions: o, recorder: newRecorder(ctx, o.Log), daemon: daemon, passages: passages}
	return b.File, b.run(ctx, analyzer)
}

// hybridBench is one Hybrid.
type hybridBench struct {
	HybridOptions
	recorder
	daemon   Daemon
	passages []passage
	writer   *client.Client
	turns    int // so far
}

func (b *hybridBench) run(ctx context.Context, analyzer text.Analyzer) error {
	token, err := b.daemon.Token(ctx, "writer", []string{"100"}, []string{"admin"})
	if err != nil {
		return err
	}
	if b.writer, err = client.New(b.daemon.URL, client.WithToken(token)); err != nil {
		return err
	}
	defer b.writer.CloseIdle()
	if err := b.ingest(ctx); err != nil {
		return fmt.Errorf("ingesting the passages: %w", err)
	}
	searches, err := b.searches(ctx, analyzer, b.Strategy)
	if err != nil {
		return err
	}
	if err := b.comparing(ctx, analyzer, searches); err != nil {
		return err
	}
	if err := b.serving(ctx, searches); err != nil {
		return err
	}
	return b.revoking(ctx, searches)
}

// searches are by a reader of each share in turn, each for other words, as many
// as one turn takes.
func (b *hybridBench) searches(ctx context.Context, analyzer text.Analyzer, strategy string) (Service, error) {
	tokens := make([]string, len(b.Filters))
	for i, share := range b.Filters {
		var err error
		if tokens[i], err = b.daemon.Token(ctx, "reader-"+share, []string{share}, []string{"read"}); err != nil {
			return Service{}, err
		}
	}
	count := int(2*b.Rate*(b.Turn+b.Warmup).Seconds()) + 1
	var calls []Call
	for i, q := range makeQueries(b.passages, count, analyzer) {
		calls = append(calls, Call{Token: tokens[i%len(tokens)], Body: client.SearchRequest{Query: q.text, K: hybridResults, Strategy: strategy}})
	}
	for i, token := range tokens {
		if err := b.see(ctx, token, b.Filters[i], calls[0].Body.(client.SearchRequest)); err != nil {
			return Service{}, err
		}
	}
	s, err := NewService("hybrid", b.daemon.URL+"/v1/collections/"+hybridCollection+"/search", b.daemon.PID, calls)
	s.Watch = b.Watch
	return s, err
}

// see makes sure that a search is answered in full.
func (b *hybridBench) see(ctx context.Context, token, share string, r client.SearchRequest) error {
	reader, err := client.New(b.daemon.URL, client.WithToken(token))
	if err != nil {
		return err
	}
	defer reader.CloseIdle()
	response, err := reader.Search(ctx, hybridCollection, r)
	if err != nil {
		return err
	}
	if len(response.Results) < min(hybridResults, response.Counts.Visible) || len(response.Degraded) > 0 {
		return fmt.Errorf("a search answers with %d results, degraded %v", len(response.Results), response.Degraded)
	}
	b.Figures["visible."+share] = float64(response.Counts.Visible)
	fmt.Fprintf(b.log, "%d documents, %d of them visible to whoever searches, by strategy %s\n", len(b.passages), response.Counts.Visible, response.Strategy)
	return nil
}

// comparing measures searches by several strategies, in turns.
func (b *hybridBench) comparing(ctx context.Context, analyzer text.Analyzer, own Service) error {
	if len(b.Beside) == 0 {
		return nil
	}
	services := []Service{own}
	for _, strategy := range b.Beside {
		s, err := b.searches(ctx, analyzer, strategy)
		if err != nil {
			return err
		}
		services = append(services, s)
	}
	turns := make([][]served, len(services))
	for range b.Rounds {
		for i, s := range services {
			t, err := b.turn(ctx, s, b.Rate)
			if err != nil {
				return err
			}
			turns[i] = append(turns[i], t)
		}
	}
	b.reportComparison(turns)
	return nil
}

func (b *hybridBench) reportComparison(turns [][]served) {
	for i, strategy := range append([]string{b.Strategy}, b.Beside...) {
		b.report("strategy."+strategy, turns[i])
		if i == 0 {
			continue
		}
		for name, q := range map[string]float64{"p50": .5, "p95": .95} {
			at := func(r load.Result) float64 { return r.Latency.Quantile(q).Seconds() }
			b.spread("ratio."+name+"."+strategy+"_to_"+b.Strategy, quotients(perRound(turns[i], at), perRound(turns[0], at)))
		}
	}
}

// serving measures searches alone and beside a writer.
func (b *hybridBench) serving(ctx context.Context, searches Service) error {
	var idle, ingesting []served
	var rates []float64
	for range b.Rounds {
		alone, err := b.turn(ctx, searches, b.Rate)
		if err != nil {
			return err
		}
		var beside served
		rate, err := b.whileIngesting(ctx, func() (err error) {
			beside, err = b.turn(ctx, searches, b.Rate)
			return err
		})
		if err != nil {
			return err
		}
		idle, ingesting, rates = append(idle, alone), append(ingesting, beside), append(rates, rate)
	}
	b.report("hybrid.idle", idle)
	b.report("hybrid.ingesting", ingesting)
	p95 := func(r load.Result) float64 { return r.Latency.Quantile(.95).Seconds() }
	b.spread("ratio.hybrid.p95.ingesting_to_idle", quotients(perRound(ingesting, p95), perRound(idle, p95)))
	b.spread("ingesting.documents_per_s", rates)
	return nil
}

// turn is one turn of searches at a rate, or in a closed loop where that is 0.
func (b *hybridBench) turn(ctx context.Context, searches Service, rate float64) (served, error) {
	b.turns++
	o := load.Options{Connections: openConnections, Rate: rate, Seed: uint64(b.turns), Duration: b.Turn, Warmup: b.Warmup}
	if rate == 0 {
		o.Connections = busyConnections
	}
	return searches.run(ctx, o)
}

// revoking measures revocations alone, beside searches at the rate, and beside
// searches that follow each other without a pause.
func (b *hybridBench) revoking(ctx context.Context, searches Service) error {
	took := map[string][]time.Duration{}
	for range b.Rounds {
		for _, c := range []struct {
			name string
			load func() error
		}{
			{"idle", func() error { return sleep(ctx, b.Turn) }},
			{"rate", func() error { _, err := b.turn(ctx, searches, b.Rate); return err }},
			{"busy", func() error { _, err := b.turn(ctx, searches, 0); return err }},
		} {
			some, err := b.whileRevoking(ctx, c.load)
			if err != nil {
				return err
			}
			took[c.name] = append(took[c.name], some...)
		}
	}
	for _, name := range []string{"idle", "rate", "busy"} {
		all := slices.Sorted(slices.Values(took[name]))
		p50, p95 := milliseconds(all[len(all)/2]), milliseconds(all[len(all)*95/100])
		b.Figures["revocation."+name+".p50_ms"], b.Figures["revocation."+name+".p95_ms"] = p50, p95
		fmt.Fprintf(b.log, "revocation.%-33s %8d revocations  p50 %.2f  p95 %.2f ms\n", name, len(all), p50, p95)
	}
	return nil
}
