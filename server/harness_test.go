package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/server/audit"
	"sluice/server/config"
	"sluice/server/identity"
	"sluice/server/traces"
)

// daemon is a Server on a real listener, over a fake backend.
type daemon struct {
	*Server
	t        *testing.T
	fake     *fake
	url      string
	log      *syncBuffer
	registry *prometheus.Registry
	stop     func() error // drains, and returns what Serve returned
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// the keys of start's identities
var keys = map[string]struct{ key, hash string }{}

func init() {
	for _, name := range []string{"alice", "bob", "writer", "root", "other"} {
		key, hash := identity.NewKey()
		keys[name] = struct{ key, hash string }{key, hash}
	}
}

func apiKey(name, tenant string, groups []string, role string) config.APIKey {
	return config.APIKey{Name: name, Hash: keys[name].hash, Principal: config.Principal{
		Tenant: tenant, Subject: name, Groups: groups, Roles: []string{role}, Attributes: map[string]any{"region": "EU"},
	}}
}

type setup struct {
	backend func(*fake) // readies the fake before the daemon starts; nil: as it is
	limits  config.Limits
	budget  *Budget
	demo    config.Demo
	audit   *audit.Log
	tls     config.TLS
	traces  *traces.Exporter
}

func start(t *testing.T, change ...func(*setup)) *daemon {
	t.Helper()
	s := setup{limits: config.Default().Limits}
	s.limits.BodyBytes = 64 << 10
	for _, c := range change {
		c(&s)
	}
	auth := config.Auth{APIKeys: []config.APIKey{
		apiKey("alice", "acme", []string{"eng"}, "read"), apiKey("bob", "acme", nil, "read"),
		apiKey("writer", "acme", nil, "write"), apiKey("root", "acme", nil, "admin"), apiKey("other", "rival", nil, "admin"),
	}}
	identities, err := identity.New(context.Background(), auth, s.demo)
	require.NoError(t, err)
	d := &daemon{t: t, fake: newFake(), log: &syncBuffer{}, registry: prometheus.NewRegistry()}
	if s.backend != nil {
		s.backend(d.fake)
	}
	var certificate *Certificate
	if s.tls.Enabled() {
		certificate, err = LoadCertificate(s.tls, d.registry)
		require.NoError(t, err)
	}
	d.Server = New(Options{
		Backend: d.fake, Identities: identities, Limits: s.limits, Budget: s.budget, Demo: s.demo.Enabled, Audit: s.audit, Certificate: certificate, Traces: s.traces,
		Log:      slog.New(slog.NewTextHandler(d.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Registry: d.registry,
	})
	d.serve()
	return d
}

func (d *daemon) serve() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(d.t, err)
	d.url = "http://" + listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- d.Serve(ctx, listener) }()
	d.stop = sync.OnceValue(func() error { cancel(); return <-served })
	d.t.Cleanup(func() { http.DefaultClient.CloseIdleConnections(); _ = d.stop() })
}

func (d *daemon) as(name string) *client.Client {
	c, err := client.New(d.url, client.WithAPIKey(keys[name].key), client.WithRetries(0))
	require.NoError(d.t, err)
	d.t.Cleanup(c.CloseIdle)
	return c
}

// collection creates "c" as root and fills it.
func (d *daemon) collection(documents ...client.Document) {
	_, err := d.as("root").CreateCollection(context.Background(), "c", client.CollectionSettings{})
	require.NoError(d.t, err)
	for _, one := range documents {
		_, err := d.as("writer").Write(context.Background(), "c", one)
		require.NoError(d.t, err)
	}
}

type answer struct {
	status int
	header http.Header
	body   string
}

// send makes a request with net/http; headers come in pairs.
func (d *daemon) send(method, path, body string, headers ...string) answer {
	d.t.Helper()
	request, err := http.NewRequest(method, d.url+path, strings.NewReader(body))
	require.NoError(d.t, err)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(d.t, err)
	return d.read(response)
}

func (d *daemon) read(response *http.Response) answer {
	d.t.Helper()
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(d.t, err)
	return answer{response.StatusCode, response.Header, string(text)}
}

func bearer(name string) string { return "Bearer " + keys[name].key }

// raw writes bytes to a fresh connection and reads one answer.
func (d *daemon) raw(text string) answer {
	d.t.Helper()
	connection := d.dial()
	_, err := io.WriteString(connection, text)
	require.NoError(d.t, err)
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	require.NoError(d.t, err)
	return d.read(response)
}

func (d *daemon) dial() net.Conn {
	d.t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(d.url, "http://"))
	require.NoError(d.t, err)
	require.NoError(d.t, connection.SetDeadline(time.Now().Add(20*time.Second)))
	d.t.Cleanup(func() { connection.Close() })
	return connection
}

// requireProblem checks that the answer is a problem of this status, and returns its detail.
func requireProblem(t *testing.T, status int, a answer) string {
	t.Helper()
	require.Equal(t, status, a.status, a.body)
	require.Equal(t, "application/problem+json", a.header.Get("Content-Type"))
	var p client.Problem
	require.NoError(t, json.Unmarshal([]byte(a.body), &p))
	require.Equal(t, status, p.Status)
	require.Equal(t, "about:blank", p.Type)
	require.NotEmpty(t, p.Title)
	require.NotEmpty(t, p.Detail)
	return p.Detail
}

func text(key, body string, readers ...string) client.Document {
	d := client.Document{Key: key, Format: "text", Text: body}
	if readers != nil {
		d.Readers = &readers
	}
	return d
}

// halfClosed ends the sending side and reads one answer.
func (d *daemon) halfClosed(connection net.Conn) answer {
	d.t.Helper()
	require.NoError(d.t, connection.(*net.TCPConn).CloseWrite())
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	require.NoError(d.t, err)
	return d.read(response)
}
