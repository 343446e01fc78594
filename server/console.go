package server

import (
	"github.com/valyala/fasthttp"

	"sluice/server/console"
)

// toConsole sends a browser from the daemon's address to the console.
func (s *Server) toConsole(q *request) error {
	q.http.Response.Header.Set("Location", "/console")
	q.http.SetStatusCode(fasthttp.StatusFound)
	return nil
}

// console answers with the web console's files. They hold nothing secret: what
// they show, they ask for with the visitor's own token.
func (s *Server) console(q *request) error {
	name, named := q.vars["file"]
	if !named {
		name = console.Page
	}
	file, ok := console.Open(name)
	if !ok {
		return failf(fasthttp.StatusNotFound, "the console has no such file")
	}
	header := &q.http.Response.Header
	header.Set("Content-Security-Policy", console.Policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-cache")
	header.Set("ETag", file.Tag)
	if string(q.http.Request.Header.Peek("If-None-Match")) == file.Tag {
		q.http.SetStatusCode(fasthttp.StatusNotModified)
		return nil
	}
	q.http.SetContentType(file.Type)
	q.http.Response.SetBodyRaw(file.Body)
	return nil
}
