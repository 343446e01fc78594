package load

import (
	"bufio"
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
)

// queue is a server with one place, first come, first served, that takes so long
// for every request, by a clock that runs only when everybody waits: what it
// does can be calculated.
type queue struct {
	service time.Duration
	place   chan struct{}
	stalled func(now time.Time) time.Duration // until it goes on; nil: it never stops
}

func (q *queue) dial(context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go q.serve(theirs)
	return ours, nil
}

// serve ends when the other side closes.
func (q *queue) serve(c net.Conn) {
	defer c.Close()
	in, out := bufio.NewReader(c), bufio.NewWriter(c)
	for {
		var request fasthttp.Request
		if request.Read(in) != nil {
			return
		}
		q.place <- struct{}{}
		if q.stalled != nil {
			time.Sleep(q.stalled(time.Now()))
		}
		time.Sleep(q.service)
		<-q.place
		_, err := out.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		if err != nil || out.Flush() != nil {
			return
		}
	}
}

// inVirtualTime runs a load on the queue.
func inVirtualTime(t *testing.T, q *queue, o Options) (r Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q.place = make(chan struct{}, 1)
		o.Requests, o.dial, o.sleep, o.Timeout = []Request{[]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")}, q.dial, time.Sleep, time.Hour
		var err error
		r, err = Run(t.Context(), o)
		require.NoError(t, err)
		require.NoError(t, r.Failure)
	})
	return r
}

// Poisson arrivals at a server that takes the same time for all (M/D/1): the
// mean wait is that of Pollaczek and Khinchine, ρD / 2(1 − ρ), and every
// latency that of Lindley's recursion over the same arrivals. The connections are
// fewer than those who wait: a request's time runs also before it is sent.
func TestOpenLoopIsAQueue(t *testing.T) {
	const service, rate, duration = 2 * time.Millisecond, 400.0, 100 * time.Second // ρ = .8
	r := inVirtualTime(t, &queue{service: service}, Options{Connections: 3, Rate: rate, Seed: 1, Duration: duration})

	gap, wait := poisson(rate, 1), time.Duration(0)
	var latencies []time.Duration
	var sum time.Duration
	for at := time.Duration(0); at < duration; {
		latencies, sum = append(latencies, wait+service), sum+wait
		next := gap(0)
		at, wait = at+next, max(0, wait+service-next)
	}
	slices.Sort(latencies)
	require.Equal(t, len(latencies), r.Latency.Count())
	for _, q := range []float64{.01, .25, .5, .9, .95, .99, .999} {
		require.InEpsilon(t, latencies[int(q*float64(len(latencies)))], r.Latency.Quantile(q), .005, q)
	}
	require.InEpsilon(t, latencies[len(latencies)-1], r.Latency.Max(), .002)
	const rho = rate * float64(service) / float64(time.Second)
	require.InEpsilon(t, rho*float64(service)/(2*(1-rho)), float64(sum)/float64(len(latencies)), .05)
	require.Less(t, r.Late.Max(), finest, "by this clock nothing is late")
}

// A server that stops for 1 s of every 10: requests that are due meanwhile wait
// for its end, so that a share (1 s − x) / 10 s of all takes longer than x. A
// generator that waits for answers would have sent one request a stall.
func TestOpenLoopSeesStalls(t *testing.T) {
	const stall, period = time.Second, 10 * time.Second
	var once sync.Once
	var began time.Time
	q := &queue{stalled: func(now time.Time) time.Duration {
		once.Do(func() { began = now })
		return max(0, stall-now.Sub(began)%period)
	}}
	r := inVirtualTime(t, q, Options{Connections: 3, Rate: 200, Seed: 2, Duration: 100 * time.Second})
	require.Less(t, r.Latency.Quantile(.88), finest)
	require.InDelta(t, (500 * time.Millisecond).Seconds(), r.Latency.Quantile(.95).Seconds(), .05)
	require.InDelta(t, (900 * time.Millisecond).Seconds(), r.Latency.Quantile(.99).Seconds(), .03)
	require.InDelta(t, stall.Seconds(), r.Latency.Max().Seconds(), .02)

	require.InDelta(t, .9, float64(r.Late.Count())/float64(r.Latency.Count()), .02, "those that found no connection say nothing of the generator")

	closed := inVirtualTime(t, q, Options{Connections: 1, Duration: 500 * time.Millisecond})
	require.Equal(t, 1, closed.Latency.Count())
}

// Recorded requests are sent once each, at their times.
func TestReplay(t *testing.T) {
	seen := make(chan string, 10)
	o := start(t, func(c *fasthttp.RequestCtx) { seen <- string(c.Request.Body()) })
	o.Times = []time.Duration{5 * time.Second, 5*time.Second + 10*time.Millisecond, 5*time.Second + 30*time.Millisecond}
	o.Connections = 3
	r, err := Run(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, 3, r.Latency.Count())
	require.GreaterOrEqual(t, r.Elapsed, 30*time.Millisecond)
	require.ElementsMatch(t, []string{"a", "b", "c"}, []string{<-seen, <-seen, <-seen})
	o.Times = o.Times[1:]
	_, err = Run(t.Context(), o)
	require.ErrorContains(t, err, "2 times are given for 3 requests")
}

func TestStages(t *testing.T) {
	o := start(t, func(c *fasthttp.RequestCtx) {
		c.Response.Header.Set("Server-Timing", "resolve;dur=1.5, dense;dur=2, total;dur=4, odd, x;dur=y")
	})
	r, err := Run(t.Context(), o)
	require.NoError(t, err)
	all := r.Stages.All()
	require.Len(t, all, 3)
	for name, ms := range map[string]float64{"resolve": 1.5, "dense": 2, "total": 4} {
		require.Equal(t, r.Latency.Count(), all[name].Count())
		require.InEpsilon(t, ms, all[name].Quantile(.5).Seconds()*1000, .002)
	}
	header := []byte("resolve;dur=1.5, dense;dur=2")
	require.Zero(t, testing.AllocsPerRun(100, func() { r.Stages.add(header) }))

	many := newStages()
	for i := range 1000 {
		many.add([]byte{byte('a' + i%26), byte('a' + i/26), ';', 'd', 'u', 'r', '=', '1'})
	}
	require.Len(t, many.All(), maxStages)
}

func TestSeries(t *testing.T) {
	a, b := newSeries(time.Second), newSeries(time.Second)
	a.add(0, 3*time.Millisecond)
	b.add(19*time.Millisecond, 5*time.Millisecond)
	b.add(2*time.Second, time.Millisecond) // never: it counts as the last
	a.merge(b)
	require.Equal(t, Stretch{2, 8 * time.Millisecond, 5 * time.Millisecond}, a.parts[0])
	require.Equal(t, Stretch{1, time.Millisecond, time.Millisecond}, a.parts[stretches-1])
}
