package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/retrieve"
)

// held makes searches wait until the returned function is called; entered gets
// a value when one begins to wait.
func held(f *fake) (entered chan struct{}, release func()) {
	entered, gate := make(chan struct{}, 16), make(chan struct{})
	f.onSearch = func(ctx context.Context, _ retrieve.Request) error {
		entered <- struct{}{}
		select {
		case <-gate:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return entered, func() { close(gate) }
}

func (d *daemon) searchInBackground() chan error {
	done, c := make(chan error, 1), d.as("alice")
	go func() {
		_, err := c.Search(context.Background(), "c", client.SearchRequest{Query: "q"})
		done <- err
	}()
	return done
}

func TestAdmission(t *testing.T) {
	d := start(t, func(s *setup) { s.limits.ConcurrentRequests = 1 })
	d.collection()
	entered, release := held(d.fake)
	first := d.searchInBackground()
	<-entered

	a := d.send("GET", "/v1/collections/c", "", "Authorization", bearer("alice"))
	requireProblem(t, 429, a)
	require.Equal(t, "1", a.header.Get("Retry-After"))
	require.Equal(t, 200, d.send("GET", "/healthz", "").status, "probes are admitted")
	require.Contains(t, d.send("GET", "/metrics", "", "Authorization", bearer("root")).body, "sluice_http_requests_rejected_total 1")

	release()
	require.NoError(t, <-first)
	require.Equal(t, 200, d.send("GET", "/v1/collections/c", "", "Authorization", bearer("alice")).status)
}

func TestDeadline(t *testing.T) {
	d := start(t, func(s *setup) { s.limits.RequestTimeout = 10 * time.Millisecond })
	d.collection()
	_, release := held(d.fake)
	defer release()
	requireProblem(t, 504, d.send("POST", "/v1/collections/c/search", `{"query":"q"}`, "Authorization", bearer("alice")))
}

func TestPanic(t *testing.T) {
	d := start(t)
	d.collection()
	d.fake.onSearch = func(context.Context, retrieve.Request) error { panic("the-reason") }
	a := d.send("POST", "/v1/collections/c/search", `{"query":"q"}`, "Authorization", bearer("alice"))
	requireProblem(t, 500, a)
	require.NotContains(t, a.body, "the-reason")
	require.Contains(t, d.log.String(), "the-reason")
	require.Contains(t, d.log.String(), a.header.Get("X-Request-Id"))
	body := d.send("GET", "/metrics", "", "Authorization", bearer("root")).body
	require.Contains(t, body, "sluice_http_panics_total 1")
	require.Contains(t, body, `sluice_http_requests_total{code="500",method="POST",route="/v1/collections/{collection}/search"} 1`)
	require.Contains(t, body, `sluice_http_request_duration_seconds_count{code="500",method="POST",route="/v1/collections/{collection}/search"} 1`)
	require.Empty(t, d.slots, "its slot is free again")
}

func TestLabelsAreBounded(t *testing.T) {
	d := start(t)
	d.raw("BREW /a HTTP/1.1\r\nHost: x\r\n\r\n")
	d.raw("STEEP /b HTTP/1.1\r\nHost: x\r\n\r\n")
	body := d.send("GET", "/metrics", "", "Authorization", bearer("root")).body
	require.Contains(t, body, `sluice_http_requests_total{code="404",method="other",route="unmatched"} 2`)
	require.NotContains(t, body, "BREW")
}

// A drain lets what is under way finish, and accepts nothing new.
func TestDrain(t *testing.T) {
	d := start(t)
	d.collection()
	entered, release := held(d.fake)
	search := d.searchInBackground()
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- d.stop() }()
	<-d.serving.Done()

	address := strings.TrimPrefix(d.url, "http://")
	require.Eventually(t, func() bool {
		_, err := (&http.Client{Transport: &http.Transport{}}).Get("http://" + address + "/healthz")
		return err != nil
	}, 10*time.Second, time.Millisecond, "the listener closes")
	release()
	require.NoError(t, <-search)
	require.NoError(t, <-stopped)
}

// What is still under way at the end of the drain is told so.
func TestDrainIsCutOff(t *testing.T) {
	d := start(t, func(s *setup) { s.limits.DrainTimeout = 10 * time.Millisecond })
	d.collection()
	entered, release := held(d.fake)
	defer release()
	search := d.searchInBackground()
	<-entered
	require.NoError(t, d.stop())
	err := <-search
	requireStatus(t, 503, err)
	var p *client.Problem
	require.True(t, errors.As(err, &p))
	require.Equal(t, time.Second, p.RetryAfter)
}

func TestReadyzWhileDraining(t *testing.T) {
	d := start(t)
	d.drain()
	require.Equal(t, "draining", requireProblem(t, 503, d.send("GET", "/readyz", "")))
}

// A client that sends its request too slowly is cut off.
func TestSlowRequests(t *testing.T) {
	d := start(t, func(s *setup) { s.limits.ReadTimeout = 20 * time.Millisecond })
	requireProblem(t, 408, d.raw("GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: "))
	requireProblem(t, 408, d.raw(fmt.Sprintf("POST /v1/collections/c/search HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: 20\r\n\r\n{\"que", bearer("alice"))))
}
