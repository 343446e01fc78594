package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sluice/client"
)

const (
	durable       = "durable" // the collection
	killsShort    = 5
	cleanStopEach = 10 // rounds between two clean stops, after which indexes are read from disk
	freshEach     = 50 // rounds with one data directory: every round compares all documents
)

var (
	killRuns = flag.Int("kill.runs", 50, "how often the daemon is killed during ingestion; with -short at most 5 times")
	killSeed = flag.Uint64("kill.seed", 20261129, "seed of the first fifty of them; the next fifty have the next one")
)

// edition is one state of one document: all that one write made of it.
type edition struct {
	exists  bool
	version uint32
	text    string
	words   [2]string // one in each section: both are found, or half of it is missing
	readers []string
}

func (e edition) same(o edition) bool {
	return e.exists == o.exists && e.version == o.version && e.text == o.text && slices.Equal(e.readers, o.readers)
}

// ledger holds, for every key, the edition acknowledged last, and after it
// those that were sent since, in order: what a crash may leave is one of them.
type ledger struct {
	mu           sync.Mutex
	editions     map[string][]edition
	touched      map[string]bool // since the daemon started
	acknowledged int
	enough       int
	kill         chan struct{} // closed when enough are acknowledged
}

func (l *ledger) begin(enough int) {
	l.touched, l.acknowledged, l.enough, l.kill = map[string]bool{}, 0, enough, make(chan struct{})
}

// last is what the key will be when everything that was sent is done.
func (l *ledger) last(key string) edition {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.editions[key]; len(known) > 0 {
		return known[len(known)-1]
	}
	return edition{}
}

func (l *ledger) sent(key string, e edition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.editions[key]) == 0 {
		l.editions[key] = []edition{{}}
	}
	l.editions[key] = append(l.editions[key], e)
	l.touched[key] = true
}

// acknowledge takes the oldest edition sent for what now is, and returns it.
func (l *ledger) acknowledge(key string) edition {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.editions[key] = l.editions[key][1:]
	if l.acknowledged++; l.acknowledged == l.enough {
		close(l.kill)
	}
	return l.editions[key][0]
}

// vandal writes documents of its own until the daemon is gone.
type vandal struct {
	name   string
	random *rand.Rand
	ledger *ledger
	client *client.Client
	keys   []string
	texts  int
}

// edit makes the next edition of a key, with new text and readers.
func (v *vandal) edit(key string) edition {
	v.texts++
	word := fmt.Sprintf("%s%06d", v.name, v.texts)
	e := edition{exists: true, version: v.ledger.last(key).version + 1, readers: v.readers()}
	e.words = [2]string{word + "x1", word + "x2"}
	e.text = fmt.Sprintf("# Log %s\n\nThe first entry is %s.\n\n## Later\n\nThe second entry is %s.", key, e.words[0], e.words[1])
	return e
}

func (v *vandal) readers() []string {
	readers := []string{"user:auditor"}
	for _, name := range []string{"user:reader-a", "user:reader-b"} {
		if v.random.IntN(2) == 0 {
			readers = append(readers, name)
		}
	}
	return readers
}

// key is a new key, or one of before, which may be deleted by now.
func (v *vandal) key() string {
	if len(v.keys) == 0 || v.random.IntN(3) == 0 {
		v.keys = append(v.keys, fmt.Sprintf("%s/%d", v.name, len(v.keys)))
		return v.keys[len(v.keys)-1]
	}
	return v.keys[v.random.IntN(len(v.keys))]
}

func (e edition) document(key string) client.Document {
	return client.Document{Key: key, Format: "markdown", Text: e.text, Readers: &e.readers}
}

// one does one write by itself.
func (v *vandal) one(ctx context.Context) error {
	key := v.key()
	now := v.ledger.last(key)
	switch action := v.random.IntN(4); {
	case action == 0 && now.exists:
		return v.remove(ctx, key)
	case action == 1 && now.exists:
		return v.relabel(ctx, key, now)
	}
	e := v.edit(key)
	v.ledger.sent(key, e)
	result, err := v.client.Write(ctx, durable, e.document(key))
	return v.done(result, key, err)
}

func (v *vandal) remove(ctx context.Context, key string) error {
	v.ledger.sent(key, edition{})
	if err := v.client.Delete(ctx, durable, key); err != nil {
		return err
	}
	v.ledger.acknowledge(key)
	return nil
}

func (v *vandal) relabel(ctx context.Context, key string, e edition) error {
	e.readers = v.readers()
	v.ledger.sent(key, e)
	result, err := v.client.SetAccess(ctx, durable, key, client.AccessPatch{Readers: jsonOf(e.readers)})
	return v.done(result, key, err)
}

func (v *vandal) done(result client.WriteResult, key string, err error) error {
	if err != nil {
		return err
	}
	if e := v.ledger.acknowledge(key); result.Version != e.version {
		return &client.Problem{Title: fmt.Sprintf("%s is version %d, not %d", key, result.Version, e.version)}
	}
	return nil
}

// bulk does several writes in one body; keys may occur more than once.
func (v *vandal) bulk(ctx context.Context) error {
	return v.client.Ingest(ctx, durable, v.batch(), func(r client.WriteResult) error {
		if r.Error != nil {
			return r.Error
		}
		return v.done(r, r.Key, nil)
	})
}

func (v *vandal) batch() iter.Seq2[client.Document, error] {
	return func(yield func(client.Document, error) bool) {
		for range 1 + v.random.IntN(12) {
			key := v.key()
			e := v.edit(key)
			v.ledger.sent(key, e)
			if !yield(e.document(key), nil) {
				return
			}
		}
	}
}

// trial is the vandals, and what they are told.
type trial struct {
	t       *testing.T
	random  *rand.Rand
	ledger  *ledger
	vandals []*vandal
}

func newTrial(t *testing.T, seed uint64) *trial {
	r := &trial{t: t, random: rand.New(rand.NewPCG(seed, 0)), ledger: &ledger{editions: map[string][]edition{}}}
	for i := range 4 {
		name := fmt.Sprintf("v%c", 'a'+i)
		r.vandals = append(r.vandals, &vandal{name: name, random: rand.New(rand.NewPCG(seed, uint64(i+1))), ledger: r.ledger})
	}
	return r
}

// wreck lets the vandals write and kills the daemon at a random moment.
func (r *trial) wreck(d *served) {
	r.ledger.begin(1 + r.random.IntN(40))
	delay := time.Duration(r.random.IntN(int(20 * time.Millisecond)))
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	var writing sync.WaitGroup
	for i, v := range r.vandals {
		v.client = d.as("writer")
		write := v.one
		if i%2 == 1 {
			write = v.bulk
		}
		writing.Go(func() { r.write(ctx, write) })
	}
	select {
	case <-r.ledger.kill:
		time.Sleep(delay)
	case <-ctx.Done():
		assert.Fail(r.t, "too few writes are acknowledged")
	}
	d.kill()
	writing.Wait()
	require.False(r.t, r.t.Failed())
}

// write goes on until the connection breaks; a daemon that answers must not refuse.
func (r *trial) write(ctx context.Context, write func(context.Context) error) {
	for {
		err := write(ctx)
		var refused *client.Problem
		if errors.As(err, &refused) {
			assert.NoError(r.t, err)
		}
		if err != nil {
			return
		}
	}
}

// compare holds what is there against the ledger, which then is what is there:
// every document in the listing, those of the last round word by word.
func (r *trial) compare(d *served, keys map[string]bool) {
	r.t.Helper()
	auditor := d.as("auditor")
	listed := map[string]client.DocumentInfo{}
	for info, err := range auditor.Documents(r.t.Context(), durable) {
		require.NoError(r.t, err)
		listed[info.Key] = info
	}
	for key := range listed {
		require.Contains(r.t, r.ledger.editions, key, "nobody wrote it")
	}
	for key, possible := range r.ledger.editions {
		actual := edition{}
		if info, there := listed[key]; there {
			actual = edition{exists: true, version: info.Version, text: possible[0].text, readers: *info.Readers}
			if keys[key] {
				actual.text = r.text(auditor, key)
			}
		}
		at := slices.IndexFunc(possible, actual.same)
		require.GreaterOrEqual(r.t, at, 0, "%s is\n%+v\nand may be\n%+v", key, actual, possible)
		if keys[key] {
			r.search(auditor, key, possible, at)
		}
		r.ledger.editions[key] = possible[at : at+1]
	}
	r.compareReader(d, "reader-a")
	r.compareReader(d, "reader-b")
}

func (r *trial) text(auditor *client.Client, key string) string {
	r.t.Helper()
	info, err := auditor.Document(r.t.Context(), durable, key)
	require.NoError(r.t, err)
	return info.Text
}

// search finds every word of the edition that is there, and none of the others'.
func (r *trial) search(auditor *client.Client, key string, possible []edition, actual int) {
	r.t.Helper()
	for i, e := range possible {
		for _, word := range e.words {
			if word == "" || e.text == possible[actual].text && i != actual {
				continue
			}
			var want []string
			if i == actual {
				want = []string{key}
			}
			require.Equal(r.t, want, found(r.t, auditor, durable, word), "search for %s of %s, edition %d of %d", word, key, i, len(possible))
		}
	}
}

// compareReader wants a reader to list exactly what the editions let it read.
func (r *trial) compareReader(d *served, name string) {
	r.t.Helper()
	listed := map[string]bool{}
	for info, err := range d.as(name).Documents(r.t.Context(), durable) {
		require.NoError(r.t, err)
		listed[info.Key] = true
	}
	for key, editions := range r.ledger.editions {
		require.Equal(r.t, slices.Contains(editions[0].readers, "user:"+name), listed[key], "%s lists %s", name, key)
	}
}

// found returns the documents that a search for the words finds, without repetition.
func found(t testing.TB, c *client.Client, collection, words string) (keys []string) {
	t.Helper()
	response, err := c.Search(t.Context(), collection, client.SearchRequest{Query: words, K: 100, Strategy: "sparse"})
	require.NoError(t, err)
	for _, r := range response.Results {
		if !slices.Contains(keys, r.Document) {
			keys = append(keys, r.Document)
		}
	}
	return keys
}

func (r *trial) everyKey() map[string]bool {
	all := map[string]bool{}
	for key := range r.ledger.editions {
		all[key] = true
	}
	return all
}

func TestKillDuringBulkIngestionLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	runs := *killRuns
	if testing.Short() {
		runs = min(runs, killsShort)
	}
	for done := 0; done < runs; done += freshEach {
		seed := *killSeed + uint64(done/freshEach)
		if !t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { killing(t, seed, min(freshEach, runs-done)) }) {
			return
		}
		t.Logf("%d kills", min(done+freshEach, runs))
	}
}

// killing kills the daemons of one data directory, round by round.
func killing(t *testing.T, seed uint64, rounds int) {
	h := newHome(t, map[string]person{
		"admin":    {tenant: "acme", roles: []string{"admin"}},
		"writer":   {tenant: "acme", roles: []string{"write"}},
		"auditor":  {tenant: "acme", roles: []string{"write"}},
		"reader-a": {tenant: "acme", roles: []string{"read"}},
		"reader-b": {tenant: "acme", roles: []string{"read"}},
	})
	trial := newTrial(t, seed)
	d := h.serve()
	d.collection("admin", durable)
	for round := range rounds {
		trial.wreck(d)
		h.check()
		d = h.serve()
		trial.compare(d, trial.ledger.touched)
		if round%cleanStopEach == cleanStopEach-1 {
			d.stop()
			d = h.serve()
		}
	}
	trial.compare(d, trial.everyKey())
	d.stop()
	h.check()
	t.Logf("%d kills, %d documents at the end", rounds, len(trial.ledger.editions))
}
