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
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sluice/client"
	"sluice/store"
)

// Snapshooter makes a snapshot of the data directory, of the given name.
// store.ErrInvalid: no such name is possible. fs.ErrExist: it is taken.
type Snapshooter func(ctx context.Context, name string) (client.Snapshot, error)

// ServeAdmin answers /metrics, /debug/pprof and PUT /snapshots/{name} until ctx
// ends. It asks for no identity: whoever reaches the listener is trusted.
func ServeAdmin(ctx context.Context, listener net.Listener, gatherer prometheus.Gatherer, snapshot Snapshooter) error {
	s := &http.Server{Handler: adminHandler(gatherer, snapshot), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving %s: %w", listener.Addr(), err)
	}
	return nil
}

func adminHandler(gatherer prometheus.Gatherer, snapshot Snapshooter) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("PUT /snapshots/{name}", snapshot.ServeHTTP)
	return mux
}

// ServeHTTP is of a method that no web page may use towards another site.
func (snapshot Snapshooter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	made, err := snapshot(r.Context(), r.PathValue("name"))
	if err == nil {
		answerAdmin(w, http.StatusCreated, "application/json", made)
		return
	}
	status := http.StatusInternalServerError
	switch {
	case errors.Is(err, store.ErrInvalid):
		status = http.StatusBadRequest
	case errors.Is(err, fs.ErrExist):
		status = http.StatusConflict
	}
	answerAdmin(w, status, "application/problem+json", client.Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: err.Error()})
}

func answerAdmin(w http.ResponseWriter, status int, contentType string, body any) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // fails if the operator has gone
}
