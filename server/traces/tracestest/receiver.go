// Package tracestest is an OpenTelemetry collector for tests.
package tracestest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Receiver keeps what it is sent over HTTP.
type Receiver struct {
	URL string

	t     testing.TB
	mu    sync.Mutex
	raw   []byte
	spans []*tracepb.Span
}

// New starts a receiver, which ends with the test.
func New(t testing.TB) *Receiver {
	t.Helper()
	r := &Receiver{t: t}
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	r.URL = s.URL + "/v1/traces"
	return r
}

// ServeHTTP takes one export.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	var export collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &export)
	}
	if err != nil || request.URL.Path != "/v1/traces" {
		r.t.Errorf("an export to %s: %v", request.URL.Path, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.raw = append(r.raw, body...)
	for _, resource := range export.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			r.spans = append(r.spans, scope.Spans...)
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// Spans is what has arrived.
func (r *Receiver) Spans() []*tracepb.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*tracepb.Span(nil), r.spans...)
}

// Raw is every byte of it.
func (r *Receiver) Raw() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.raw)
}
