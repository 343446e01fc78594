package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"

	"sluice/gpu"
	"sluice/server/config"
	"sluice/server/identity"
)

// wide embeds everything as one vector of the usual length.
type wide struct {
	*fake
	vector []float32
}

func (w wide) Embed(context.Context, gpu.Request) ([]gpu.Embedding, error) {
	return []gpu.Embedding{{Vector: w.vector, Norm: 1, Tokens: 24}}, nil
}

func newWide() wide {
	w := wide{newFake(), make([]float32, 384)}
	for i := range w.vector {
		w.vector[i] = float32(rand.NormFloat64()) / 20
	}
	return w
}

// BenchmarkEmbedding is a request without its model and its network.
func BenchmarkEmbedding(b *testing.B) {
	for _, encoding := range []string{"float", "base64"} {
		b.Run(encoding, func(b *testing.B) { benchmarkEmbedding(b, encoding) })
	}
}

func benchmarkEmbedding(b *testing.B, encoding string) {
	auth := config.Auth{APIKeys: []config.APIKey{apiKey("alice", "acme", nil, "read")}}
	identities, err := identity.New(b.Context(), auth, config.Demo{})
	require.NoError(b, err)
	backend := newWide()
	s := New(Options{
		Backend: backend, Identities: identities, Limits: config.Default().Limits,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Registry: prometheus.NewRegistry(),
	})
	body := fmt.Appendf(nil, `{"model":%q,"encoding_format":%q,"input":%q}`, backend.Info().Model, encoding, strings.Repeat("a query of some words ", 5))
	var c fasthttp.RequestCtx
	b.ReportAllocs()
	before := cpuTime(b)
	for b.Loop() {
		c.Request.Reset()
		c.Response.Reset()
		c.Request.Header.SetMethod("POST")
		c.Request.SetRequestURI("/v1/embeddings")
		c.Request.Header.SetContentType("application/json")
		c.Request.Header.Set("Authorization", "Bearer "+keys["alice"].key)
		c.Request.SetBodyStream(bytes.NewReader(body), len(body))
		s.handle(&c)
		if c.Response.StatusCode() != 200 {
			b.Fatal(c.Response.String())
		}
	}
	b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/float64(b.N), "CPU-µs/op")
}

// cpuTime is what this process has used: beside other work it says more than
// the clock.
func cpuTime(b *testing.B) time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
