// Package server is the HTTP front: routes, identity, admission and wire
// formats over fasthttp. What it answers is declared in package client.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"sluice/server/audit"
	"sluice/server/config"
	"sluice/server/identity"
	"sluice/server/traces"
)

const (
	maxHeader   = 16 << 10
	idleTimeout = 75 * time.Second
	cutGrace    = time.Second // for the answers of requests cut off by the end of a drain
)

// Options are what a Server needs.
type Options struct {
	Backend     Backend
	Identities  *identity.Authenticator
	Cores       int // texts that are tokenized at once, told in the style of TEI
	Limits      config.Limits
	Budget      *Budget          // nil: one that it shares with nobody
	Demo        bool             // say so in every response
	Audit       *audit.Log       // nil: none
	Certificate *Certificate     // nil: plain HTTP
	Traces      *traces.Exporter // nil: none
	Log         *slog.Logger
	Registry    *prometheus.Registry
	Version     string // of the build, for /info
}

// Server answers HTTP requests.
type Server struct {
	backend     Backend
	identities  atomic.Pointer[identity.Authenticator]
	certificate *Certificate
	limits      config.Limits
	demo        bool
	version     string
	cores       int
	audit       *audit.Log
	traces      *traces.Exporter
	log         *slog.Logger
	metrics     *metrics
	router      router
	slots       chan struct{}
	budget      *Budget
	tenants     *tenants
	http        *fasthttp.Server

	base    context.Context // parent of all requests; ends when a drain is cut off
	cut     context.CancelFunc
	serving context.Context // ends when a drain begins
	drain   context.CancelFunc
}

// New returns a Server; its metrics are registered.
func New(o Options) *Server {
	s := &Server{
		backend:     o.Backend,
		certificate: o.Certificate,
		limits:      o.Limits,
		demo:        o.Demo,
		version:     o.Version,
		cores:       o.Cores,
		audit:       o.Audit,
		traces:      o.Traces,
		log:         o.Log,
		metrics:     newMetrics(o.Registry),
		router:      newRouter(routes()),
		slots:       make(chan struct{}, o.Limits.ConcurrentRequests),
		tenants:     newTenants(o.Limits),
		budget:      cmp.Or(o.Budget, NewBudget(o.Limits.TotalBytes)),
	}
	s.SetIdentities(o.Identities)
	s.base, s.cut = context.WithCancel(context.Background())
	s.serving, s.drain = context.WithCancel(context.Background())
	s.http = s.newHTTP()
	if s.demo {
		s.log.Warn("demo mode: anybody who reaches the listener can be any demo principal")
	}
	return s
}

// SetIdentities replaces who may ask; requests that have proved who they are go on.
func (s *Server) SetIdentities(a *identity.Authenticator) { s.identities.Store(a) }

func (s *Server) newHTTP() *fasthttp.Server {
	return &fasthttp.Server{
		Handler:                      s.handle,
		ErrorHandler:                 s.handleUnreadable,
		ReadBufferSize:               maxHeader,
		Concurrency:                  connections(s.limits.Connections),
		ReadTimeout:                  s.limits.ReadTimeout,
		WriteTimeout:                 s.limits.ReadTimeout,
		IdleTimeout:                  idleTimeout,
		StreamRequestBody:            true, // handlers read bodies, each with its limit
		MaxRequestBodySize:           1,    // with streaming: what is read before the handler is called
		DisablePreParseMultipartForm: true,
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		CloseOnShutdown:              true,
		TCPKeepalive:                 true,
		SecureErrorLogMessage:        true,
		Logger:                       slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// Serve answers requests until ctx ends, then drains: nothing new is accepted,
// what is under way goes on for limits.drain_timeout and is then cut off with
// 503. A Server serves once.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	defer s.cut()
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(s.certificate.secure(lingerListener{listener})) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving %s: %w", listener.Addr(), err)
	case <-ctx.Done():
		return s.shutdown()
	}
}

func (s *Server) shutdown() error {
	s.log.Info("draining", "timeout", s.limits.DrainTimeout)
	s.drain()
	cut := time.AfterFunc(s.limits.DrainTimeout, s.cut)
	defer cut.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), s.limits.DrainTimeout+cutGrace)
	defer cancel()
	if err := s.http.ShutdownWithContext(ctx); err != nil {
		return fmt.Errorf("requests were still under way at the end of limits.drain_timeout: %w", err)
	}
	return nil
}

// handleUnreadable answers what fasthttp could not read as a request.
func (s *Server) handleUnreadable(c *fasthttp.RequestCtx, err error) {
	f := failf(fasthttp.StatusBadRequest, "this is not a well-formed HTTP request")
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.As(err, &small):
		f = failf(fasthttp.StatusRequestHeaderFieldsTooLarge, "the header is larger than %d bytes", maxHeader)
	case errors.Is(err, os.ErrDeadlineExceeded):
		f = failf(fasthttp.StatusRequestTimeout, "the request did not arrive within limits.read_timeout")
	}
	writeFailure(c, f, own, "")
	s.metrics.inFlight.Inc()
	s.metrics.observe("unmatched", "", f.status, 0)
}
