package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"sluice/client"
	"sluice/gpu"
	"sluice/ingest"
	"sluice/server/config"
	"sluice/server/identity"
)

const ndjson = "application/x-ndjson"

func (d *daemon) bulk(body string) (a answer, results []client.WriteResult) {
	d.t.Helper()
	a = d.send("POST", "/v1/collections/c/documents", body, "Authorization", bearer("writer"), "Content-Type", ndjson)
	if a.status != 200 {
		return a, nil
	}
	require.Equal(d.t, ndjson, a.header.Get("Content-Type"))
	for line := range strings.Lines(a.body) {
		var r client.WriteResult
		require.NoError(d.t, json.Unmarshal([]byte(line), &r))
		results = append(results, r)
	}
	return a, results
}

func line(key, text string) string {
	return fmt.Sprintf(`{"key":%q,"format":"text","text":%q}`, key, text)
}

// short is what a test compares of a result.
func short(results []client.WriteResult) []string {
	var all []string
	for _, r := range results {
		s := fmt.Sprintf("%d %s %s", r.Line, r.Key, r.Status)
		if r.Error != nil {
			s += fmt.Sprintf(" %d %s", r.Error.Status, r.Error.Detail)
		}
		all = append(all, s)
	}
	return all
}

func TestBadLinesHarmNoNeighbours(t *testing.T) {
	d := start(t)
	d.collection()
	d.fake.onWrite = func(_ context.Context, one ingest.Document) error {
		switch one.Key {
		case "panics":
			panic("the-reason")
		case "overload":
			return gpu.ErrOverloaded
		}
		return nil
	}
	_, results := d.bulk(strings.Join([]string{
		line("a", "x"),
		`{"key":"b","format":`,
		"",
		line("c", "x"),
		`{"key":"d","format":"text","text":"` + "\xff" + `"}`,
		`{"key":"e","format":"text","text":"x","mood":"bad"}`,
		line("f", strings.Repeat("x", 64<<10)),
		line(strings.Repeat("k", 5000), "x"),
		`{"key":"g\u0000","format":"text","text":"x"}`,
		`{"key":"h","format":"docx","text":"x"}`,
		line("panics", "x"),
		line("overload", "x"),
		"\t \r",
		line("z", "x") + "\r",
		line("last/without newline", "x"),
	}, "\n"))
	require.Equal(t, []string{
		"1 a created",
		"2 b failed 400 malformed JSON at byte 20: unexpected EOF",
		"4 c created",
		"5 d failed 400 malformed JSON at byte 35: invalid UTF-8",
		`6 e failed 400 unknown field "mood"`,
		"7  failed 413 the line is larger than limits.body_bytes",
		"8  failed 400 key: longer than 1024 bytes",
		"9  failed 400 key: not UTF-8 without control characters",
		"10 h failed 400 format \"docx\": invalid; use markdown, html or text",
		"11 panics failed 500 this is the daemon's fault; its log has more under the request id",
		"12 overload failed 429 the daemon has too much to do; send it again later",
		"14 z created",
		"15 last/without newline created",
	}, short(results))
	require.Len(t, d.fake.documents["acme/c"], 4)
	require.Empty(t, d.slots)
}

func TestEmptyBulk(t *testing.T) {
	d := start(t)
	d.collection()
	for _, body := range []string{"\n", "\n\n \n"} {
		a, results := d.bulk(body)
		require.Equal(t, 200, a.status)
		require.Empty(t, results)
	}
	_, err := d.as("root").CreateCollection(context.Background(), "other", client.CollectionSettings{})
	require.NoError(t, err)
	requireProblem(t, 404, d.send("POST", "/v1/collections/none/documents", line("a", "x"), "Authorization", bearer("writer"), "Content-Type", ndjson))
}

// Lines with the same key are applied in their order, whatever runs beside them.
func TestDuplicateKeysAreAppliedInOrder(t *testing.T) {
	d := start(t)
	d.collection()
	var mu sync.Mutex
	seen := map[string][]string{}
	d.fake.onWrite = func(_ context.Context, one ingest.Document) error {
		mu.Lock()
		defer mu.Unlock()
		seen[one.Key] = append(seen[one.Key], string(one.Text))
		return nil
	}
	var body strings.Builder
	want := map[string][]string{}
	for i := range 300 {
		key, text := fmt.Sprint("k", i%7), fmt.Sprint(i)
		want[key] = append(want[key], text)
		body.WriteString(line(key, text) + "\n")
	}
	_, results := d.bulk(body.String())
	require.Len(t, results, 300)
	for i, r := range results {
		require.Equal(t, i+1, r.Line)
		require.Equal(t, uint32(i/7+1), r.Version)
	}
	require.Equal(t, want, seen)
	require.Equal(t, "299", d.fake.documents["acme/c"]["k5"].Text)
}

// Documents of one body are worked on at the same time.
func TestBulkConcurrency(t *testing.T) {
	d := start(t, func(s *setup) { s.limits.BulkConcurrency = 16 })
	d.collection()
	var active atomic.Int32
	two := make(chan struct{})
	d.fake.onWrite = func(ctx context.Context, _ ingest.Document) error {
		if active.Add(1) == 2 {
			close(two)
		}
		select {
		case <-two:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	var body strings.Builder
	for i := range 64 {
		body.WriteString(line(fmt.Sprint(i), "x") + "\n")
	}
	_, results := d.bulk(body.String())
	for _, r := range results {
		require.Equal(t, "created", r.Status)
	}
}

func documents(all ...client.Document) iter.Seq2[client.Document, error] {
	return func(yield func(client.Document, error) bool) {
		for _, one := range all {
			if !yield(one, nil) {
				return
			}
		}
	}
}

// Results come while the body is still being sent.
func TestBulkStreamsBothWays(t *testing.T) {
	d := start(t)
	d.collection()
	result := make(chan client.WriteResult, 1)
	lockstep := func(yield func(client.Document, error) bool) {
		for i := range 20 {
			if !yield(text(fmt.Sprint(i), "x"), nil) {
				return
			}
			if r := <-result; r.Line != i+1 || r.Status != "created" {
				yield(client.Document{}, fmt.Errorf("unexpected result: %+v", r))
				return
			}
		}
	}
	err := d.as("writer").Ingest(context.Background(), "c", lockstep, func(r client.WriteResult) error { result <- r; return nil })
	require.NoError(t, err)
	require.Len(t, d.fake.documents["acme/c"], 20)
}

// A client may send everything before it reads anything.
func TestBulkWithoutReading(t *testing.T) {
	d := start(t)
	d.collection()
	var body strings.Builder
	for i := range 5000 {
		body.WriteString(line(fmt.Sprint(i), "x") + "\n")
	}
	connection := d.dial()
	_, err := fmt.Fprintf(connection, "POST /v1/collections/c/documents HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nAuthorization: %s\r\nContent-Length: %d\r\n\r\n%s",
		ndjson, bearer("writer"), body.Len(), body.String())
	require.NoError(t, err)
	reader := bufio.NewReader(connection)
	response, err := http.ReadResponse(reader, nil)
	require.NoError(t, err)
	require.Equal(t, 5000, strings.Count(d.read(response).body, `"created"`))

	// The connection serves the next request.
	_, err = io.WriteString(connection, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	response, err = http.ReadResponse(reader, nil)
	require.NoError(t, err)
	require.Equal(t, 200, d.read(response).status)
}

// The line at which the body breaks off is named; those before it stand.
func TestTruncatedBulk(t *testing.T) {
	d := start(t)
	d.collection()
	connection := d.dial()
	_, err := fmt.Fprintf(connection, "POST /v1/collections/c/documents HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nAuthorization: %s\r\nContent-Length: 1000\r\n\r\n%s\n{\"key\":",
		ndjson, bearer("writer"), line("a", "x"))
	require.NoError(t, err)
	a := d.halfClosed(connection)
	require.Equal(t, 200, a.status)
	require.Contains(t, a.body, `{"line":1,"key":"a","status":"created"`)
	require.Contains(t, a.body, `{"line":2,"status":"failed","error":{"type":"about:blank","title":"Bad Request","status":400`)
	require.Len(t, d.fake.documents["acme/c"], 1)
}

// When a result cannot be delivered, what is under way is cancelled and the slot is free.
func TestBulkClientGone(t *testing.T) {
	d := start(t)
	d.collection()
	entered, gone, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	d.fake.onWrite = func(ctx context.Context, one ingest.Document) error {
		if one.Key == "first" {
			close(entered)
			<-gone
			return nil
		}
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	}
	connection := d.dial().(*net.TCPConn)
	_, err := fmt.Fprintf(connection, "POST /v1/collections/c/documents HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nAuthorization: %s\r\nContent-Length: 100000\r\n\r\n%s\n%s\n",
		ndjson, bearer("writer"), line("first", "x"), line("slow", "x"))
	require.NoError(t, err)
	<-entered
	require.NoError(t, connection.SetLinger(0)) // reset
	require.NoError(t, connection.Close())
	close(gone)
	require.ErrorIs(t, <-ended, context.Canceled, "not by its deadline")
	require.NoError(t, d.stop())
	require.Empty(t, d.slots)
}

// A drain ends a body between two lines, and says where.
func TestBulkDrain(t *testing.T) {
	d := start(t)
	d.collection()
	sent := make(chan struct{})
	endless := func(yield func(client.Document, error) bool) {
		yield(text("a", "x"), nil)
		<-sent // the daemon has answered it, and waits for the next
	}
	var results []client.WriteResult
	stopped := make(chan error, 1)
	err := d.as("writer").Ingest(context.Background(), "c", endless, func(r client.WriteResult) error {
		results = append(results, r)
		if len(results) == 1 {
			go func() { stopped <- d.stop() }()
		} else {
			close(sent)
		}
		return nil
	})
	_ = err // all lines that were sent have a result, or the last one is the drain's
	require.Equal(t, []string{"1 a created", "2  failed 503 the daemon is shutting down; send the lines from this one on again"}, short(results))
	require.NoError(t, <-stopped)
}

// Whether the drain finds the pump before a read or in it, the line named is
// the one that was not read.
func TestDrainNamesTheUnreadLine(t *testing.T) {
	serving, drain := context.WithCancel(context.Background())
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	q := &request{s: &Server{serving: serving}, http: new(fasthttp.RequestCtx)}
	q.http.Init2(ours, nil, false)
	in := &ingestion{q: q, ctx: context.Background(), lines: newLines(strings.NewReader("a\nb\n"), 10, NewBudget(100))}
	_, err := in.next()
	require.NoError(t, err)
	require.Equal(t, 1, in.lines.count)
	drain()
	_, err = in.next()
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 2, in.lines.count)
}

// A key that is removed, or may do less, writes nothing more through a stream
// that was open.
func TestOpenStreamsAreAuthenticatedAgain(t *testing.T) {
	weaker := apiKey("writer", "acme", nil, "read")
	another := apiKey("writer", "acme", []string{"eng"}, "write")
	for _, c := range []struct {
		keys []config.APIKey
		want int
	}{{nil, 401}, {[]config.APIKey{weaker}, 403}, {[]config.APIKey{another}, 401}} {
		d := start(t)
		d.collection()
		connection := d.dial()
		fmt.Fprintf(connection, "POST /v1/collections/c/documents HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nContent-Type: application/x-ndjson\r\nContent-Length: 1000\r\n\r\n%s\n", bearer("writer"), line("a", "x"))
		response, err := http.ReadResponse(bufio.NewReader(connection), nil)
		require.NoError(t, err)
		results := json.NewDecoder(response.Body)
		var r client.WriteResult
		require.NoError(t, results.Decode(&r))
		require.Equal(t, "created", r.Status)
		next, err := identity.New(t.Context(), config.Auth{APIKeys: c.keys}, config.Demo{})
		require.NoError(t, err)
		d.SetIdentities(next)
		fmt.Fprintf(connection, "%s\n%s\n", line("b", "x"), line("c", "x"))
		require.NoError(t, results.Decode(&r))
		require.Equal(t, []any{"failed", 2, c.want}, []any{r.Status, r.Line, r.Error.Status})
		require.ErrorIs(t, results.Decode(&r), io.EOF, "the stream has ended")
		require.Len(t, d.fake.documents["acme/c"], 1)
	}
}

// What ends by itself, such as a token, is seen within a second.
func TestStreamsAreProvenEverySecond(t *testing.T) {
	d := start(t)
	q := &request{s: d.Server, route: &route{role: identity.Write}} // with no credentials at all
	now := time.Now()
	in := &ingestion{q: q, proven: proof{now, d.identities.Load()}}
	require.NoError(t, in.prove(now.Add(proveEvery-1)))
	require.ErrorIs(t, in.prove(now.Add(proveEvery)), identity.ErrUnauthenticated)
}

func TestIngestErrors(t *testing.T) {
	d := start(t)
	d.collection()
	boom := errors.New("boom")
	ignore := func(client.WriteResult) error { return nil }
	failing := func(yield func(client.Document, error) bool) {
		if yield(text("a", "x"), nil) {
			yield(client.Document{}, boom)
		}
	}
	require.ErrorIs(t, d.as("writer").Ingest(context.Background(), "c", failing, ignore), boom)
	require.ErrorIs(t, d.as("writer").Ingest(context.Background(), "c", documents(text("a", "x"), text("b", "x")), func(client.WriteResult) error { return boom }), boom)
	requireStatus(t, 403, d.as("alice").Ingest(context.Background(), "c", documents(text("a", "x")), ignore))
	requireStatus(t, 404, d.as("writer").Ingest(context.Background(), "none", documents(text("a", "x")), ignore))
	require.NoError(t, d.as("writer").Ingest(context.Background(), "c", documents(), ignore))
}

func FuzzLines(f *testing.F) {
	for _, seed := range []string{"", "\n", "a\nb", "a\r\n\nb\n", "aaaaaaaaaaaaaaaaaaaaaaaa\nb", " \n\t\n"} {
		f.Add([]byte(seed), 5)
	}
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		limit = 1 + (limit&0xff)%64
		l := newLines(strings.NewReader(string(data)), limit, NewBudget(1<<20))
		var got []string
		for {
			line, err := l.next()
			if err == io.EOF {
				break
			}
			if err != nil {
				require.ErrorIs(t, err, errLineTooLong)
				line = []byte("too long")
			}
			got = append(got, fmt.Sprintf("%d %s", l.count, line))
		}
		require.Equal(t, naiveLines(string(data), limit), got)
	})
}

func naiveLines(data string, limit int) (all []string) {
	for i, line := range strings.Split(data, "\n") {
		switch {
		case len(line) > limit:
			all = append(all, fmt.Sprintf("%d too long", i+1))
		case strings.TrimSpace(line) != "":
			all = append(all, fmt.Sprintf("%d %s", i+1, line))
		}
	}
	return slices.Clip(all)
}
