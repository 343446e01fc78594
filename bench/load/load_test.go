package load

import (
	"context"
	"math"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
)

// start serves handler, and returns options that send to it.
func start(t *testing.T, handler fasthttp.RequestHandler) Options {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &fasthttp.Server{Handler: handler, CloseOnShutdown: true}
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	t.Cleanup(func() {
		require.NoError(t, s.Shutdown())
		require.NoError(t, <-served)
	})
	return optionsFor(t, listener, "a", "b", "c")
}

func optionsFor(t *testing.T, listener net.Listener, bodies ...string) Options {
	t.Helper()
	address := listener.Addr().String()
	o := Options{Address: address, Duration: 100 * time.Millisecond, Timeout: 10 * time.Second}
	for _, body := range bodies {
		r, err := Post(&url.URL{Scheme: "http", Host: address, Path: "/path"}, "token", []byte(body))
		require.NoError(t, err)
		o.Requests = append(o.Requests, r)
	}
	return o
}

func TestRequestsOnTheWire(t *testing.T) {
	seen := make(chan string, 1000)
	o := start(t, func(c *fasthttp.RequestCtx) {
		select {
		case seen <- string(c.Method()) + " " + string(c.Path()) + " " + string(c.Request.Header.Peek("Authorization")) + " " + string(c.Request.Body()):
		default:
		}
	})
	r, err := Run(t.Context(), o)
	require.NoError(t, err)
	require.Greater(t, r.Latency.Count(), 2)
	for _, body := range []string{"a", "b", "c", "a"} {
		require.Equal(t, "POST /path Bearer token "+body, <-seen)
	}
}

// Half of the time is warm-up, and by a clock without haste so are half of the requests.
func TestWarmupIsNotCounted(t *testing.T) {
	for _, rate := range []float64{0, 2000} {
		r := inVirtualTime(t, &queue{service: 100 * time.Microsecond}, Options{
			Rate: rate, Seed: 3, Connections: 2, Warmup: time.Second, Duration: time.Second,
		})
		require.InEpsilon(t, r.Sent/2, r.Latency.Count(), .05)
		require.InEpsilon(t, float64(r.Latency.Count())/r.Elapsed.Seconds(), r.Rate(), 1e-9)
	}
}

func TestWatch(t *testing.T) {
	o := optionsFor(t, nullServer(t), "a")
	o.Duration = 5 * watchEvery / 2
	var seen []int
	o.Watch = func(answered int, since time.Duration) {
		require.GreaterOrEqual(t, since, watchEvery)
		seen = append(seen, answered)
	}
	r, err := Run(t.Context(), o)
	require.NoError(t, err)
	require.NotEmpty(t, seen)
	require.Positive(t, seen[0])
	require.True(t, slices.IsSorted(seen))
	require.LessOrEqual(t, seen[len(seen)-1], r.Sent)
	require.Equal(t, "closed loop, 3 connections", Options{Connections: 3}.String())
	require.Equal(t, "open loop, 20/s", Options{Rate: 20}.String())
}

func TestFailures(t *testing.T) {
	var n atomic.Int64
	o := start(t, func(c *fasthttp.RequestCtx) {
		switch n.Add(1) % 3 {
		case 0:
			c.Error("too many", fasthttp.StatusTooManyRequests)
		case 1:
			c.SetConnectionClose()
		}
	})
	o.Duration = time.Second
	r, err := Run(t.Context(), o)
	require.NoError(t, err)
	require.ErrorContains(t, r.Failure, "status 429: too many")
	require.Equal(t, int(n.Load()), r.Latency.Count()+r.Failures)
	require.InDelta(t, r.Latency.Count(), 2*r.Failures, 3)

	o = optionsFor(t, closedListener(t), "a")
	o.Duration = time.Second
	r, err = Run(t.Context(), o)
	require.NoError(t, err)
	require.Positive(t, r.Failures)
	require.Zero(t, r.Latency.Count())
	_, err = Run(t.Context(), Options{})
	require.ErrorContains(t, err, "no requests")
}

func closedListener(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener
}

// The end of the context ends a request that is never answered.
func TestContext(t *testing.T) {
	for _, rate := range []float64{0, 1000, .01} {
		listener, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts
		require.NoError(t, err)
		defer listener.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		o := optionsFor(t, listener, "a")
		o.Rate, o.Connections, o.Duration, o.Timeout = rate, 3, time.Hour, time.Hour
		_, err = Run(ctx, o)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
}

// Gaps of a Poisson process are exponential: the mean and the deviation are one
// over the rate.
func TestArrivals(t *testing.T) {
	start := time.Now().Add(-time.Hour)
	a, again := newArrivals(start, start, poisson(1000, 7), pause), newArrivals(start, start, poisson(1000, 7), pause)
	const n = 100_000
	gaps := make([]float64, n)
	before := a.take(t.Context()).due
	require.Equal(t, start, before)
	again.take(t.Context())
	var sum, squares float64
	for i := range gaps {
		now := a.take(t.Context())
		require.False(t, now.waited)
		require.Equal(t, i+1, now.number)
		require.Equal(t, now, again.take(t.Context()), "one seed, one schedule")
		gaps[i] = now.due.Sub(before).Seconds()
		sum, squares, before = sum+gaps[i], squares+gaps[i]*gaps[i], now.due
	}
	mean := sum / n
	require.InEpsilon(t, .001, mean, .02)
	require.InEpsilon(t, .001, math.Sqrt(squares/n-mean*mean), .02)
}

// An arrival is never early, and the wait for it is reported.
func TestArrivalsWait(t *testing.T) {
	a := newArrivals(time.Now().Add(20*time.Millisecond), time.Now().Add(time.Hour), poisson(1000, 1), pause)
	for range 50 {
		due := a.take(t.Context()).due
		require.False(t, time.Now().Before(due))
	}
	a = newArrivals(time.Now().Add(20*time.Millisecond), time.Now().Add(time.Hour), poisson(1000, 1), pause)
	require.True(t, a.take(t.Context()).waited)
}

func TestHistogram(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	a, b := NewHistogram(), NewHistogram()
	var all []time.Duration
	for range 20_000 {
		d := time.Duration(math.Exp(random.NormFloat64()) * float64(time.Millisecond))
		all = append(all, d)
		[]Histogram{a, b}[random.IntN(2)].Record(d)
	}
	a.Merge(b)
	slices.Sort(all)
	require.Equal(t, len(all), a.Count())
	for _, q := range []float64{.5, .9, .99, .999} {
		require.InEpsilon(t, all[int(math.Ceil(q*float64(len(all))))-1], a.Quantile(q), .002, q)
	}
	require.InEpsilon(t, all[len(all)-1], a.Max(), .002)
	read, err := ParseHistogram(a.String())
	require.NoError(t, err)
	require.Equal(t, a.Count(), read.Count())
	require.Equal(t, a.Quantile(.95), read.Quantile(.95))
	_, err = ParseHistogram("none")
	require.Error(t, err)
	a.Record(time.Hour)
	require.InEpsilon(t, longest, a.Max(), .002)
}

func TestIdle(t *testing.T) {
	open := atomic.Int64{}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &fasthttp.Server{Handler: func(*fasthttp.RequestCtx) {}, ConnState: func(_ net.Conn, state fasthttp.ConnState) {
		switch state {
		case fasthttp.StateNew:
			open.Add(1)
		case fasthttp.StateClosed:
			open.Add(-1)
		}
	}}
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	idle, err := OpenIdle(t.Context(), optionsFor(t, listener, "a"), 100)
	require.NoError(t, err)
	require.EqualValues(t, 100, open.Load())
	require.NoError(t, idle.Close())
	require.NoError(t, s.Shutdown())
	require.NoError(t, <-served)
	require.Eventually(t, func() bool { return open.Load() == 0 }, 10*time.Second, time.Millisecond) // the callbacks come after Shutdown
	_, err = OpenIdle(t.Context(), optionsFor(t, listener, "a"), 2)
	require.ErrorContains(t, err, "connection 1 of 2")
}

func TestUsage(t *testing.T) {
	before, err := UsageOf(os.Getpid())
	require.NoError(t, err)
	after := before
	for after.CPU == before.CPU { // reading uses some
		after, err = UsageOf(os.Getpid())
		require.NoError(t, err)
	}
	require.Greater(t, after.CPU, before.CPU)
	require.Greater(t, after.Resident, 1<<20)
	_, err = UsageOf(1 << 30)
	require.ErrorContains(t, err, "process 1073741824")
}

// nullServer serves nothing until the test ends.
func nullServer(tb testing.TB) net.Listener {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- ServeNull(ctx, listener) }()
	tb.Cleanup(func() {
		cancel()
		require.NoError(tb, <-served)
	})
	return listener
}

// A request allocates nothing, on either side.
func TestARequestAllocatesNothing(t *testing.T) {
	o := optionsFor(t, nullServer(t), "a")
	require.NoError(t, o.setDefaults())
	c := newConn(o.dial, o.Timeout)
	defer c.Close()
	h := NewHistogram()
	allocations := testing.AllocsPerRun(500, func() {
		began := time.Now()
		if err := c.do(t.Context(), o.Requests[0]); err != nil {
			t.Error(err)
		}
		h.Record(time.Since(began))
	})
	require.Zero(t, allocations)
}
