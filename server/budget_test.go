package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/gpu"
	"sluice/ingest"
	"sluice/retrieve"
)

const total = 256 << 10

func withTotal(s *setup) { s.limits.TotalBytes = total }

// requireWholeBudget checks that what finished requests had taken is given back.
func (d *daemon) requireWholeBudget() {
	d.t.Helper()
	require.NoError(d.t, d.stop())
	require.EqualValues(d.t, d.limits.TotalBytes, d.budget.left.Load())
}

// A text that there is no room for now has jobs wait; one that there never is ends them.
func TestNoRoomForATextIsOverload(t *testing.T) {
	b := NewBudget(10)
	require.True(t, b.take(5))
	for n, status := range map[int]int{6: 429, 11: 413} {
		err := fmt.Errorf("tokenizing: %w", b.Take(n, 0))
		require.Equal(t, status, failureOf(err).status)
		require.Contains(t, failureOf(err).detail, "limits.total_bytes")
		require.Equal(t, status == 429, errors.Is(err, gpu.ErrOverloaded))
	}
	require.EqualValues(t, 5, b.left.Load())
}

// Bodies under way count together, whatever each may be by itself.
func TestBodiesUnderWayAreBounded(t *testing.T) {
	d := start(t, withTotal)
	d.collection()
	entered, release := make(chan struct{}), make(chan struct{})
	d.fake.onWrite = func(_ context.Context, one ingest.Document) error {
		if one.Key == "k" {
			entered <- struct{}{}
			<-release
		}
		return nil
	}
	body := line("k", strings.Repeat("x", 60<<10))
	answers := make(chan int, 4)
	for range cap(answers) {
		go func() {
			answers <- d.send("POST", "/v1/collections/c/documents", body, "Authorization", bearer("writer")).status
		}()
		<-entered
	}
	a := d.send("POST", "/v1/collections/c/documents", body, "Authorization", bearer("writer"))
	require.Contains(t, requireProblem(t, 429, a), "limits.total_bytes")
	require.Equal(t, "1", a.header.Get("Retry-After"))
	_, results := d.bulk(body + "\n" + line("small", "x"))
	require.Equal(t, 429, results[0].Error.Status)
	rest := int(d.budget.left.Load())
	require.True(t, d.budget.take(rest))
	require.Equal(t, 200, d.send("POST", "/v1/collections/c/search", `{"query":"q"}`, "Authorization", bearer("alice")).status, "writers cannot stop searches")
	d.budget.Give(rest)

	close(release)
	for range cap(answers) {
		require.Less(t, <-answers, 300)
	}
	d.requireWholeBudget()
}

// One NDJSON body holds no more than the largest line may, however many lines
// its workers could take.
func TestABulkBodyHoldsOneLargestLine(t *testing.T) {
	d := start(t, withTotal, func(s *setup) { s.limits.BulkConcurrency = 64 })
	d.collection()
	var body strings.Builder
	for i := range 64 {
		body.WriteString(line(fmt.Sprint(i), strings.Repeat("x", 40<<10)) + "\n")
	}
	var least int64 = total
	d.fake.onWrite = func(context.Context, ingest.Document) error {
		d.fake.mu.Lock()
		defer d.fake.mu.Unlock()
		least = min(least, d.budget.left.Load())
		return nil
	}
	_, results := d.bulk(body.String())
	for _, r := range results {
		require.Equal(t, "created", r.Status)
	}
	require.GreaterOrEqual(t, least, int64(total-2*(64<<10)), "the one in the workers and the one arriving")
	d.requireWholeBudget()
}

// A client that does not read holds its slot and its bytes.
func TestAnswersNotTakenAreBounded(t *testing.T) {
	const size = 16 << 20 // more than sockets buffer
	d := start(t, func(s *setup) { s.limits.BodyBytes, s.limits.TotalBytes = 2*size, 2*size })
	d.collection(text("k", strings.Repeat("x", size)))
	const request = "GET /v1/collections/c/documents/k HTTP/1.1\r\nHost: x\r\nAuthorization: "
	idle := d.dial()
	_, err := io.WriteString(idle, request+bearer("alice")+"\r\n\r\n")
	require.NoError(t, err)
	reader := bufio.NewReader(idle)
	response, err := http.ReadResponse(reader, nil) // the answer is under way
	require.NoError(t, err)
	requireProblem(t, 429, d.raw(request+bearer("alice")+"\r\n\r\n"))
	require.Len(t, d.slots, 1)

	require.Len(t, d.read(response).body, int(response.ContentLength))
	require.NoError(t, idle.Close())
	d.requireWholeBudget()
	require.Empty(t, d.slots)
}

// What is given up half-way is given back.
func TestBudgetOfBrokenRequests(t *testing.T) {
	d := start(t, withTotal)
	d.collection()
	for _, contentType := range []string{"application/json", ndjson} {
		connection := d.dial()
		_, err := fmt.Fprintf(connection, "POST /v1/collections/c/documents HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nAuthorization: %s\r\nContent-Length: 60000\r\n\r\n%s\n%s",
			contentType, bearer("writer"), strings.Repeat(" ", 9000), strings.Repeat("x", 9000))
		require.NoError(t, err)
		d.halfClosed(connection)
	}
	_, results := d.bulk(strings.Repeat("x", 70<<10) + "\n{\n\n  \n" + line("k", "x"))
	require.Len(t, results, 3)
	d.fake.onSearch = func(context.Context, retrieve.Request) error { panic("injected") }
	requireProblem(t, 500, d.send("POST", "/v1/collections/c/search", `{"query":"q"}`, "Authorization", bearer("alice")))
	d.requireWholeBudget()
}

// A search's body has room for the longest query and the most vectors; what is
// not small is part of the budget.
func TestBodiesOfSearchesAreBounded(t *testing.T) {
	d := start(t, func(s *setup) { s.limits.BodyBytes, s.limits.TotalBytes = 16<<20, 16<<20 })
	d.collection()
	search := func(body string) answer {
		return d.send("POST", "/v1/collections/c/search", body, "Authorization", bearer("alice"))
	}
	requireProblem(t, 413, search(`{"query":"`+strings.Repeat("x", maxSearch)+`"}`))
	longest := `"query":"` + strings.Repeat(`\u0041`, retrieve.MaxQueryBytes) + `"`
	require.Equal(t, 200, search("{"+longest+"}").status)
	numbers := strings.TrimSuffix(strings.Repeat("-1.2345678e-05,", retrieve.MaxQueryNumbers), ",")
	largest := "{" + longest + `,"vectors":[[` + numbers + "]]}"
	others := int(d.limits.TotalBytes) - (len(largest) - maxSmallBody)
	d.budget.Give(-others)
	require.Equal(t, 200, search(largest).status, "there is room for what is more than small")
	d.budget.Give(-1)
	require.Equal(t, 429, search(largest).status)
	require.Equal(t, 200, search("{"+longest+"}").status, "a small one needs none")
	d.budget.Give(others + 1)
	d.requireWholeBudget()
}

// unlucky fails to accept before it succeeds.
type unlucky struct {
	net.Listener
	failures int
	err      error
}

func (u *unlucky) Accept() (net.Conn, error) {
	if u.failures > 0 {
		u.failures--
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: u.err}
	}
	return u.Listener.Accept()
}

// Whoever opens many connections must not end the daemon.
func TestAcceptOutlivesALackOfFiles(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer inner.Close()
	client, err := net.Dial("tcp", inner.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	c, err := lingerListener{&unlucky{inner, 3, syscall.EMFILE}}.Accept()
	require.NoError(t, err)
	require.NoError(t, c.Close())

	_, err = lingerListener{&unlucky{inner, 1, net.ErrClosed}}.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestConnectionsAreBounded(t *testing.T) {
	d := start(t, func(s *setup) { s.limits.Connections = 3 })
	var open []net.Conn
	for range 3 {
		c := d.dial()
		_, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		require.NoError(t, err)
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		require.Equal(t, 200, response.StatusCode)
		open = append(open, c)
	}
	c := d.dial()
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	require.Equal(t, 503, response.StatusCode)
	_, err = io.ReadAll(c)
	require.True(t, err == nil || errors.Is(err, syscall.ECONNRESET), err)
	require.Len(t, open, 3)

	var files syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files))
	require.LessOrEqual(t, uint64(connections(1<<62)), files.Cur/2)
	require.Equal(t, 3, connections(3))
}
