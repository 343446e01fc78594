package server

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/client"
	"sluice/filter"
	"sluice/server/identity"
	"sluice/server/traces"
	"sluice/trace"
)

// request is one request on its way. http must not be used after the handler
// has returned (a stream: after it is closed); what lives longer is copied.
//
// fasthttp does not tell when a client hangs up: work for a client that is
// gone goes on until it is done or its deadline passes, except where watch looks.
type request struct {
	s            *Server
	http         *fasthttp.RequestCtx
	ctx          context.Context // ends at the request's deadline
	cancel       context.CancelFunc
	started      time.Time
	id           string
	route        *route
	vars         variables
	brought      identity.Credentials
	who          identity.Identity
	tenant       *tenant
	trace        *traces.Request // nil: not sampled
	stages       trace.Recorder
	impersonated *filter.Principal // whom the caller impersonates; nil: nobody
	slot         bool              // holds one of the admitted requests' slots
	taken        int               // bytes of the budget
	streams      bool              // finish is called by the stream, not when the handler returns
}

// handle is the fasthttp handler.
func (s *Server) handle(c *fasthttp.RequestCtx) {
	q := &request{s: s, http: c, started: time.Now(), id: requestID(c), cancel: func() {}}
	s.metrics.inFlight.Inc()
	c.Response.Header.Set("X-Request-Id", q.id)
	if s.demo {
		c.Response.Header.Set("Sluice-Demo", "true")
	}
	if err := q.run(); err != nil {
		q.fail(err)
	}
	if !q.streams {
		q.finish()
	}
}

func (q *request) run() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = q.panicked(r)
		}
	}()
	if err := q.find(); err != nil {
		return err
	}
	if err := q.admit(); err != nil {
		return err
	}
	if err := q.authorize(); err != nil {
		return err
	}
	if err := q.admitTenant(); err != nil {
		return err
	}
	q.ctx, q.cancel = context.WithTimeout(trace.With(q.s.base, &q.stages), q.s.limits.RequestTimeout)
	if q.route.probe || q.route.open {
		return q.serve()
	}
	q.traced()
	if err := q.serve(); err != nil {
		return err
	}
	q.timings()
	return nil
}

func (q *request) serve() error {
	if q.impersonated != nil {
		return q.serveImpersonated()
	}
	return q.route.serve(q.s, q)
}

// traced begins the request's trace.
func (q *request) traced() {
	if q.s.traces != nil {
		q.trace = q.s.traces.Start(string(q.http.Request.Header.Peek("traceparent")), q.started)
	}
}

func (q *request) panicked(reason any) error {
	q.s.metrics.panics.Inc()
	q.s.log.Error("panic", "request", q.id, "reason", fmt.Sprint(reason), "stack", string(debug.Stack()))
	return failf(fasthttp.StatusInternalServerError, "this is the daemon's fault; its log has more under the request id")
}

// find matches the raw target: fasthttp's own decoded path is normalised.
func (q *request) find() error {
	header := &q.http.Request.Header
	pattern, one, vars, err := q.s.router.find(string(header.Method()), header.RequestURI())
	if pattern != nil && one == nil {
		q.http.Response.Header.Set("Allow", pattern.allow())
	}
	if err != nil {
		return err
	}
	q.route, q.vars = one, vars
	return q.checkQuery()
}

func (q *request) checkQuery() error {
	for name := range q.http.QueryArgs().All() {
		if !contains(q.route.query, name) {
			return badRequest("unknown query parameter %q", shortened(strings.ToValidUTF8(string(name), "�")))
		}
	}
	return nil
}

func contains(names []string, name []byte) bool {
	for _, n := range names {
		if n == string(name) {
			return true
		}
	}
	return false
}

func (q *request) admit() error {
	if q.route.probe {
		return nil
	}
	select {
	case q.s.slots <- struct{}{}:
		q.slot = true
		return nil
	default:
		q.s.metrics.rejected.Inc()
		return failf(fasthttp.StatusTooManyRequests, "too many requests at the same time; send it again later")
	}
}

// admitTenant counts the request against its tenant's limits.
func (q *request) admitTenant() error {
	if q.route.open || q.route.probe {
		return nil
	}
	one, err := q.s.tenants.enter(q.who.Principal.Tenant)
	if err == nil {
		q.tenant = one
		if q.route.searches {
			err = one.search()
		}
	}
	if err != nil {
		q.s.metrics.rejected.Inc()
	}
	return err
}

// authorize proves the identity and compares its role with the route's.
func (q *request) authorize() (err error) {
	if q.route.open {
		return nil
	}
	if q.brought, err = q.credentials(); err != nil {
		return err
	}
	if q.who, err = q.prove(q.s.identities.Load()); err != nil {
		return err
	}
	return q.impersonate()
}

// prove returns whose the credentials are, if their role is enough for the route.
func (q *request) prove(by *identity.Authenticator) (identity.Identity, error) {
	who, err := by.Authenticate(q.s.base, q.brought)
	if err != nil {
		q.s.log.Debug("authentication failed", "request", q.id, "reason", err)
		return who, err
	}
	if q.route.role == identity.None || who.Role < q.route.role {
		return who, failf(fasthttp.StatusForbidden, "your role does not allow this: it is %s, and %s is needed", cmp.Or(who.Role.String(), "none"), q.route.role)
	}
	return who, nil
}

func (q *request) credentials() (identity.Credentials, error) {
	header := &q.http.Request.Header
	if len(header.PeekAll("Authorization")) > 1 || len(header.PeekAll("X-Sluice-Principal")) > 1 {
		return identity.Credentials{}, badRequest("a header that names an identity is there twice")
	}
	return identity.Credentials{
		Authorization: string(header.Peek("Authorization")),
		Demo:          string(header.Peek("X-Sluice-Principal")),
	}, nil
}

// principal is whose right to read counts.
func (q *request) principal() filter.Principal {
	if q.impersonated != nil {
		return *q.impersonated
	}
	return q.who.Principal
}

// collection returns the path's collection name.
func (q *request) collection() (string, error) {
	name := q.vars["collection"]
	return name, checkCollection(name)
}

// document returns the path's collection name and document key.
func (q *request) document() (collection, key string, err error) {
	collection, key = q.vars["collection"], q.vars["key"]
	return collection, key, errors.Join(checkCollection(collection), checkKey(key))
}

// reply writes a JSON body.
func (q *request) reply(status int, body any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		return err
	}
	return q.replyText(status, text.Bytes())
}

// replyText writes a body that is JSON already.
func (q *request) replyText(status int, text []byte) error {
	q.http.SetStatusCode(status)
	q.http.SetContentType("application/json")
	return q.answer(text)
}

// fail replaces whatever was written with the failure.
func (q *request) fail(err error) {
	f := failureOf(err)
	if f.status >= 500 {
		q.s.log.Error("request failed", "request", q.id, "status", f.status, "error", err)
	}
	q.http.Response.ResetBody()
	if n := q.http.Request.Header.ContentLength(); n == -1 || n > maxUnread {
		q.http.SetConnectionClose()
		linger(q.http.Conn())
	}
	writeFailure(q.http, f, q.dialect(), q.id)
}

func (q *request) dialect() dialect {
	if q.route == nil {
		return own
	}
	return q.route.dialect
}

func writeFailure(c *fasthttp.RequestCtx, f *failure, d dialect, requestID string) {
	header := &c.Response.Header
	if f.retryable() {
		header.Set("Retry-After", f.retryAfter())
	}
	if f.status == fasthttp.StatusUnauthorized {
		header.Set("WWW-Authenticate", `Bearer realm="sluice"`)
	}
	contentType, body := d.body(f, requestID)
	text, err := json.Marshal(body)
	if err != nil { // strings and numbers only
		panic(err)
	}
	c.SetStatusCode(d.status(f))
	c.SetContentType(contentType)
	c.SetBody(text)
}

// timings writes Server-Timing: the stages, of one that ran several times the
// longest run, then the total so far.
func (q *request) timings() {
	var b strings.Builder
	for _, stage := range slowest(make([]trace.Span, 0, 16), q.stages.Spans()) {
		writeTiming(&b, stage.Name, stage.Took())
	}
	writeTiming(&b, "total", time.Since(q.started))
	q.http.Response.Header.Set("Server-Timing", strings.TrimSuffix(b.String(), ", "))
}

// slowest appends the longest span of each name to stages, which is empty.
func slowest(stages, spans []trace.Span) []trace.Span {
	for _, s := range spans {
		at := slices.IndexFunc(stages, func(o trace.Span) bool { return o.Name == s.Name })
		if at < 0 {
			stages = append(stages, s)
		} else if s.Took() > stages[at].Took() {
			stages[at] = s
		}
	}
	return stages
}

func writeTiming(b *strings.Builder, name string, took time.Duration) {
	b.WriteString(name)
	b.WriteString(";dur=")
	b.WriteString(strconv.FormatFloat(float64(took.Microseconds())/1000, 'f', -1, 64))
	b.WriteString(", ")
}

// finish gives back what the request holds, counts it and logs it. The log has
// no keys, texts, queries or tokens.
func (q *request) finish() {
	q.cancel()
	q.s.budget.Give(q.taken)
	q.tenant.leave()
	if q.slot {
		<-q.s.slots
	}
	took, status := time.Since(q.started), q.http.Response.StatusCode()
	q.s.metrics.observe(q.pattern(), string(q.http.Method()), status, took)
	q.trace.End(q.stages.Spans(), q.id, methodLabel(string(q.http.Method())), q.pattern(), status)
	q.s.log.LogAttrs(context.Background(), slog.LevelInfo, "request",
		slog.String("request", q.id),
		slog.String("method", methodLabel(string(q.http.Method()))),
		slog.String("route", q.pattern()),
		slog.Int("status", status),
		slog.Duration("took", took),
		slog.String("tenant", q.who.Principal.Tenant),
		slog.String("subject", q.who.Principal.Subject),
	)
}

func (q *request) pattern() string {
	if q.route == nil {
		return "unmatched"
	}
	return q.route.pattern
}

var requestIDForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// requestID takes the client's id if it is harmless to log.
func requestID(c *fasthttp.RequestCtx) string {
	if id := c.Request.Header.Peek("X-Request-Id"); requestIDForm.Match(id) {
		return string(id)
	}
	return rand.Text()
}

// failedResult is the per-item form of a failure.
func failedResult(key string, err error) client.WriteResult {
	if checkKey(key) != nil {
		key = ""
	}
	return client.WriteResult{Key: key, Status: "failed", Error: failureOf(err).problem()}
}
