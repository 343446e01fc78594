package traces

import (
	"bytes"
	"context"
	"encoding/hex"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"sluice/server/config"
	"sluice/server/traces/tracestest"
	"sluice/trace"
)

const (
	wanted   = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	unwanted = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
)

func open(t *testing.T, c config.Traces, log *slog.Logger) *Exporter {
	t.Helper()
	e, err := Open(t.Context(), c, "v", log)
	require.NoError(t, err)
	return e
}

func TestTrace(t *testing.T) {
	r := tracestest.New(t)
	e := open(t, config.Traces{Endpoint: r.URL, SamplePercent: 0, TrustParent: true}, slog.Default())
	require.Nil(t, e.Start("", time.Now()), "0 percent")
	require.Nil(t, e.Start(unwanted, time.Now()))
	require.Nil(t, e.Start("no traceparent", time.Now()))
	at := time.Now().Add(-time.Second)
	request := e.Start(wanted, at)
	request.End([]trace.Span{{Name: "fuse", Start: at, End: at.Add(time.Millisecond)}}, "id", "POST", "/search", 503)
	require.NoError(t, e.Close(t.Context()))

	spans := map[string]*tracepb.Span{}
	for _, s := range r.Spans() {
		require.Equal(t, "0af7651916cd43dd8448eb211c80319c", hex.EncodeToString(s.TraceId))
		spans[s.Name] = s
	}
	require.Len(t, spans, 2)
	whole, stage := spans["POST /search"], spans["fuse"]
	require.Equal(t, "b7ad6b7169203331", hex.EncodeToString(whole.ParentSpanId))
	require.EqualValues(t, at.UnixNano(), whole.StartTimeUnixNano)
	require.Equal(t, tracepb.Status_STATUS_CODE_ERROR, whole.Status.Code)
	require.Equal(t, whole.SpanId, stage.ParentSpanId)
	require.EqualValues(t, time.Millisecond, stage.EndTimeUnixNano-stage.StartTimeUnixNano)
	require.Empty(t, stage.Attributes)
}

// Whom the settings do not trust decides nothing, neither by the flag nor by the
// id of a trace, which is kept.
func TestUntrustedParentsDecideNothing(t *testing.T) {
	r := tracestest.New(t)
	for percent, want := range map[int]bool{0: false, 100: true} {
		e := open(t, config.Traces{Endpoint: r.URL, SamplePercent: percent}, slog.Default())
		for _, parent := range []string{wanted, unwanted, ""} {
			request := e.Start(parent, time.Now())
			require.Equal(t, want, request != nil, "%d percent, %q", percent, parent)
			request.End(nil, "id", "GET", "/", 200)
		}
		require.NoError(t, e.Close(t.Context()))
	}
	spans := r.Spans()
	require.Len(t, spans, 3)
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", hex.EncodeToString(spans[0].TraceId))
	require.Equal(t, spans[0].TraceId, spans[1].TraceId)

	const low = "00-00000000000000000000000000000001-b7ad6b7169203331-01" // sampled at any percentage by its id
	e := open(t, config.Traces{Endpoint: r.URL, SamplePercent: 50}, slog.Default())
	var sampled int
	for range 200 { // all alike once in 2^199
		if e.Start(low, time.Now()) != nil {
			sampled++
		}
	}
	require.NotContains(t, []int{0, 200}, sampled)
	require.NoError(t, e.Close(t.Context()))
}

func TestNoEndpointCostsNothing(t *testing.T) {
	e := open(t, config.Traces{SamplePercent: 100}, slog.Default())
	require.Nil(t, e)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		e.Start(wanted, time.Time{}).End(nil, "id", "GET", "/", 200)
	}))
	require.NoError(t, e.Close(t.Context()))
}

// A collector that is gone is said in the log, and holds nothing up.
func TestUnreachableCollector(t *testing.T) {
	var log lockedBuffer
	e := open(t, config.Traces{Endpoint: "http://127.0.0.1:1/v1/traces", SamplePercent: 100}, slog.New(slog.NewTextHandler(&log, nil)))
	e.Start("", time.Now()).End(nil, "id", "GET", "/", 200)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := e.Close(ctx)
	require.True(t, err != nil || log.text() != "", "it is said one way or the other")
}

type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
