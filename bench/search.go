package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"

	"sluice/bench/figures"
	"sluice/index/local/ivf"
	"sluice/kernels/simd"
)

const (
	neighbours   = 10 // that a search asks for
	pointFilters = 4  // of one share, which the queries have in turn
)

// SearchOptions says what Search measures.
type SearchOptions struct {
	Vectors VectorOptions
	Queries int // of a turn (default 200)
	Rounds  int // turns of each contestant at each filter (default 5)
	Peers   *Peers
	Log     io.Writer
}

func (o *SearchOptions) setDefaults() {
	if o.Queries <= 0 {
		o.Queries = 200
	}
	if o.Rounds <= 0 {
		o.Rounds = 5
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	o.Vectors.Log = o.Log
}

// Search measures the dense leg of the embedded index with one thread under
// filters, the peers in between, turn by turn. Every row is a document. Of a
// peer's settings the cheapest count that reach a recall of .95, .97 and .99,
// chosen on the same queries; ours is set to the same recall, and by default to
// .99 beside those of .95. The caller sets the file's Command.
//
// Figures of a contestant c under filters of kind d (random, correlated: whole
// topics are allowed) that allow p percent (0.01 to 100); ours answers query by
// query, a peer all queries of a filter in one call, both again and again for a
// tenth of a second: c.d.selp.recall@10
// against an exact search, .qps and .queries_per_cpu_s (medians of the rounds),
// .p50_ms, .p95_ms, .p50_cpu_ms and .p95_cpu_ms (query by query); of a peer
// also .setting; and the same as c.d.selp.at0.95, at0.97 and at0.99.
//
// selp.recall@10, .qps and so on are ours, the worse of both kinds.
// best_peer.selp.qps is that of the peer that does the most queries a CPU
// second of those that reach .95, and ratio.selp.qps_to_best_peer the median of
// the rounds' ratios to it, with .min and .max; ratio.cpu.selp. the same in CPU
// time, ratio.selp.p95_cpu_to_best_peer ours over the peer's, and
// ratio.cpu.selp.qps_to_best_peer.at0.95, at0.97 and at0.99, both at that recall:
// of both kinds the one with the smaller ratio in CPU time.
//
// build_cpu_s, c.build_cpu_s and ratio.build_to_hnswlib are CPU time, of the run
// that built the index; bytes_per_vector is the memory that an open index and
// its searches take without the files that are mapped, disk_bytes_per_vector
// all files, open_ms the time to open the index.
func Search(ctx context.Context, o SearchOptions) (file figures.File, err error) {
	o.setDefaults()
	b, err := o.open(ctx)
	if err != nil {
		return file, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	file = b.File
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, share := range []float64{0.0001, 0.001, 0.01, 0.1, 0.5, 1} {
		if err := b.measureShare(ctx, share); err != nil {
			return file, fmt.Errorf("measuring searches among %g %%: %w", 100*share, err)
		}
	}
	return file, nil
}

// searchBench holds the contestants.
type searchBench struct {
	SearchOptions
	recorder
	vectors *Vectors
	dot     func(a, b []float32) float32
	own     *searched   // as it is by default
	set     []*searched // by target: what is compared there
	peers   *densePeers // nil: none
	scratch string      // folder for the filters
}

func (o SearchOptions) open(ctx context.Context) (_ *searchBench, err error) {
	b := &searchBench{SearchOptions: o, dot: simd.Best().Dot, recorder: newRecorder(ctx, o.Log)}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if b.scratch, err = os.MkdirTemp("", "sluice-bench-"); err != nil {
		return nil, err
	}
	if b.vectors, err = LoadVectors(ctx, o.Vectors); err != nil {
		return nil, err
	}
	if held := len(b.vectors.Queries) / b.vectors.Dims; held < o.Queries {
		return nil, fmt.Errorf("%d queries are held out, not %d", held, o.Queries)
	}
	dir := filepath.Join(o.Vectors.Cache, "search-"+b.vectors.digest())
	if b.own, err = openSearched(ctx, dir, b.vectors, o.Log, b.Figures); err != nil {
		return nil, err
	}
	return b, b.openContestants(ctx, dir)
}

// openContestants opens ours at each target, and the peers.
func (b *searchBench) openContestants(ctx context.Context, dir string) error {
	for i, target := range targets {
		at, err := b.own.at(target.own, i)
		if err != nil {
			return err
		}
		b.set = append(b.set, at)
	}
	if b.Peers == nil {
		return nil
	}
	var err error
	if b.peers, err = b.Peers.dense(ctx, dir, b.scratch, b.vectors); err != nil {
		return err
	}
	b.recordBuilds()
	return nil
}

func (b *searchBench) close() (err error) {
	for _, s := range b.set {
		err = errors.Join(err, s.close(), os.RemoveAll(s.dir))
	}
	if b.own != nil {
		err = errors.Join(err, b.own.close())
	}
	if b.peers != nil {
		err = errors.Join(err, b.peers.Close())
	}
	return errors.Join(err, os.RemoveAll(b.scratch))
}

// measureShare records the points of one share, and the worse of both kinds.
func (b *searchBench) measureShare(ctx context.Context, share float64) error {
	place := "sel" + strconv.FormatFloat(100*share, 'g', 4, 64)
	var points []string
	var compared [][]*comparison
	for _, correlated := range []bool{false, true} {
		if share == 1 && correlated {
			continue // all rows are all rows
		}
		p, err := b.point(share, correlated)
		if err != nil {
			return err
		}
		p.name = p.kind + "." + place
		c, err := b.measure(ctx, p)
		if err != nil {
			return err
		}
		points, compared = append(points, p.name), append(compared, c)
	}
	b.recordWorse(place, points, compared)
	return nil
}

// measure has all contestants search at a point, turn by turn.
func (b *searchBench) measure(ctx context.Context, p *point) ([]*comparison, error) {
	ours, err := b.enterOwn(ctx, p)
	if err != nil {
		return nil, err
	}
	entrants, err := b.enter(p)
	if err != nil {
		return nil, err
	}
	for range b.Rounds {
		if err := b.round(ctx, p, ours, entrants); err != nil {
			return nil, err
		}
	}
	for i, o := range ours {
		b.report("sluice."+p.name+targets[i].suffix, o.turns, o.recall)
	}
	return b.compare(p, ours, entrants), nil
}

// enterOwn tries ours at each target.
func (b *searchBench) enterOwn(ctx context.Context, p *point) (ours []*entrant, err error) {
	for _, s := range b.set {
		t, err := s.turn(ctx, p, b.Queries, 1)
		if err != nil {
			return nil, err
		}
		ours = append(ours, &entrant{recall: p.recall(t.Hits), trial: t.each()})
	}
	return ours, nil
}

// round is a turn of every contestant.
func (b *searchBench) round(ctx context.Context, p *point, ours, entrants []*entrant) error {
	for i, o := range ours {
		t, err := b.set[i].turn(ctx, p, b.Queries, p.passes(o.trial))
		if err != nil {
			return err
		}
		o.turns = append(o.turns, t)
	}
	for _, e := range entrants {
		t, err := b.peers.turn(e.peer, e.setting, p, b.Queries, p.passes(e.trial))
		if err != nil {
			return err
		}
		e.turns = append(e.turns, t)
	}
	return nil
}

// entrant is a contestant with one setting.
type entrant struct {
	peer    string
	setting int // a peer's
	recall  float64
	trial   float64 // CPU seconds of a query
	turns   []searchTurn
}

func (e *entrant) rate() float64 { return figures.MedianOf(each(e.turns, searchTurn.perCPU)) }

// targets are the recalls at which ours and peers are compared, and their
// figures' suffixes.
var targets = []struct {
	own, recall float64
	suffix      string
}{{ivf.DefaultRecall, .95, ""}, {.95, .95, ".at0.95"}, {.97, .97, ".at0.97"}, {.99, .99, ".at0.99"}}

// hopeless is how many times the CPU time of the fastest peer another takes
// whose longer settings are not tried any more.
const hopeless = 10

// trial is how many queries tell how long a peer takes with a setting.
const trial = 2 * pointFilters

// enter tries the peers' settings, the cheapest first, and returns those that
// are the first to reach a target, unless another takes a tenth of the time.
func (b *searchBench) enter(p *point) (entrants []*entrant, err error) {
	if b.peers == nil {
		return nil, nil
	}
	fastest := math.Inf(1) // CPU time of a query of a peer that reaches the first target
	for _, name := range b.peers.names {
		peer := b.peers.found[name]
		if !peer.Filters && !p.all() {
			continue
		}
		reaching, err := b.enterPeer(p, name, peer.Settings, fastest)
		if err != nil {
			return nil, err
		}
		for _, e := range reaching {
			fastest = min(fastest, e.trial)
		}
		entrants = append(entrants, reaching...)
	}
	return slices.DeleteFunc(slices.Clone(entrants), func(e *entrant) bool {
		return slices.ContainsFunc(entrants, func(other *entrant) bool {
			return e.trial > hopeless*other.trial && reaches(other.recall) >= reaches(e.recall)
		})
	}), nil
}

// enterPeer is enter of one; fastest is that of those before it.
func (b *searchBench) enterPeer(p *point, name string, settings []int, fastest float64) (entrants []*entrant, err error) {
	reached := 0
	for _, setting := range settings {
		if reached == len(targets) {
			break
		}
		t, err := b.peers.turn(name, setting, p, min(trial, b.Queries), 0)
		if err != nil {
			return nil, err
		}
		if t.each() > hopeless*fastest {
			break
		}
		if t, err = b.peers.turn(name, setting, p, b.Queries, 0); err != nil {
			return nil, err
		}
		e := &entrant{peer: name, setting: setting, recall: p.recall(t.Hits), trial: t.each()}
		if n := reaches(e.recall); n > reached {
			entrants = append(entrants, e)
			fastest, reached = min(fastest, e.trial), n
		}
	}
	if reached == 0 {
		fmt.Fprintf(b.Log, "%-42s %s does not reach a recall of .95, or not in %d times the time of another\n", p.name, name, hopeless)
	}
	return entrants, nil
}

// reaches counts the targets that a recall reaches.
func reaches(recall float64) (n int) {
	for _, t := range targets {
		if recall >= t.recall {
			n++
		}
	}
	return n
}

// first returns of each peer the entrant that is the first to reach a recall.
func first(entrants []*entrant, recall float64) (chosen []*entrant) {
	for _, e := range entrants {
		if e.recall >= recall && !slices.ContainsFunc(chosen, func(c *entrant) bool { return c.peer == e.peer }) {
			chosen = append(chosen, e)
		}
	}
	return chosen
}
