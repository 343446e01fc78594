package bench

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"sluice/bench/load"
	"sluice/gpu/cpu"
)

// answering is a service that handles every request so.
func answering(t *testing.T, name string, handler fasthttp.RequestHandler) Service {
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
	service, err := NewService(name, "http://"+listener.Addr().String()+"/x", os.Getpid(), []Call{{Token: "t", Body: "b"}})
	require.NoError(t, err)
	return service
}

func tinyServe(t *testing.T, ours Service) ServeOptions {
	return ServeOptions{
		Model: tinyModel, Precision: cpu.F32, BatchTokens: 64, Texts: []string{"some words", "and some more"}, Each: 2,
		Ours: ours, Connections: []int{1, 4}, Rounds: 2, Turn: 300 * time.Millisecond, Warmup: time.Millisecond,
	}
}

func TestServe(t *testing.T) {
	o := tinyServe(t, answering(t, "ours", func(*fasthttp.RequestCtx) {}))
	slow := answering(t, "slow", func(*fasthttp.RequestCtx) { time.Sleep(10 * time.Millisecond) })
	search := answering(t, "ours", func(*fasthttp.RequestCtx) {})
	o.Peers, o.Search = []Service{slow}, &search
	var log strings.Builder
	o.Log = &log
	file, err := Serve(t.Context(), o)
	require.NoError(t, err)
	require.NoError(t, file.Write(filepath.Join(t.TempDir(), "figures.json")))
	f := file.Figures
	for _, place := range []string{"ours.embed.c1", "ours.embed.c4", "slow.embed.c4", "ours.embed.load80", "ours.search.c1", "ours.search.load80"} {
		for _, name := range []string{".p50_ms", ".p95_ms", ".p99_9_ms", ".max_ms", ".requests_per_s", ".rss_mb"} {
			require.Positive(t, f[place+name], place+name)
		}
	}
	require.GreaterOrEqual(t, f["slow.embed.c1.p50_ms"], 9.9)
	require.Positive(t, f["ratio.embed.c1.requests_per_s.ours_to_slow"])
	require.Positive(t, f["ratio.embed.c1.p95.ours_to_slow"])
	require.LessOrEqual(t, f["ratio.embed.c4.p95.ours_to_slow.min"], f["ratio.embed.c4.p95.ours_to_slow.max"])
	require.InEpsilon(t, f["ours.embed.c4.requests_per_s"]*2*f["tokens_per_text"], f["ours.embed.tokens_per_s"], 1e-9)
	for _, name := range []string{"engine.tokens_per_s", "engine.batch_ms", "engine.single.p50_ms", "ratio.tokens_per_s.ours_to_engine", "ratio.cpu.tokens.ours_to_engine", "ratio.load80.p99_to_batch"} {
		require.Positive(t, f[name], name)
	}
	require.Contains(t, f, "overhead.p50_us")
	require.Contains(t, f, "generator.embed.late_p99_us")
	require.Contains(t, log.String(), "slow.embed.c4")
}

// Requests that fail are fast: figures of them would mislead.
func TestServeRefusesFailures(t *testing.T) {
	var n atomic.Int64
	_, err := Serve(t.Context(), tinyServe(t, answering(t, "ours", func(c *fasthttp.RequestCtx) {
		if n.Add(1) >= 20 {
			c.Error("no", fasthttp.StatusServiceUnavailable)
		}
	})))
	require.ErrorContains(t, err, "ours failed ")
	require.ErrorContains(t, err, "status 503: no")
}

func TestServeRefusesTurnsTooShort(t *testing.T) {
	o := tinyServe(t, answering(t, "ours", func(*fasthttp.RequestCtx) { time.Sleep(50 * time.Millisecond) }))
	o.Turn = time.Millisecond
	_, err := Serve(t.Context(), o)
	require.ErrorContains(t, err, "the turns are too short")
}

func TestServiceURLs(t *testing.T) {
	for _, bad := range []string{"", "127.0.0.1:80", "https://127.0.0.1:80/", "http://127.0.0.1/", "ftp://a:1"} {
		_, err := NewService("x", bad, 0, nil)
		require.ErrorContains(t, err, "http://127.0.0.1:8080", bad)
	}
}

func TestNull(t *testing.T) {
	file, err := Null(t.Context(), NullOptions{Connections: []int{2}, Rounds: 1, Turn: 300 * time.Millisecond, Log: io.Discard})
	require.NoError(t, err)
	require.Greater(t, file.Figures["requests_per_s"], 100.0)
	require.Contains(t, file.Figures, "p99_error_us")
}

func TestIdle(t *testing.T) {
	figures := map[string]float64{}
	s := answering(t, "ours", func(*fasthttp.RequestCtx) {})
	require.NoError(t, Idle(t.Context(), s, 50, figures))
	require.Equal(t, 50.0, figures["idle.connections"])
	require.Greater(t, figures["idle.rss_mb"], 1.0)
	require.Contains(t, figures, "idle.growth_mb")
	require.ErrorContains(t, Idle(cancelled(t), s, 50, figures), "connection 1 of 50")
}

func cancelled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

const fakeServers = `import json, sys
assert sys.argv[1:] == ["--model", "M", "--threads", "2", "--engines", "b,a"], sys.argv
print(json.dumps({"peers": {"b": {"url": "http://127.0.0.1:2/e", "pid": 2}, "a": {"url": "http://127.0.0.1:1/e", "pid": 1}}}), flush=True)
sys.stdin.read()
`

func TestServers(t *testing.T) {
	script := filepath.Join(t.TempDir(), "peer.py")
	require.NoError(t, os.WriteFile(script, []byte(fakeServers), 0o644))
	p := Peers{Python: "python3", Script: script, Names: []string{"b", "a"}}
	servers, closer, err := p.Servers(t.Context(), "M", 2)
	require.NoError(t, err)
	require.Equal(t, []Server{{"a", "http://127.0.0.1:1/e", 1}, {"b", "http://127.0.0.1:2/e", 2}}, servers)
	require.NoError(t, closer.Close())
}

// The quantiles of a turn are those of its requests, whoever sent them.
func TestMerged(t *testing.T) {
	a, b := load.NewHistogram(), load.NewHistogram()
	a.Record(time.Millisecond)
	b.Record(3 * time.Millisecond)
	h := merged([]served{{Result: load.Result{Latency: a}}, {Result: load.Result{Latency: b}}}, func(r load.Result) load.Histogram { return r.Latency })
	require.Equal(t, 2, h.Count())
	require.InEpsilon(t, 3*time.Millisecond, h.Max(), .002)
}
