package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/store/postgres/postgrestest"
)

const entries = 40 // documents of the shared collection

// fleet is three daemons on one database, each with a data directory of its own.
type fleet struct {
	*home
	url     string
	daemons [3]*served
	deaf    string // role by which one of them is on the database; "": none has its own
	search  client.SearchRequest
}

// newFleet starts the daemons, each with the URL that it is given for the database.
func newFleet(t testing.TB, urls func(url string) [3]string, changes ...settings) *fleet {
	t.Helper()
	f := &fleet{home: newHome(t, accessPeople, changes...), url: postgrestest.URL(t), search: tides}
	f.serve("--store", f.url, "--data", f.path("first")).stop() // makes the tables
	for i, url := range urls(f.url) {
		f.daemons[i] = f.serve("--store", url, "--data", f.path(fmt.Sprint("data", i)))
	}
	return f
}

// newDeafFleet is one of which the second daemon can be kept from the feed.
func newDeafFleet(t testing.TB, changes ...settings) *fleet {
	t.Helper()
	var role string
	f := newFleet(t, func(url string) [3]string {
		b, name := postgrestest.Role(t, url)
		role = name
		return [3]string{url, b, url}
	}, changes...)
	f.deaf = role
	return f
}

// fill writes the collection through the daemons in turn.
func (f *fleet) fill() {
	f.t.Helper()
	f.daemons[0].collection("root", "docs")
	for i := range entries {
		text := fmt.Sprintf("Harbour entry %d of the tide ledger.%s", i, strings.Repeat(" tide", i%5))
		_, err := f.daemons[i%3].patient("root").Write(f.t.Context(), "docs", note(fmt.Sprint(i), text, "group:hr"))
		require.NoError(f.t, err)
	}
}

// answer is what became of one search.
type answer struct {
	daemon   int
	began    time.Time
	response client.SearchResponse
	err      error
}

var tides = client.SearchRequest{Query: "tide at the harbour", K: 100, Strategy: "sparse"}

// load searches through some of the daemons until it is stopped, and keeps every answer.
type load struct {
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	mu      sync.Mutex
	answers []answer
	grown   chan struct{} // closed with each answer
}

func (f *fleet) load(daemons ...int) *load {
	l := &load{grown: make(chan struct{})}
	l.ctx, l.cancel = context.WithTimeout(f.t.Context(), patience)
	for _, i := range daemons {
		for range 2 {
			c := f.daemons[i].as("ann")
			l.running.Go(func() {
				for l.ctx.Err() == nil {
					a := answer{daemon: i, began: time.Now()}
					a.response, a.err = c.Search(l.ctx, "docs", f.search)
					l.keep(a)
				}
			})
		}
	}
	f.t.Cleanup(func() { l.stop() })
	return l
}

func (l *load) keep(a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() == nil { // what was cut short says nothing
		l.answers = append(l.answers, a)
		close(l.grown)
		l.grown = make(chan struct{})
	}
}

// since waits for n answers of each of the daemons to searches that began later.
func (l *load) since(t testing.TB, began time.Time, n int, daemons ...int) (late []answer) {
	t.Helper()
	for {
		l.mu.Lock()
		grown, counts := l.grown, map[int]int{}
		late = late[:0]
		for _, a := range l.answers {
			if a.began.After(began) {
				late = append(late, a)
				counts[a.daemon]++
			}
		}
		l.mu.Unlock()
		enough := true
		for _, i := range daemons {
			enough = enough && counts[i] >= n
		}
		if enough {
			return late
		}
		select {
		case <-grown:
		case <-l.ctx.Done():
			t.Fatalf("too few searches are answered: %v", counts)
		}
	}
}

func (l *load) stop() []answer {
	l.cancel()
	l.running.Wait()
	return l.answers
}

func keysOf(r client.SearchResponse) map[string]float64 {
	scores := map[string]float64{}
	for _, result := range r.Results {
		scores[result.Document] = result.Score
	}
	return scores
}

// refused reports a refusal that says when to come again.
func refused(err error) bool {
	var p *client.Problem
	return errors.As(err, &p) && p.Status == http.StatusServiceUnavailable && p.RetryAfter > 0
}

// A revocation through one daemon holds on all of them, also on the one whose
// feed has stopped: it answers nothing until it follows again.
func TestDaemonsObeyRevocations(t *testing.T) {
	t.Parallel()
	f := newDeafFleet(t)
	f.fill()
	f.obeysRevocation()
	for _, d := range f.daemons {
		d.stop()
	}
}

func (f *fleet) obeysRevocation() {
	t := f.t
	t.Helper()
	for _, d := range f.daemons {
		response, err := d.patient("ann").Search(t.Context(), "docs", f.search)
		require.NoError(t, err)
		require.Equal(t, entries, response.Counts.Visible)
		require.Len(t, keysOf(response), entries)
	}
	searches := f.load(1, 2)
	searches.since(t, time.Now(), 5, 1, 2)
	postgrestest.Exec(t, f.url, "revoke select on changes from "+f.deaf)

	root := f.daemons[0].patient("root")
	_, err := root.SetAccess(t.Context(), "docs", "7", client.AccessPatch{Readers: jsonOf([]string{})})
	require.NoError(t, err)
	acknowledged := time.Now()
	late := searches.since(t, acknowledged, 20, 1, 2)
	_, err = f.daemons[1].as("ann").Document(t.Context(), "docs", "7")
	require.True(t, refused(err), "%v", err)

	want, err := f.daemons[0].patient("ann").Search(t.Context(), "docs", f.search)
	require.NoError(t, err)
	require.Equal(t, entries-1, want.Counts.Visible)
	answered := 0
	for _, a := range late {
		if a.daemon == 1 {
			require.True(t, refused(a.err), "a daemon that does not follow answers: %v %v", a.response.Counts, a.err)
			continue
		}
		if refused(a.err) {
			continue // the machine is busy
		}
		answered++
		require.NoError(t, a.err)
		require.Equal(t, want.Counts, a.response.Counts)
		require.Equal(t, keysOf(want), keysOf(a.response), "nor does it score with the document")
	}
	require.NotZero(t, answered)

	postgrestest.Exec(t, f.url, "grant select on changes to "+f.deaf)
	require.Eventually(t, func() bool {
		response, err := f.daemons[1].as("ann").Search(t.Context(), "docs", f.search)
		if err != nil {
			require.True(t, refused(err), "%v", err)
			return false
		}
		require.Equal(t, keysOf(want), keysOf(response))
		return true
	}, patience, 50*time.Millisecond)
	searches.stop()
}

// A daemon whose database is silent or gone answers 503 and recovers without a
// restart; the others do not notice.
func TestDaemonWithoutDatabase(t *testing.T) {
	t.Parallel()
	var proxy *postgrestest.Proxy
	f := newFleet(t, func(url string) [3]string {
		proxy = postgrestest.NewProxy(t, url)
		return [3]string{url, proxy.URL, url}
	})
	f.fill()
	others := f.load(0, 2)
	for _, fault := range []struct{ begin, end func() }{
		{func() { proxy.Silence(true) }, func() { proxy.Silence(false) }},
		{proxy.Cut, proxy.Mend},
	} {
		ann := f.daemons[1].as("ann")
		_, err := ann.Search(t.Context(), "docs", tides)
		require.NoError(t, err)
		fault.begin()
		_, err = ann.Search(t.Context(), "docs", tides)
		require.True(t, refused(err), "%v", err)
		others.since(t, time.Now(), 5, 0, 2)
		fault.end()
		require.Eventually(t, func() bool {
			response, err := ann.Search(t.Context(), "docs", tides)
			require.True(t, err == nil && len(response.Results) == entries || refused(err), "%v", err)
			return err == nil
		}, patience, 50*time.Millisecond)
	}
	for _, a := range others.stop() {
		require.NoError(t, a.err)
	}
}

// Killing a daemon fails its own requests and nobody else's, and leaves every
// document whole: as acknowledged, or as it was before the write under way.
func TestDaemonKilled(t *testing.T) {
	t.Parallel()
	f := newFleet(t, func(url string) [3]string { return [3]string{url, url, url} })
	f.fill()
	f.survivesAKill(entries)
}

// survivesAKill kills the first daemon while it writes. ann is to find so many
// documents before that.
func (f *fleet) survivesAKill(visible int) {
	t := f.t
	t.Helper()
	others := f.load(1, 2)
	others.since(t, time.Now(), 3, 1, 2)
	victim := f.daemons[0]
	var writing sync.WaitGroup
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	enough := make(chan struct{})
	for w := range 3 {
		root := victim.as("root")
		writing.Go(func() {
			for i := 0; ; i++ {
				key := fmt.Sprintf("w%d/%d", w, i)
				if _, err := root.Write(t.Context(), "docs", note(key, "Buoy "+key+" rings.", "group:hr")); err != nil {
					return
				}
				mu.Lock()
				acknowledged[key] = true
				if len(acknowledged) == 15 {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	<-enough
	victim.kill()
	writing.Wait()
	others.since(t, time.Now(), 10, 1, 2)
	for _, a := range others.stop() {
		require.NoError(t, a.err)
		require.GreaterOrEqual(t, len(a.response.Results), visible)
	}
	ann, seen := f.daemons[1].as("ann"), map[string]bool{}
	for info, err := range ann.Documents(t.Context(), "docs") {
		require.NoError(t, err)
		seen[info.Key] = true
		document, err := ann.Document(t.Context(), "docs", info.Key)
		require.NoError(t, err)
		if strings.HasPrefix(info.Key, "w") {
			require.Equal(t, "Buoy "+info.Key+" rings.", document.Text)
			require.Contains(t, found(t, f.daemons[2].as("ann"), "docs", `"buoy `+info.Key+`"`), info.Key)
		}
	}
	for key := range acknowledged {
		require.True(t, seen[key], "%s is acknowledged and gone", key)
	}
}
