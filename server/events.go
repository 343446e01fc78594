package server

import "io"

// streamEvents answers with server-sent events, as the stream has them. It
// finishes the request when it is closed.
func (q *request) streamEvents(stream io.ReadCloser) {
	q.streams = true
	q.http.SetContentType("text/event-stream")
	q.http.Response.Header.Set("Cache-Control", "no-store")
	q.http.Response.ImmediateHeaderFlush = true
	q.http.Response.SetBodyStream(stream, -1)
}

// event is one whose data is a line of JSON.
func event(data []byte) []byte { return append(append([]byte("data: "), data...), "\n\n"...) }
