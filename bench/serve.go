package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"sluice/bench/figures"
	"sluice/bench/load"
	"sluice/gpu/cpu"
)

const (
	openShare       = .8  // of the greatest throughput: the rate of the open loop
	openConnections = 200 // more than there are requests under way, unless the service falls behind
)

// ServeOptions says what Serve measures.
type ServeOptions struct {
	Model       string        // folder of the model that ours serves
	Precision   cpu.Precision // in which it does
	BatchTokens int           // that it runs at once
	Texts       []string      // of the requests to embed
	Each        int           // of them in a request (default 1)
	Ours        Service       // embeds
	Peers       []Service     // embed the same texts
	Search      *Service      // ours again; nil: searches are not measured
	Connections []int         // of the closed loops; the last saturates (default 1, 8, 64)
	Ramp        bool          // also rates from a tenth of what saturates ours to more than that
	Rounds      int           // turns of each service at each load (default 5)
	Turn        time.Duration // of one turn (default 2 s)
	Warmup      time.Duration // before each turn (default 300 ms)
	Log         io.Writer
}

func (o *ServeOptions) setDefaults() {
	o.Each = max(o.Each, 1)
	if o.Connections == nil {
		o.Connections = []int{1, 8, 64}
	}
	if o.Rounds <= 0 {
		o.Rounds = 5
	}
	if o.Turn <= 0 {
		o.Turn = 2 * time.Second
	}
	if o.Warmup <= 0 {
		o.Warmup = 300 * time.Millisecond
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
}

// Serve measures a daemon in closed loops and in an open one, the peers and the
// bare engine in between, turn by turn. The caller sets the file's Command.
//
// Figures of a service s at an endpoint e (embed, search) under load l (c8: a
// closed loop of 8 connections; load80: an open loop at 80 % of the throughput
// of the last closed one): s.e.l.p50_ms, p90, p95, p99, p99_9, max;
// requests_per_s and cpu_ms (of a request), medians over the rounds; rss_mb.
// Figures named ratio have .min and .max of the rounds beside their median:
// ratio.embed.l.requests_per_s.ours_to_peer and ratio.embed.l.p95.ours_to_peer,
// ratio.tokens_per_s.ours_to_engine and ratio.cpu.tokens.ours_to_engine (tokens
// per CPU second) at the last closed loop, and ratio.load80.p99_to_batch; so
// has overhead.p50_us, what a request takes longer at one connection than the
// model itself does. With Ramp s.e.rampP, at P % of the greatest throughput, has figures
// as any load, and offered_per_s and failed_share; s.e.knee is the step at
// which requests a second over the mean latency (Kleinrock's power) are
// greatest, and s.e.sustained_per_s the greatest rate that is answered to 95 %.
// s.e.l.stage.t.p50_ms, …, of a stage t that the server tells of;
// allocs_per_request and allocated_bytes_per_request where a service has an
// Admin address, medians. generator.e.late_p99_us is how late the open loop's
// requests were sent that a free connection waited for.
func Serve(ctx context.Context, o ServeOptions) (file figures.File, err error) {
	o.setDefaults()
	engine, err := newEngine(o.Model, o.Precision, o.Texts, o.BatchTokens)
	if err != nil {
		return file, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	m := &serveRun{o, newRecorder(ctx, o.Log)}
	m.Figures["tokens_per_text"] = engine.tokens
	if err := m.endpoint(ctx, "embed", engine, append([]Service{o.Ours}, o.Peers...)); err != nil {
		return m.File, err
	}
	if o.Search != nil {
		err = m.endpoint(ctx, "search", nil, []Service{*o.Search})
	}
	return m.File, err
}

// serveRun is one Serve.
type serveRun struct {
	ServeOptions
	recorder
}

// endpoint puts all loads on services that do the same, ours first. engine may
// be nil.
func (m *serveRun) endpoint(ctx context.Context, name string, engine *engine, services []Service) error {
	var last, most float64
	for _, n := range m.Connections {
		rate, err := m.closed(ctx, name, n, engine, services)
		if err != nil {
			return err
		}
		last, most = rate, max(most, rate)
	}
	if err := m.open(ctx, name, openShare*last, engine, services[0]); err != nil {
		return err
	}
	if !m.Ramp {
		return nil
	}
	return m.ramp(ctx, services[0].Name+"."+name, most, services[0])
}

// closed measures services, and the engine after the first of them, in closed
// loops of n connections. It returns the requests a second of ours.
func (m *serveRun) closed(ctx context.Context, endpoint string, n int, engine *engine, services []Service) (float64, error) {
	rounds, bare := make([][]served, len(services)), []called(nil)
	for range m.Rounds {
		for i, s := range services {
			t, err := s.run(ctx, load.Options{Connections: n, Duration: m.Turn, Warmup: m.Warmup})
			if err != nil {
				return 0, err
			}
			rounds[i] = append(rounds[i], t)
		}
		if engine != nil {
			c, err := engine.run(ctx, n > 1, m.Turn)
			if err != nil {
				return 0, err
			}
			bare = append(bare, c)
		}
	}
	m.reportClosed(fmt.Sprintf("%s.c%d", endpoint, n), services, rounds)
	if engine != nil {
		m.compareEngine(n, engine.tokens, rounds[0], bare)
	}
	return figures.MedianOf(perRound(rounds[0], load.Result.Rate)), nil
}

func (m *serveRun) reportClosed(place string, services []Service, rounds [][]served) {
	for i, s := range services {
		m.report(s.Name+"."+place, rounds[i])
	}
	for i, peer := range services[1:] {
		m.compare(place, peer.Name, rounds[0], rounds[i+1])
	}
}

// open measures a service at a rate, and the engine's batches.
func (m *serveRun) open(ctx context.Context, endpoint string, rate float64, engine *engine, s Service) error {
	var turns []served
	var ratios []float64
	for round := range m.Rounds {
		t, err := s.run(ctx, load.Options{Connections: openConnections, Rate: rate, Seed: uint64(round), Duration: m.Turn, Warmup: m.Warmup})
		if err != nil {
			return err
		}
		turns = append(turns, t)
		if engine == nil {
			continue
		}
		batch, err := engine.run(ctx, true, m.Turn/4)
		if err != nil {
			return err
		}
		ratios = append(ratios, t.Latency.Quantile(.99).Seconds()/batch.latency.Quantile(.5).Seconds())
	}
	m.report(s.Name+"."+endpoint+".load80", turns)
	m.Figures["generator."+endpoint+".late_p99_us"] = microseconds(merged(turns, func(r load.Result) load.Histogram { return r.Late }).Quantile(.99))
	if engine != nil {
		m.spread("ratio.load80.p99_to_batch", ratios)
	}
	return nil
}

// compare records ours beside a peer.
func (m *serveRun) compare(place, peer string, ours, theirs []served) {
	p95 := func(r load.Result) float64 { return r.Latency.Quantile(.95).Seconds() }
	to := "." + m.Ours.Name + "_to_" + peer
	m.spread("ratio."+place+".requests_per_s"+to, quotients(perRound(ours, load.Result.Rate), perRound(theirs, load.Result.Rate)))
	m.spread("ratio."+place+".p95"+to, quotients(perRound(ours, p95), perRound(theirs, p95)))
}

// compareEngine records ours beside the bare engine: the latency at one
// connection, the throughput at the last closed loop.
func (m *serveRun) compareEngine(connections int, tokensPerText float64, ours []served, engine []called) {
	if connections == 1 {
		m.spread("overhead.p50_us", differences(ours, engine))
		m.Figures["engine.single.p50_ms"] = milliseconds(latencies(engine).Quantile(.5))
		return
	}
	var theirs, theirsCPU, tokens, tokensCPU []float64
	for i, t := range ours {
		perRequest := float64(m.Each) * tokensPerText
		tokens = append(tokens, t.Rate()*perRequest)
		tokensCPU = append(tokensCPU, float64(t.Sent)*perRequest/t.usage.CPU.Seconds())
		theirs = append(theirs, float64(engine[i].tokens)/engine[i].wall.Seconds())
		theirsCPU = append(theirsCPU, float64(engine[i].tokens)/engine[i].cpu.Seconds())
	}
	name := m.Ours.Name
	m.Median(name+".embed.tokens_per_s", tokens)
	m.Median(name+".embed.tokens_per_cpu_s", tokensCPU)
	m.Median("engine.tokens_per_s", theirs)
	m.Median("engine.tokens_per_cpu_s", theirsCPU)
	m.Figures["engine.batch_ms"] = milliseconds(latencies(engine).Quantile(.5))
	m.spread("ratio.tokens_per_s."+name+"_to_engine", quotients(tokens, theirs))
	if m.Ours.PID != 0 {
		m.spread("ratio.cpu.tokens."+name+"_to_engine", quotients(tokensCPU, theirsCPU))
	}
}

// differences are ours less the engine's median latency, in µs, by round.
func differences(ours []served, engine []called) (d []float64) {
	for i, t := range ours {
		d = append(d, microseconds(t.Latency.Quantile(.5)-engine[i].latency.Quantile(.5)))
	}
	return d
}

func latencies(turns []called) load.Histogram {
	h := load.NewHistogram()
	for _, c := range turns {
		h.Merge(c.latency)
	}
	return h
}

func perRound(turns []served, f func(load.Result) float64) []float64 {
	return each(turns, func(t served) float64 { return f(t.Result) })
}

func each[T any](turns []T, f func(T) float64) (all []float64) {
	for _, t := range turns {
		all = append(all, f(t))
	}
	return all
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }
func microseconds(d time.Duration) float64 { return d.Seconds() * 1e6 }
