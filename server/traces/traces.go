// Package traces sends traces of requests to an OpenTelemetry collector. They
// say how long which stage took, and nothing of texts, keys or who asked.
package traces

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"sluice/server/config"
	"sluice/trace"
)

// Exporter sends traces. A nil Exporter sends none.
type Exporter struct {
	provider *sdk.TracerProvider
	tracer   oteltrace.Tracer
}

// Open prepares the exporter; a collector that cannot be reached is logged, and
// its traces are dropped. nil where the settings have no endpoint.
func Open(ctx context.Context, c config.Traces, version string, log *slog.Logger) (*Exporter, error) {
	if c.Endpoint == "" {
		return nil, nil
	}
	client, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(c.Endpoint))
	if err != nil {
		return nil, fmt.Errorf("traces.endpoint: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("sending traces", "error", err) }))
	e := &Exporter{provider: sdk.NewTracerProvider(
		sdk.WithBatcher(client),
		sdk.WithSampler(sampler(c)),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "sluice"), attribute.String("service.version", version))),
	)}
	e.tracer = e.provider.Tracer("sluice")
	return e, nil
}

// sampler has the client decide only where the settings trust it.
func sampler(c config.Traces) sdk.Sampler {
	lot := lot(float64(c.SamplePercent) / 100)
	if c.TrustParent {
		return sdk.ParentBased(lot)
	}
	return sdk.ParentBased(lot, sdk.WithRemoteParentSampled(lot), sdk.WithRemoteParentNotSampled(lot))
}

// lot is the share of requests that are sampled, by lot: the id of a trace, by
// which OpenTelemetry's own sampler goes, may be the client's choice, too.
type lot float64

// ShouldSample draws.
func (l lot) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	result := sdk.SamplingResult{Decision: sdk.Drop, Tracestate: oteltrace.SpanContextFromContext(p.ParentContext).TraceState()}
	if rand.Float64() < float64(l) {
		result.Decision = sdk.RecordAndSample
	}
	return result
}

// Description is for OpenTelemetry's own log.
func (l lot) Description() string { return fmt.Sprintf("by lot, %g", float64(l)) }

// Close sends what is left.
func (e *Exporter) Close(ctx context.Context) error {
	if e == nil {
		return nil
	}
	if err := e.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("sending the last traces: %w", err)
	}
	return nil
}

// Request is the trace of one request. Of a nil Request nothing is recorded.
type Request struct {
	tracer oteltrace.Tracer
	ctx    context.Context // with the request's span
	span   oteltrace.Span
}

// Start begins the trace of a request that came at a time with the header
// traceparent ("" for none). nil: this one is not sampled.
func (e *Exporter) Start(traceparent string, at time.Time) *Request {
	if e == nil {
		return nil
	}
	parent := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": traceparent})
	ctx, span := e.tracer.Start(parent, "request", oteltrace.WithTimestamp(at), oteltrace.WithSpanKind(oteltrace.SpanKindServer))
	if !span.IsRecording() {
		return nil
	}
	return &Request{tracer: e.tracer, ctx: ctx, span: span}
}

// End ends the trace of a request with these stages, id, route and status.
func (r *Request) End(stages []trace.Span, id, method, route string, status int) {
	if r == nil {
		return
	}
	for _, s := range stages {
		_, span := r.tracer.Start(r.ctx, s.Name, oteltrace.WithTimestamp(s.Start))
		span.End(oteltrace.WithTimestamp(s.End))
	}
	r.span.SetName(method + " " + route)
	r.span.SetAttributes(
		attribute.String("http.request.method", method), attribute.String("http.route", route),
		attribute.Int("http.response.status_code", status), attribute.String("sluice.request_id", id),
	)
	if status >= 500 {
		r.span.SetStatus(codes.Error, "")
	}
	r.span.End()
}
