package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
)

var annAndBob = map[string]person{
	"ann": {tenant: "acme", roles: []string{"admin"}}, "bob": {tenant: "acme", roles: []string{"read"}},
}

// admin is the address of the daemon's admin listener.
func (s *served) admin() string {
	s.t.Helper()
	return s.await(&s.err, `msg="listening for administrators" url=(http://\S+)`)
}

// restored is a home of the same people, whose data are a snapshot's.
func (h *home) restored(data string) *home {
	h.t.Helper()
	other := &home{t: h.t, dir: h.t.TempDir(), keys: h.keys}
	text, err := os.ReadFile(h.config())
	require.NoError(h.t, err)
	require.NoError(h.t, os.WriteFile(other.config(), text, 0o600))
	require.NoError(h.t, os.CopyFS(other.data(), os.DirFS(data)))
	return other
}

func (h *home) snapshot(name string) string { return filepath.Join(snapshotsDir(h.data()), name) }

// answersTo is what somebody reads, in listing and search.
func answersTo(t *testing.T, c *client.Client) (all []any) {
	t.Helper()
	for info, err := range c.Documents(t.Context(), "docs") {
		require.NoError(t, err)
		whole, err := c.Document(t.Context(), "docs", info.Key)
		require.NoError(t, err)
		all = append(all, whole)
	}
	for _, strategy := range []string{"sparse", "dense", "hybrid-late"} {
		r, err := c.Search(t.Context(), "docs", client.SearchRequest{Query: "When does harbour 7 open?", K: 20, Strategy: strategy, Explain: true})
		require.NoError(t, err)
		all = append(all, r)
	}
	return all
}

// A snapshot of a running daemon is a data directory as it was: documents,
// access and index. What was done after it is gone, and that is said.
func TestASnapshotIsRestored(t *testing.T) {
	t.Parallel()
	h := newHome(t, annAndBob, settings{"admin_listen": "127.0.0.1:0"})
	d := h.serve()
	d.collection("ann", "docs")
	write := func(key, text string) {
		_, err := d.as("ann").Write(t.Context(), "docs", note(key, text, "user:ann", "user:bob"))
		require.NoError(t, err)
	}
	for i := range 20 {
		write(fmt.Sprint("d", i), fmt.Sprintf("Harbour %d opens at %d o'clock.", i, i))
	}
	d.stop() // the index has a segment
	d = h.serve()
	write("fresh", "The harbour has a new crane.")
	_, err := d.as("ann").SetAccess(t.Context(), "docs", "d3", client.AccessPatch{Readers: jsonOf([]string{"user:ann"})})
	require.NoError(t, err)
	before := [][]any{answersTo(t, d.as("ann")), answersTo(t, d.as("bob"))}

	r := sluice(t, "snapshot", h.data(), "monday", "--admin", d.admin())
	require.Zero(t, r.code, "%s", r)
	require.Regexp(t, `/snapshots/monday holds every change up to epoch \d+\n`, r.out)
	_, err = d.as("ann").SetAccess(t.Context(), "docs", "d7", client.AccessPatch{Readers: jsonOf([]string{"user:ann"})})
	require.NoError(t, err)
	require.NoError(t, d.as("ann").Delete(t.Context(), "docs", "d8"))
	d.kill()
	d = h.serve()
	require.NotContains(t, found(t, d.as("bob"), "docs", "harbour"), "d7")
	d.stop()
	h.check()

	r = sluice(t, "check", h.snapshot("monday"))
	require.Zero(t, r.code, "%s", r)
	require.Regexp(t, `the snapshot monday of .*: changes after epoch \d+, revocations too, are not in it`, r.err)
	other := h.restored(h.snapshot("monday"))
	d = other.serve("--data", other.data())
	require.Contains(t, d.err.text(), "this data directory is a restored snapshot: revocations, deletions and all other changes after it are gone")
	require.NotContains(t, d.err.text(), "rebuil", "the index is in it")
	require.Equal(t, before, [][]any{answersTo(t, d.as("ann")), answersTo(t, d.as("bob"))})
	_, err = d.as("ann").Write(t.Context(), "docs", note("d20", "Harbour 20 opens."))
	require.NoError(t, err)
	d.stop()
	other.check()

	// without the index it is the same
	require.NoError(t, os.RemoveAll(indexDir(h.snapshot("monday"))))
	other = h.restored(h.snapshot("monday"))
	d = other.serve("--data", other.data())
	require.Equal(t, before, [][]any{answersTo(t, d.as("ann")), answersTo(t, d.as("bob"))})
	d.stop()
}

// While clients write, a snapshot has what was acknowledged before it, and no
// half of anything.
func TestASnapshotDuringWrites(t *testing.T) {
	t.Parallel()
	h := newHome(t, annAndBob, settings{"admin_listen": "127.0.0.1:0"})
	d := h.serve()
	d.collection("ann", "docs")
	ctx, stop := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	defer writing.Wait()
	defer stop()
	const snapshots = 3
	acknowledged := make([]int, snapshots)
	next, reached := make(chan int), 0
	writing.Go(func() {
		ann := d.as("ann")
		for i := 0; ; i++ {
			if _, err := ann.Write(ctx, "docs", note(fmt.Sprint("d", i), fmt.Sprintf("Number %d.", i))); err != nil {
				return
			}
			select {
			case next <- i:
			default:
			}
		}
	})
	for i := range snapshots {
		reached = <-next
		acknowledged[i] = reached
		r := sluice(t, "snapshot", h.data(), strconv.Itoa(i), "--admin", d.admin())
		require.Zero(t, r.code, "%s", r)
	}
	stop()
	writing.Wait()
	d.kill()
	for i, last := range acknowledged {
		require.Equal(t, "no faults\n", sluice(t, "check", h.snapshot(strconv.Itoa(i))).out)
		other := h.restored(h.snapshot(strconv.Itoa(i)))
		d := other.serve("--data", other.data())
		there := map[string]bool{}
		for info, err := range d.as("ann").Documents(t.Context(), "docs") {
			require.NoError(t, err)
			there[info.Key] = true
		}
		for n := range last + 1 {
			require.True(t, there[fmt.Sprint("d", n)], "d%d in snapshot %d", n, i)
		}
		d.stop()
		other.check()
	}
}

// A stopped daemon's directory needs no daemon; a name is taken once, and is no
// path; what a crash left is removed, and is never a snapshot.
func TestSnapshotsOfAStoppedDaemon(t *testing.T) {
	t.Parallel()
	h := stocked(t)
	r := sluice(t, "snapshot", h.data(), "one")
	require.Zero(t, r.code, "%s", r)
	require.NoError(t, os.MkdirAll(h.snapshot(".two.part"), 0o700))
	r = sluice(t, "snapshot", h.data(), "one")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "file already exists")
	for _, name := range []string{"..", ".hidden", "a/b", "/tmp/x", " "} {
		r = sluice(t, "snapshot", h.data(), name)
		require.Equal(t, 1, r.code, name)
		require.Contains(t, r.err, "is no name for a snapshot")
	}
	r = sluice(t, "snapshot", h.data(), "two")
	require.Zero(t, r.code, "%s", r)
	entries, err := os.ReadDir(snapshotsDir(h.data()))
	require.NoError(t, err)
	require.Len(t, entries, 2, "%v", entries)
	require.Equal(t, 1, sluice(t, "snapshot", t.TempDir(), "none").code)

	segments := files(t, indexDir(h.snapshot("two")))
	require.NotEmpty(t, segments)
	for _, file := range files(t, h.snapshot("two")) {
		if extension := filepath.Ext(file); extension != ".sst" && extension != ".seg" {
			continue
		}
		place, err := filepath.Rel(h.snapshot("two"), file)
		require.NoError(t, err)
		there, err := os.Stat(file)
		require.NoError(t, err)
		here, err := os.Stat(filepath.Join(h.data(), place))
		require.NoError(t, err)
		require.True(t, os.SameFile(here, there), "%s is no hard link", place)
	}
	other := h.restored(h.snapshot("one"))
	d := other.serve("--data", other.data())
	require.Len(t, found(t, d.as("ann"), "docs", "harbour"), 20)
	d.stop()
}

// The daemon that is asked must be the one of the directory.
func TestASnapshotOfAnotherDaemon(t *testing.T) {
	t.Parallel()
	public := settings{"admin_listen": "127.0.0.1:0"}
	h, stranger := newHome(t, onePerson, public), newHome(t, onePerson, public)
	d, other := h.serve(), stranger.serve()
	r := sluice(t, "snapshot", h.data(), "a", "--admin", other.admin())
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "has another data directory")
	require.NoDirExists(t, h.snapshot("a"))
	r = sluice(t, "snapshot", h.data(), "b", "--admin", d.admin())
	require.Zero(t, r.code, "%s", r)
	r = sluice(t, "snapshot", h.data(), "b", "--admin", d.admin())
	require.Contains(t, r.err, "Conflict")
	r = sluice(t, "snapshot", h.data(), "../b", "--admin", d.admin())
	require.Contains(t, r.err, "Bad Request")
	for _, args := range [][]string{{"snapshot", h.data(), "c"}, {"cache", "stats"}, {"cache", "prune", "--older-than", "1h"}} {
		require.Contains(t, sluice(t, append(args, "--admin", "http://127.0.0.1:1")...).err, "--admin names another")
	}
	other.stop()
	d.stop()
}
