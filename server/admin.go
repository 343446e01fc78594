package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sluice/client"
	"sluice/store"
)

// Snapshooter makes a snapshot of the data directory, of the given name.
// store.ErrInvalid: no such name is possible. fs.ErrExist: it is taken.
type Snapshooter func(ctx context.Context, name string) (client.Snapshot, error)

// Cache is an embedding cache.
type Cache interface {
	CacheSize(ctx context.Context) (store.CacheSize, error)
	PruneEmbeddings(ctx context.Context, before time.Time) (store.CacheSize, error)
}

// Administration is what the admin listener offers.
type Administration struct {
	Metrics  prometheus.Gatherer
	Snapshot Snapshooter
	Cache    Cache
	Reload   func(context.Context) error // reads policies, keys and certificates again
	Hosts    []string                    // names of the listener, beside IP addresses and localhost
}

// ServeAdmin answers /metrics, /debug/pprof, PUT /snapshots/{name}, PUT /reload and /cache
// until ctx ends. It asks for no identity: whoever reaches the listener is trusted.
func ServeAdmin(ctx context.Context, listener net.Listener, a Administration) error {
	s := &http.Server{Handler: a.handler(), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving %s: %w", listener.Addr(), err)
	}
	return nil
}

func (a Administration) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.Metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("PUT /snapshots/{name}", a.Snapshot.ServeHTTP)
	mux.HandleFunc("PUT /reload", a.serveReload)
	mux.HandleFunc("GET /cache", func(w http.ResponseWriter, r *http.Request) {
		size, err := a.Cache.CacheSize(r.Context())
		answerCache(w, size, err)
	})
	mux.HandleFunc("DELETE /cache", func(w http.ResponseWriter, r *http.Request) {
		age, err := time.ParseDuration(r.URL.Query().Get("age"))
		if err != nil || age < 0 {
			answerAdminError(w, fmt.Errorf("%w: age: a duration such as 720h is expected", store.ErrInvalid))
			return
		}
		removed, err := a.Cache.PruneEmbeddings(r.Context(), time.Now().Add(-age))
		answerCache(w, removed, err)
	})
	return a.named(mux)
}

// named refuses requests to other names: to a browser a web page of such a name
// is the listener's own, if its owner has the name resolve to the listener's address.
func (a Administration) named(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.isNamed(r.Host) {
			answerProblem(w, http.StatusMisdirectedRequest, "this is not a name of the admin listener; use an IP address, localhost or a name of the setting admin_hosts")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isNamed looks at a host with or without port.
func (a Administration) isNamed(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	if _, err := netip.ParseAddr(name); err == nil || strings.EqualFold(name, "localhost") {
		return true
	}
	return name != "" && slices.ContainsFunc(a.Hosts, func(one string) bool { return strings.EqualFold(name, one) })
}

// ServeHTTP is of a method that no web page may use towards another site.
func (snapshot Snapshooter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	made, err := snapshot(r.Context(), r.PathValue("name"))
	if err == nil {
		answerAdmin(w, http.StatusCreated, "application/json", made)
		return
	}
	answerAdminError(w, err)
}

func (a Administration) serveReload(w http.ResponseWriter, r *http.Request) {
	if err := a.Reload(r.Context()); err != nil {
		answerAdminError(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func answerCache(w http.ResponseWriter, size store.CacheSize, err error) {
	if err != nil {
		answerAdminError(w, err)
		return
	}
	answerAdmin(w, http.StatusOK, "application/json", client.CacheSize(size))
}

func answerAdminError(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch {
	case errors.Is(err, store.ErrInvalid):
		status = http.StatusBadRequest
	case errors.Is(err, fs.ErrExist):
		status = http.StatusConflict
	}
	answerProblem(w, status, err.Error())
}

func answerProblem(w http.ResponseWriter, status int, detail string) {
	answerAdmin(w, status, "application/problem+json", client.Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail})
}

func answerAdmin(w http.ResponseWriter, status int, contentType string, body any) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // fails if the operator has gone
}
