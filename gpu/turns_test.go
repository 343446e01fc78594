package gpu

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const ms = time.Millisecond

// A query that comes while a bulk job runs waits for the batch in progress and
// no other, however much of the job waits, and even if the next is prepared.
func TestInteractiveGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDevice{perToken: ms}
		s, stop := start(t, Options{BatchTokens: 10}, d)
		defer stop()
		began := time.Now()
		bulk := embed(t.Context(), s, Request{Texts: repeat(text(5), 100), Priority: Bulk})
		time.Sleep(35 * ms) // in the middle of the fourth batch
		query := <-embed(t.Context(), s, Request{Texts: []string{text(4)}})
		require.NoError(t, query.err)
		require.Equal(t, 44*ms, query.at.Sub(began))
		require.NoError(t, (<-bulk).err)
		require.Equal(t, []int{4}, d.seen()[4])
		require.Equal(t, 504*ms, time.Since(began), "the device is never idle")
	})
}

// With queries coming all the time bulk gets a batch after every four of theirs,
// and a query that four batches go before waits for one of bulk at most.
func TestBulkDoesNotStarve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDevice{perToken: ms}
		s, stop := start(t, Options{BatchTokens: 10}, d)
		defer stop()
		bulk := embed(t.Context(), s, Request{Texts: repeat(text(9), 10), Priority: Bulk})
		var wg sync.WaitGroup
		for range 3 { // closed loops, whose texts do not fit in one batch together
			wg.Go(func() {
				for range 40 {
					before := time.Now()
					if _, err := s.Embed(t.Context(), Request{Texts: []string{text(8)}}); err != nil {
						t.Error(err)
					}
					if took := time.Since(before); took > (9+3*8)*ms {
						t.Errorf("a query took %v: more than its rivals and one bulk batch", took)
					}
				}
			})
		}
		require.NoError(t, (<-bulk).err)
		var between []int
		for _, lengths := range d.seen() {
			if lengths[0] == 9 {
				between = append(between, 0)
			} else if len(between) > 0 {
				between[len(between)-1]++
			}
		}
		require.Len(t, between, 10)
		for _, n := range between[:9] {
			require.Equal(t, bulkShare, n, "%v", between)
		}
		wg.Wait()
	})
}

// The same under random load, seen from outside: between a query's arrival and
// its answer a bulk batch ran, and another for every bulkShare of queries at most.
func TestQueriesWaitForBulkInProportion(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	for round := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, round))
			log := &intervals{}
			d := &fakeDevice{onRun: log.run}
			s, stop := start(t, Options{BatchTokens: 16}, d)
			defer stop()
			var calls sync.WaitGroup
			for range 200 {
				time.Sleep(time.Duration(r.IntN(12)) * ms)
				request := Request{Texts: repeat(text(2+r.IntN(14)), 1+r.IntN(4)), Priority: Bulk}
				if r.IntN(2) == 0 {
					request = Request{Texts: repeat(text(3+r.IntN(12)), 1+r.IntN(3))}
				}
				calls.Go(func() {
					from := time.Now()
					if _, err := s.Embed(t.Context(), request); err != nil {
						t.Error(err)
					}
					bulk, queries := log.within(from, time.Now())
					if most := 1 + (queries-1)/bulkShare; request.Priority == Interactive && bulk > most {
						t.Errorf("%d bulk batches and %d of queries while a query waited, seed %d", bulk, queries, seed)
					}
				})
			}
			calls.Wait()
			bulk, queries := log.within(time.Time{}, time.Now())
			require.Greater(t, bulk, 10, "seed %d", seed)
			require.Greater(t, queries, 10, "seed %d", seed)
		})
	}
}

// intervals is when batches ran.
type intervals struct {
	mu  sync.Mutex
	all []interval
}

type interval struct {
	bulk     bool
	from, to time.Time
}

func (v *intervals) run(b *Batch) error {
	from := time.Now()
	time.Sleep(time.Duration(b.Tokens()) * ms)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all = append(v.all, interval{b.GiveWay != nil, from, time.Now()})
	return nil
}

// within counts the batches that ran at some time in (from, to).
func (v *intervals) within(from, to time.Time) (bulk, queries int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, b := range v.all {
		switch {
		case !b.from.Before(to) || !b.to.After(from):
		case b.bulk:
			bulk++
		default:
			queries++
		}
	}
	return bulk, queries
}

// However many queries wait whose batches are full, bulk has its share of the tokens.
func TestBulkHasItsShareOfTokens(t *testing.T) {
	const query, passage = 64, 48 // tokens
	for _, flood := range []struct{ callers, texts int }{{2, 16}, {5, 16}, {40, 1}, {40, 100}} {
		synctest.Test(t, func(t *testing.T) {
			d := &fakeDevice{perToken: 50 * time.Microsecond}
			s, stop := start(t, Options{}, d)
			defer stop()
			ctx, end := context.WithCancel(t.Context())
			var calling sync.WaitGroup
			for range flood.callers {
				calling.Go(func() {
					for err := error(nil); err == nil; {
						_, err = s.Embed(ctx, Request{Texts: repeat(text(query), flood.texts)})
					}
				})
			}
			time.Sleep(time.Second)
			before := len(d.seen())
			calling.Go(func() { _, _ = s.Embed(ctx, Request{Texts: repeat(text(passage), 4000), Priority: Bulk}) })
			time.Sleep(25 * time.Second)
			end()
			calling.Wait()
			tokens := map[int]int{} // by the length of the text
			for _, lengths := range d.seen()[before:] {
				tokens[lengths[0]] += sum(lengths)
			}
			all := tokens[query] + tokens[passage]
			require.InDelta(t, 500_000, all, 2048, "the device is never idle")
			share := float64(tokens[passage]) / float64(all)
			require.Greater(t, share, .19, "%+v: %v", flood, tokens)
			require.Less(t, share, .26, "%+v: %v: bulk has what is left only when nothing else waits", flood, tokens)
		})
	}
}

// A query by itself among the texts of a bulk job waits for one short batch at most.
func TestALoneQueryWaitsForAShortBatch(t *testing.T) {
	const query, perToken = 4, 50 * time.Microsecond
	seed := uint64(time.Now().UnixNano())
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(seed, 0))
		s, stop := start(t, Options{}, &fakeDevice{perToken: perToken})
		defer stop()
		_, err := s.Embed(t.Context(), Request{Texts: repeat(text(64), 100)}) // no job waits yet to have a share of it
		require.NoError(t, err)
		ctx, over := context.WithCancel(t.Context())
		job := embed(ctx, s, Request{Texts: repeat(text(64), 4000), Priority: Bulk})
		for i := range 200 {
			time.Sleep(time.Duration(r.IntN(20000)) * time.Microsecond)
			got, err := s.Embed(t.Context(), Request{Texts: []string{text(query)}})
			require.NoError(t, err)
			require.LessOrEqual(t, got[0].Timing.Queue, besideTokens*perToken, "query %d, seed %d", i, seed)
		}
		over()
		require.ErrorIs(t, (<-job).err, context.Canceled, "bulk waited all the time")
	})
}

// While queries come, a bulk batch takes as many texts as run in besideTime, or
// besideTokens; besideLast after the last query it is as large as it may be.
func TestBulkIsShortBesideQueries(t *testing.T) {
	const query, full = 4, 1024 // tokens
	for perToken, short := range map[time.Duration]int{10 * time.Microsecond: 9 * 64, 50 * time.Microsecond: 2 * 64} {
		synctest.Test(t, func(t *testing.T) {
			var queried time.Time
			var during, after []int // tokens of bulk batches
			s, stop := start(t, Options{}, &fakeDevice{perToken: perToken, onRun: func(b *Batch) error {
				beside := !queried.IsZero() && time.Since(queried) < besideLast
				switch {
				case b.Tokens() == query:
					queried = time.Now()
				case beside:
					during = append(during, b.Tokens())
				default:
					after = append(after, b.Tokens())
				}
				require.Equal(t, b.Tokens() != query, b.GiveWay != nil)
				return nil
			}})
			defer stop()
			bulk := embed(t.Context(), s, Request{Texts: repeat(text(64), 3200), Priority: Bulk})
			time.Sleep(1100 * perToken) // in the second batch: another is prepared
			require.NoError(t, (<-embed(t.Context(), s, Request{Texts: []string{text(query)}})).err)
			require.NoError(t, (<-bulk).err)
			require.Equal(t, full, during[0])
			require.Subset(t, []int{short}, during[1:])
			require.Subset(t, []int{full}, after[:len(after)-1])
			require.Greater(t, len(after), 50)
		})
	}
}

// Queries themselves are not cut short by those before them.
func TestQueriesBesideQueriesAreWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDevice{perToken: ms}
		s, stop := start(t, Options{}, d)
		defer stop()
		for _, texts := range []int{1, 16} {
			_, err := s.Embed(t.Context(), Request{Texts: repeat(text(64), texts)})
			require.NoError(t, err)
			require.Len(t, d.seen()[len(d.seen())-1], texts)
		}
	})
}

// Calls of one priority take turns: a short one is not behind a long one.
func TestCallsTakeTurns(t *testing.T) {
	for _, p := range []Priority{Interactive, Bulk} {
		synctest.Test(t, func(t *testing.T) {
			d := &fakeDevice{perToken: ms}
			s, stop := start(t, Options{BatchTokens: 12}, d)
			defer stop()
			began := time.Now()
			long := embed(t.Context(), s, Request{Texts: repeat(text(3), 40), Priority: p})
			synctest.Wait()
			short := embed(t.Context(), s, Request{Texts: repeat(text(4), 3), Priority: p})
			// One batch runs, one is prepared, and two are shared.
			require.LessOrEqual(t, (<-short).at.Sub(began), 4*12*ms)
			require.Greater(t, (<-long).at.Sub(began), 100*ms)
		})
	}
}

// A long queue makes batches of one bucket, and runs all of them.
func TestLongQueuesAreBucketed(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDevice{perToken: ms}
		s, stop := start(t, Options{BatchTokens: 128}, d)
		defer stop()
		r := rand.New(rand.NewPCG(seed, 0))
		texts := make([]string, 1000)
		for i := range texts {
			texts[i] = text(2 + r.IntN(63))
		}
		first := embed(t.Context(), s, Request{Texts: []string{text(64), text(64)}, Priority: Bulk})
		synctest.Wait()
		got, err := s.Embed(t.Context(), Request{Texts: texts, Priority: Bulk})
		require.NoError(t, err)
		require.NoError(t, (<-first).err)
		for i := range texts {
			require.Equal(t, float32(len(texts[i])/2+2), got[i].Vector[0], "seed %d", seed)
		}
		mixed := 0
		for _, lengths := range d.seen() {
			for _, n := range lengths {
				if bucketOf(n) != bucketOf(lengths[0]) {
					mixed++
					break
				}
			}
		}
		require.Less(t, mixed, len(d.seen())/10, "seed %d", seed)
	})
}

// What waits is counted, and what ran is reported.
func TestHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		var mu sync.Mutex
		note := func(format string, a ...any) {
			mu.Lock()
			defer mu.Unlock()
			log = append(log, fmt.Sprintf(format, a...))
		}
		const name = "bert_e2e_wordpiece_cased"
		s, stop := start(t, Options{BatchTokens: 8, Hooks: Hooks{
			Queue: func(m string, p Priority, tokens int) { require.Equal(t, name, m); note("%v queue %d", p, tokens) },
			Wait:  func(_ string, p Priority, waited time.Duration) { note("%v wait %v", p, waited) },
			Batch: func(_ string, p Priority, texts, tokens int, took time.Duration) {
				note("%v batch %d %d %v", p, texts, tokens, took)
			},
		}}, &fakeDevice{perToken: ms})
		_, err := s.Embed(t.Context(), Request{Texts: []string{text(4), text(5)}, Priority: Bulk})
		require.NoError(t, err)
		stop()
		require.Equal(t, []string{
			"bulk queue 4", "bulk queue 9", "bulk queue 5", "bulk wait 0s", "bulk batch 1 4 4ms",
			"bulk queue 0", "bulk wait 4ms", "bulk batch 1 5 5ms",
		}, log)
	})
}
