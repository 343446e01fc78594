package server

import (
	_ "embed"

	"github.com/valyala/fasthttp"

	"sluice/client"
)

// healthz answers as long as the process serves requests at all.
func (s *Server) healthz(q *request) error {
	return q.reply(fasthttp.StatusOK, client.Status{Status: "ok"})
}

// readyz answers whether requests would be served now. Why not is for the log.
func (s *Server) readyz(q *request) error {
	if s.serving.Err() != nil {
		return failf(fasthttp.StatusServiceUnavailable, "draining")
	}
	if err := s.backend.Ready(q.ctx); err != nil {
		s.log.Warn("not ready", "reason", err)
		return failf(fasthttp.StatusServiceUnavailable, "not ready")
	}
	return q.reply(fasthttp.StatusOK, client.Status{Status: "ok"})
}

//go:embed openapi.json
var openAPI []byte

func (s *Server) openAPI(q *request) error {
	q.http.SetContentType("application/json")
	q.http.Response.SetBodyRaw(openAPI)
	return nil
}
