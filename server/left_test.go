package server

import (
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/filter"
	"sluice/server/config"
	"sluice/server/tlstest"
	"sluice/store"
)

// leaving are the ways in which a client leaves: with or without TLS, whose last
// word waits to be read, and after a further request, which waits as well.
func leaving(t *testing.T, test func(t *testing.T, d *daemon, c net.Conn, leave func())) {
	for _, how := range []string{"plain", "tls", "pipelined", "tls pipelined"} {
		t.Run(how, func(t *testing.T) {
			if how != "plain" && runtime.GOOS != "linux" {
				t.Skip("unread bytes hide the end of a connection here")
			}
			t.Parallel()
			var d *daemon
			var c net.Conn
			if strings.Contains(how, "tls") {
				var authority *tlstest.Authority
				d, authority, _ = secure(t)
				c = authority.Dial(strings.TrimPrefix(d.url, "https://"))
			} else {
				d = start(t)
				c = d.dial()
			}
			test(t, d, c, func() {
				if strings.Contains(how, "pipelined") {
					_, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
					require.NoError(t, err)
				}
				require.NoError(t, c.Close())
			})
		})
	}
}

// What reads every document ends when nobody waits for it any more.
func TestAnEstimateEndsWithItsClient(t *testing.T) {
	leaving(t, func(t *testing.T, d *daemon, c net.Conn, leave func()) {
		began, ended := make(chan struct{}), make(chan error, 1)
		d.fake.reindexes.onEstimate = func(ctx context.Context) error {
			close(began)
			<-ctx.Done()
			ended <- ctx.Err()
			return ctx.Err()
		}
		const body = `{"chunker":"structure/1"}`
		_, err := fmt.Fprintf(c, "POST /v1/collections/c/reindex/estimate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"+
			"Authorization: %s\r\nContent-Length: %d\r\n\r\n%s", bearer("root"), len(body), body)
		require.NoError(t, err)
		<-began
		leave()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

// So does a stream that waits for its tenant's limit, however many of its lines
// have arrived.
func TestASlowedStreamEndsWithItsClient(t *testing.T) {
	leaving(t, func(t *testing.T, d *daemon, c net.Conn, leave func()) {
		d.tenants.limits = map[string]config.TenantLimits{"acme": {IngestBytesPerSecond: 64 << 10}}
		paused, ended := make(chan struct{}), make(chan struct{})
		d.tenants.pause = func(ctx context.Context, _ time.Duration) {
			close(paused)
			<-ctx.Done()
			close(ended)
		}
		_, _, err := d.fake.CreateCollection(t.Context(), filter.Principal{Tenant: "acme"}, "c", store.Settings{})
		require.NoError(t, err)
		body := strings.Repeat(line("k", strings.Repeat("x", 40<<10))+"\n", 2)
		_, err = fmt.Fprintf(c, "POST /v1/collections/c/documents HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\n"+
			"Authorization: %s\r\nContent-Length: %d\r\n\r\n%s", ndjson, bearer("writer"), len(body), body)
		require.NoError(t, err)
		<-paused
		leave()
		<-ended
		require.NoError(t, d.stop())
		require.Empty(t, d.slots)
	})
}
