package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/server/config"
)

// limited starts a Server with limits for the tenant acme, on a clock that
// stands still: what waits moves it.
func limited(t *testing.T, limits config.TenantLimits) (d *daemon, clock *atomic.Int64) {
	clock = &atomic.Int64{}
	d = start(t, func(s *setup) { s.limits.Tenants = map[string]config.TenantLimits{"acme": limits} })
	d.tenants.now = func() time.Time { return time.Unix(1_800_000_000, clock.Load()) }
	d.tenants.pause = func(_ context.Context, wait time.Duration) { clock.Add(int64(wait)) }
	d.collection()
	_, err := d.as("other").CreateCollection(t.Context(), "c", client.CollectionSettings{})
	require.NoError(t, err)
	return d, clock
}

func (d *daemon) searchAs(name string) answer {
	d.t.Helper()
	return d.send("POST", "/v1/collections/c/search", `{"query": "tides"}`, "Authorization", bearer(name))
}

func TestTenantSearches(t *testing.T) {
	d, clock := limited(t, config.TenantLimits{SearchesPerSecond: 2})
	for range 3 {
		require.Equal(t, 200, d.searchAs("alice").status)
		require.Equal(t, 200, d.searchAs("bob").status, "of all who belong to it")
		a := d.searchAs("alice")
		require.Contains(t, requireProblem(t, 429, a), "searches more often")
		require.Equal(t, "1", a.header.Get("Retry-After"))
		for range 10 {
			require.Equal(t, 200, d.searchAs("other").status, "the other tenant has no limit")
		}
		require.Equal(t, 200, d.send("GET", "/v1/collections/c", "", "Authorization", bearer("alice")).status, "nor what is no search")
		clock.Add(int64(time.Second))
	}
	body := d.send("GET", "/metrics", "", "Authorization", bearer("root")).body
	require.Contains(t, body, "sluice_http_requests_rejected_total 3")
}

// A refused search takes nothing from those to come.
func TestTenantRefusalsAreFree(t *testing.T) {
	d, clock := limited(t, config.TenantLimits{SearchesPerSecond: 0.1})
	require.Equal(t, 200, d.searchAs("alice").status)
	for range 20 {
		a := d.searchAs("alice")
		require.Equal(t, 429, a.status)
		require.Equal(t, "10", a.header.Get("Retry-After"))
	}
	clock.Add(int64(10 * time.Second))
	require.Equal(t, 200, d.searchAs("alice").status)
}

func TestTenantRequestsInFlight(t *testing.T) {
	d, _ := limited(t, config.TenantLimits{ConcurrentRequests: 1})
	entered, release := held(d.fake)
	first := d.searchInBackground()
	<-entered
	a := d.send("GET", "/v1/collections/c", "", "Authorization", bearer("bob"))
	require.Contains(t, requireProblem(t, 429, a), "as many requests under way")
	require.Equal(t, "1", a.header.Get("Retry-After"))
	require.Equal(t, 200, d.send("GET", "/v1/collections/c", "", "Authorization", bearer("other")).status)
	require.Equal(t, 200, d.send("GET", "/metrics", "", "Authorization", bearer("root")).status, "probes are not counted")
	release()
	require.NoError(t, <-first)
	require.Equal(t, 200, d.send("GET", "/v1/collections/c", "", "Authorization", bearer("bob")).status)
}

func TestTenantBytes(t *testing.T) {
	const burst = 64 << 10 // a largest document fits
	d, clock := limited(t, config.TenantLimits{IngestBytesPerSecond: 1 << 10})
	write := func(name string, size int) answer {
		body := line("k", strings.Repeat("x", size))
		return d.send("POST", "/v1/collections/c/documents", body, "Authorization", bearer(name))
	}
	require.Equal(t, 201, write("writer", burst-1000).status)
	a := write("writer", 10<<10)
	require.Contains(t, requireProblem(t, 429, a), "more bytes a second")
	require.Equal(t, "10", a.header.Get("Retry-After"))
	require.Equal(t, 201, write("other", burst-1000).status)
	require.Equal(t, 200, d.searchAs("alice").status, "searches go on")
	clock.Add(int64(10 * time.Second))
	require.Equal(t, 200, write("writer", 10<<10).status)
}

// A body of many documents is slowed down, not refused: every line is written,
// and the time that took is what the limit says.
func TestTenantBytesOfAStream(t *testing.T) {
	d, clock := limited(t, config.TenantLimits{IngestBytesPerSecond: 64 << 10})
	var body strings.Builder
	for i := range 40 {
		body.WriteString(line(fmt.Sprint(i), strings.Repeat("x", 16<<10)) + "\n")
	}
	a, results := d.bulk(body.String())
	require.Equal(t, 200, a.status)
	require.Len(t, results, 40)
	for _, r := range results {
		require.Equal(t, "created", r.Status)
	}
	took, want := time.Duration(clock.Load()).Seconds(), float64(body.Len()-40-64<<10)/(64<<10)
	require.InDelta(t, want, took, 0.001)
}

// A stream that would have to wait longer than a client may is ended where it is;
// neither what is refused nor what is no document takes anything from the limit.
func TestTenantBytesOfAStreamAreNoDebt(t *testing.T) {
	d, clock := limited(t, config.TenantLimits{IngestBytesPerSecond: 1 << 10})
	large := strings.Repeat("x", 60<<10)
	junk := strings.Repeat(large+"\n", 20)
	a, results := d.bulk(junk + line("a", large) + "\n" + line("b", large) + "\n" + line("c", "x"))
	require.Equal(t, 200, a.status)
	require.Len(t, results, 22, "none after the refused one")
	require.Equal(t, 400, results[19].Error.Status)
	require.Equal(t, "created", results[20].Status)
	require.Equal(t, 429, results[21].Error.Status)
	require.Contains(t, results[21].Error.Detail, "from this one on")
	require.Zero(t, clock.Load(), "nothing waited")
	left := line("d", strings.Repeat("x", 3<<10))
	require.Equal(t, 201, d.send("POST", "/v1/collections/c/documents", left, "Authorization", bearer("writer")).status)
}

func TestTenantOthers(t *testing.T) {
	limits := config.Default().Limits
	limits.Tenants = map[string]config.TenantLimits{"acme": {ConcurrentRequests: 2}, "*": {ConcurrentRequests: 1}}
	all := newTenants(limits)
	for name, most := range map[string]int{"acme": 2, "a": 1, "b": 1} {
		for range most {
			_, err := all.enter(name)
			require.NoError(t, err)
		}
		_, err := all.enter(name)
		require.Error(t, err, name)
	}
	limits.Tenants = nil
	all = newTenants(limits)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		one, err := all.enter("acme")
		if err != nil || one.search() != nil || one.write(1<<30) != nil {
			t.Error("without limits nothing is refused")
		}
		one.leave()
	}))
}

// Whoever has given back all that they took is forgotten, and nobody else.
func TestTenantsAreForgotten(t *testing.T) {
	limits := config.Default().Limits
	limits.Tenants = map[string]config.TenantLimits{"*": {ConcurrentRequests: 1, SearchesPerSecond: 1, IngestBytesPerSecond: limits.BodyBytes}}
	all, clock := newTenants(limits), time.Unix(1_800_000_000, 0)
	all.now = func() time.Time { return clock }
	come := func(name string) *tenant {
		one, err := all.enter(name)
		require.NoError(t, err)
		return one
	}
	come("busy")
	searched, wrote := come("searched"), come("wrote")
	for range 20 * fewTenants {
		come(rand.Text()).leave()
		require.LessOrEqual(t, len(all.known), fewTenants)
	}
	require.NoError(t, searched.search())
	require.NoError(t, wrote.write(1))
	searched.leave()
	wrote.leave()
	for range 3 * fewTenants {
		come(rand.Text()).leave()
	}
	require.Subset(t, slices.Collect(maps.Keys(all.known)), []string{"busy", "searched", "wrote"})
	clock = clock.Add(time.Second)
	for range 3 * fewTenants {
		come(rand.Text()).leave()
	}
	require.Contains(t, all.known, "busy")
	require.NotContains(t, all.known, "searched")
	require.NotContains(t, all.known, "wrote")
}

// All that is stored counts: rows of access and judged queries as documents do.
func TestTenantBytesOfAllWrites(t *testing.T) {
	const burst = 64 << 10
	large := strings.Repeat(" ", 40<<10)
	writes := map[string]func(*daemon) answer{
		"patch": func(d *daemon) answer {
			return d.send("PATCH", "/v1/collections/c/documents/k/access", `{"readers":[`+large+`]}`, "Authorization", bearer("writer"))
		},
		"queries": func(d *daemon) answer {
			return d.send("PUT", "/v1/collections/c/queries", `{"queries":[`+large+`]}`, "Authorization", bearer("root"))
		},
	}
	for name, write := range writes {
		d, _ := limited(t, config.TenantLimits{IngestBytesPerSecond: 1 << 10})
		require.NotEqual(t, 429, write(d).status, name)
		require.Contains(t, requireProblem(t, 429, write(d)), "more bytes a second", name)
	}
	d, clock := limited(t, config.TenantLimits{IngestBytesPerSecond: 1 << 10})
	body := strings.Repeat(`{"key":"k","readers":[`+large+"]}\n", 2)
	a := d.send("POST", "/v1/collections/c/access/import", body, "Authorization", bearer("root"), "Content-Type", ndjson)
	require.Equal(t, 200, a.status)
	require.InDelta(t, float64(len(body)-burst)/(1<<10), time.Duration(clock.Load()).Seconds(), 0.1)
}
