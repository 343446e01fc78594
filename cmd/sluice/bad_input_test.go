package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/client"
)

const fiftyMegabytes = 50_000_000

// peakMemory is the most memory that the daemon has held, in bytes.
func (s *served) peakMemory() int {
	s.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.command.Process.Pid))
	require.NoError(s.t, err)
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	require.NotNil(s.t, found)
	kilobytes, err := strconv.Atoi(string(found[1]))
	require.NoError(s.t, err)
	return kilobytes << 10
}

// A line of fifty megabytes ends at its deadline if it has to be embedded, and
// meanwhile others are served. Memory stays within a few dozen times the body.
func TestOneLineOfFiftyMegabytes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: fifty megabytes are for the long run")
	}
	const timeout = 5 * time.Second
	h := newHome(t, onePerson, pretrained(t), settings{"limits": settings{"body_bytes": "64MiB"}})
	d := h.serve("--limits.request-timeout", timeout.String())
	d.collection("ann", "docs")
	ann := d.as("ann")
	var distinct strings.Builder
	for i := 0; distinct.Len() < fiftyMegabytes; i++ {
		fmt.Fprintf(&distinct, "harbour%d ", i)
	}
	refused := make(chan error, 1)
	started := time.Now()
	go func() {
		_, err := ann.Write(t.Context(), "docs", client.Document{Key: "huge", Format: "markdown", Text: distinct.String()})
		refused <- err
	}()
	beside := 0
	for done := false; !done; {
		select {
		case err := <-refused:
			require.Equal(t, 504, refusal(t, err))
			done = true
		default:
			_, err := ann.Write(t.Context(), "docs", note("small", fmt.Sprint("crane ", beside)))
			require.NoError(t, err)
			beside++
		}
	}
	t.Logf("refused after %v with a deadline of %v; %d small documents meanwhile; peak memory %d MiB",
		time.Since(started).Round(time.Millisecond), timeout, beside, d.peakMemory()>>20)
	require.Positive(t, beside)
	require.Equal(t, []string{"small"}, found(t, ann, "docs", "crane"))
	_, err := ann.Document(t.Context(), "docs", "huge")
	require.Equal(t, 404, refusal(t, err))

	// Without a single space, and all of it the same: cut, embedded once, kept.
	d.stop()
	d = h.serve("--limits.request-timeout", patience.String())
	result, err := d.as("ann").Write(t.Context(), "docs", client.Document{Key: "word", Format: "markdown", Text: strings.Repeat("x", fiftyMegabytes)})
	require.NoError(t, err)
	require.Greater(t, result.Chunks, 10_000)
	t.Logf("%d chunks; peak memory %d MiB", result.Chunks, d.peakMemory()>>20)
	require.Less(t, d.peakMemory(), 3<<30)
	d.stop()
}

func TestABodyOverTheLimitIsRefusedByItself(t *testing.T) {
	t.Parallel()
	d := newHome(t, onePerson, settings{"limits": settings{"body_bytes": "64KiB"}}).serve()
	d.collection("ann", "docs")
	huge := strings.Repeat("harbour ", 16<<10)
	_, err := d.as("ann").Write(t.Context(), "docs", note("huge", huge))
	require.Equal(t, 413, refusal(t, err))
	require.ErrorContains(t, err, "limits.body_bytes")

	var statuses []string
	lines := func(yield func(client.Document, error) bool) {
		_ = yield(note("a", "crane"), nil) && yield(note("huge", huge), nil) && yield(note("b", "crane"), nil)
	}
	require.NoError(t, d.as("ann").Ingest(t.Context(), "docs", lines, func(r client.WriteResult) error {
		statuses = append(statuses, fmt.Sprint(r.Line, " ", r.Status))
		return nil
	}))
	require.Equal(t, []string{"1 created", "2 failed", "3 created"}, statuses)
	require.ElementsMatch(t, []string{"a", "b"}, found(t, d.as("ann"), "docs", "crane"))
	d.stop()
}

func TestDeepHTML(t *testing.T) {
	t.Parallel()
	d := newHome(t, onePerson).serve()
	d.collection("ann", "docs")
	for _, tag := range []string{"div", "ul><li", "table><tr><td", "b", "p", "blockquote", "svg", "template", "a href=x"} {
		text := strings.Repeat("<"+tag+">", 200_000) + "harbour of " + tag[:1]
		_, err := d.as("ann").Write(t.Context(), "docs", client.Document{Key: tag, Format: "html", Text: text})
		if err != nil {
			require.Equal(t, 400, refusal(t, err), "%s: %v", tag, err)
			t.Logf("%s: %v", tag, err)
		}
	}
	require.Contains(t, found(t, d.as("ann"), "docs", "harbour"), "div")
	require.NoError(t, d.as("ann").Ready(t.Context()))
	d.stop()
}

// small mounts a file system of n bytes, where the test may.
func small(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("sluice-test", dir, "tmpfs", 0, fmt.Sprintf("size=%d", n)); err != nil {
		// The store's and the index's own tests inject full disks everywhere.
		t.Skipf("SKIPPED: a small file system cannot be mounted: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, 0)) })
	return dir
}

// A full disk loses nothing that was acknowledged: the daemon refuses, says
// why, and after room was made and it was restarted everything is there.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	h := newHome(t, onePerson, pretrained(t)) // of 384 dimensions
	disk := small(t, 160<<20)
	ballast := filepath.Join(disk, "ballast")
	require.NoError(t, os.WriteFile(ballast, make([]byte, 64<<20), 0o600))
	d := h.serve("--data", filepath.Join(disk, "data"))
	d.collection("ann", "docs")
	ann := d.as("ann")
	acknowledged := 0
	var err error
	for err == nil {
		// Many vectors for one embedding.
		text := fmt.Sprintf("# Log %d\n", acknowledged) + strings.Repeat("\n## Same\n\nharbour\n", 2000)
		_, err = ann.Write(t.Context(), "docs", client.Document{Key: fmt.Sprint("d", acknowledged), Format: "markdown", Text: text})
		if err == nil {
			acknowledged++
		}
	}
	t.Logf("%d documents, then %v", acknowledged, err)
	require.Contains(t, []int{507, 503}, refusal(t, err))
	require.Positive(t, acknowledged)
	require.Error(t, ann.Ready(t.Context()))
	_, err = ann.Write(t.Context(), "docs", note("more", "crane"))
	require.Contains(t, []int{507, 503}, refusal(t, err))
	require.NoError(t, ann.Health(t.Context()))
	d.signal(syscall.SIGTERM)
	t.Logf("exit status %d", d.wait())

	require.NoError(t, os.Remove(ballast))
	r := sluice(t, "check", filepath.Join(disk, "data"))
	require.Zero(t, r.code, "%s", r)
	d = h.serve("--data", filepath.Join(disk, "data"))
	listed := map[string]bool{}
	for info, err := range d.as("ann").Documents(t.Context(), "docs") {
		require.NoError(t, err)
		listed[info.Key] = true
	}
	for i := range acknowledged {
		require.True(t, listed[fmt.Sprint("d", i)], "%d of %d", i, acknowledged)
	}
	d.stop()
}
