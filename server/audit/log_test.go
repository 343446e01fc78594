package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

func options(t *testing.T) Options {
	t.Helper()
	return Options{
		Directory: filepath.Join(t.TempDir(), "audit"), FileBytes: 1 << 20, Sync: time.Hour,
		Administration: Refuse, Searches: Continue,
		Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(),
	}
}

func open(t *testing.T, o Options) *Log {
	t.Helper()
	o.Registry = prometheus.NewRegistry()
	l, err := Open(o)
	require.NoError(t, err)
	return l
}

func do(t *testing.T, l *Log, document string) {
	t.Helper()
	require.NoError(t, l.step(t.Context(), Record{Stage: Begin, Action: WriteDocument, Document: document}))
}

// records reads all files, oldest first, and the lines that are none.
func records(t *testing.T, dir string) (all []Record, broken []string) {
	t.Helper()
	names, err := (&files{options: Options{Directory: dir}}).rotated()
	require.NoError(t, err)
	for _, name := range append(names, present) {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		for line := range bytes.Lines(text) {
			var r Record
			if json.Unmarshal(line, &r) != nil {
				broken = append(broken, string(line))
				continue
			}
			all = append(all, r)
		}
	}
	return all, broken
}

func documents(all []Record) (names []string) {
	for _, r := range all {
		names = append(names, r.Document)
	}
	return names
}

func TestALogGoesOnWhereItEnded(t *testing.T) {
	o := options(t)
	l := open(t, o)
	do(t, l, "a")
	do(t, l, "b")
	l.Close()

	// A crash cut the last line short.
	f, err := os.OpenFile(filepath.Join(o.Directory, present), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"seq":3,"docu`)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	l = open(t, o)
	do(t, l, "c")
	require.NoError(t, l.Search(t.Context(), Record{Stage: End, Action: Search, Counts: &Counts{Visible: 2}}))
	l.Close()
	all, broken := records(t, o.Directory)
	require.Equal(t, []string{"a", "b", "c", ""}, documents(all))
	require.Equal(t, []string{"{\"seq\":3,\"docu\n"}, broken)
	for i, r := range all {
		require.EqualValues(t, i+1, r.Sequence)
		require.WithinDuration(t, time.Now(), r.Time, time.Hour)
		require.Equal(t, time.UTC, r.Time.Location())
	}
	info, err := os.Stat(filepath.Join(o.Directory, present))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	require.ErrorIs(t, l.step(t.Context(), Record{}), ErrUnwritten, "it is closed")
}

func TestRotation(t *testing.T) {
	for _, keep := range []int{0, 3} {
		o := options(t)
		o.FileBytes, o.Files = 1000, keep
		const n = 100
		for i := range n {
			l := open(t, o) // the size is known after a restart, too
			do(t, l, fmt.Sprint("document ", i))
			l.Close()
		}
		all, broken := records(t, o.Directory)
		require.Empty(t, broken)
		entries, err := os.ReadDir(o.Directory)
		require.NoError(t, err)
		if keep > 0 {
			require.Len(t, entries, keep+1)
			require.Less(t, len(all), n)
		} else {
			require.Len(t, all, n)
			require.Greater(t, len(entries), 10)
		}
		for i, r := range all {
			require.EqualValues(t, n-len(all)+i+1, r.Sequence)
		}
		for _, entry := range entries {
			info, err := entry.Info()
			require.NoError(t, err)
			require.LessOrEqual(t, info.Size(), o.FileBytes)
		}
	}
}

// faulty is a file that fails, or waits, as told, and keeps what is done to it.
type faulty struct {
	mu      sync.Mutex
	bytes   bytes.Buffer
	calls   []string
	err     error
	partial int           // bytes that a failing write takes
	gate    chan struct{} // nil: open
	entered chan struct{} // gets one when a write waits
}

func (f *faulty) Write(p []byte) (int, error) {
	f.mu.Lock()
	gate := f.gate
	f.mu.Unlock()
	if gate != nil {
		f.entered <- struct{}{}
		<-gate
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, "write")
	if f.err != nil {
		n := min(f.partial, len(p))
		f.bytes.Write(p[:n])
		return n, f.err
	}
	return f.bytes.Write(p)
}

func (f *faulty) Sync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, "sync")
	return nil
}

func (f *faulty) Close() error { return nil }

func (f *faulty) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *faulty) lines() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Split(strings.TrimSuffix(f.bytes.String(), "\n"), "\n")
}

func (o Options) on(f *faulty) Options {
	o.open = func(string) (file, error) { return f, nil }
	return o
}

// count is the value of a counter.
func count(t *testing.T, c prometheus.Counter) float64 {
	t.Helper()
	r := prometheus.NewRegistry()
	require.NoError(t, r.Register(c))
	families, err := r.Gather()
	require.NoError(t, err)
	return families[0].GetMetric()[0].GetCounter().GetValue()
}

var errFull = errors.New("the disk is full")

func TestWhatCannotBeWrittenIsRefusedOrCounted(t *testing.T) {
	for _, mode := range []string{Refuse, Continue} {
		f, o := &faulty{}, options(t)
		o.Administration, o.Searches = mode, mode
		l := open(t, o.on(f))
		do(t, l, "a")
		f.set(func() { f.err, f.partial = errFull, 10 })
		for _, record := range []func(context.Context, Record) error{l.step, l.Search} {
			err := record(t.Context(), Record{Document: "b"})
			if mode == Refuse {
				require.ErrorIs(t, err, ErrUnwritten)
				require.ErrorIs(t, err, errFull)
			} else {
				require.NoError(t, err)
			}
		}
		require.Eventually(t, func() bool { return count(t, l.unwritten) == 2 }, time.Minute, time.Millisecond)
		f.set(func() { f.err = nil })
		do(t, l, "c")
		do(t, l, "d")
		l.Close()
		lines := f.lines()
		var c, d Record
		require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-2]), &c))
		require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &d))
		require.Equal(t, []any{"c", uint64(2), "d", uint64(0)}, []any{c.Document, c.Lost, d.Document, d.Lost})
		require.Equal(t, []uint64{2, 3}, []uint64{c.Sequence, d.Sequence})
		require.Equal(t, 3.0, count(t, l.written))
	}
}

// A disk that hangs keeps nobody for ever.
func TestNobodyWaitsForEver(t *testing.T) {
	f, o := &faulty{gate: make(chan struct{}), entered: make(chan struct{}, 1)}, options(t)
	o.patience = time.Millisecond
	l := open(t, o.on(f))
	refused := make(chan error)
	go func() { refused <- l.step(t.Context(), Record{Document: "a"}) }()
	<-f.entered
	for range queued + 7 {
		require.NoError(t, l.Search(t.Context(), Record{Action: Search}))
	}
	require.Equal(t, 7.0, count(t, l.unwritten))
	require.ErrorIs(t, <-refused, ErrUnwritten)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	l.options.patience = time.Hour
	require.ErrorIs(t, l.step(gone, Record{Document: "b"}), context.Canceled)
	require.Equal(t, 7.0, count(t, l.unwritten), "a client that hangs up is no failure of the log")
	gate := f.gate
	f.set(func() { f.gate = nil })
	close(gate)
	do(t, l, "z")
	l.Close()
	require.Len(t, f.lines(), 1+queued+1)
	require.Contains(t, strings.Join(f.lines(), ""), `"lost":7`)
}

func TestSync(t *testing.T) {
	f, o := &faulty{}, options(t)
	o.Sync = 0
	l := open(t, o.on(f))
	do(t, l, "a")
	f.set(func() { require.Equal(t, []string{"write", "sync"}, f.calls) })
	l.Close()

	f, o.Sync = &faulty{}, time.Hour
	l = open(t, o.on(f))
	do(t, l, "a")
	f.set(func() { require.Equal(t, []string{"write"}, f.calls) })
	l.Close()
	require.Equal(t, []string{"write", "sync"}, f.calls)

	f, o.Sync = &faulty{}, time.Millisecond
	l = open(t, o.on(f))
	do(t, l, "a")
	require.Eventually(t, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return slices.Equal(f.calls, []string{"write", "sync"})
	}, time.Minute, time.Millisecond)
	l.Close()
}

func TestConcurrentRecords(t *testing.T) {
	o := options(t)
	o.FileBytes, o.Sync = 4096, 0
	l := open(t, o)
	var writing sync.WaitGroup
	for w := range 16 {
		writing.Go(func() {
			for i := range 25 {
				if err := l.step(t.Context(), Record{Stage: Begin, Document: fmt.Sprint(w, " ", i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	l.Close()
	all, broken := records(t, o.Directory)
	require.Empty(t, broken)
	next := map[string]int{}
	for i, r := range all {
		require.EqualValues(t, i+1, r.Sequence)
		var w string
		var n int
		_, err := fmt.Sscan(r.Document, &w, &n)
		require.NoError(t, err)
		require.Equal(t, next[w], n)
		next[w]++
	}
	require.Len(t, all, 16*25)
}

func TestNoLogKeepsNothing(t *testing.T) {
	var l *Log
	require.NoError(t, l.step(t.Context(), Record{}))
	require.NoError(t, l.Search(t.Context(), Record{}))
	l.Close()
	o := options(t)
	o.Searches = Off
	l = open(t, o)
	require.NoError(t, l.Search(t.Context(), Record{}))
	l.Close()
	all, _ := records(t, o.Directory)
	require.Empty(t, all)
}

// What is done stands between two records, whatever comes of it; what may not be
// recorded is not done.
func TestAdministrativeActions(t *testing.T) {
	o := options(t)
	l := open(t, o)
	failed, statusOf := errors.New("failed"), func(error) int { return 500 }
	require.Equal(t, failed, l.Administrative(t.Context(), Record{Action: LoadPolicies}, statusOf, func() (uint64, error) { return 0, failed }))
	require.NoError(t, l.Administrative(t.Context(), Record{Action: LoadPolicies}, statusOf, func() (uint64, error) { return 7, nil }))
	l.Close()
	var got []Record
	all, _ := records(t, o.Directory)
	for _, r := range all {
		got = append(got, Record{Stage: r.Stage, Action: r.Action, Epoch: r.Epoch, Status: r.Status})
	}
	require.Equal(t, []Record{
		{Stage: Begin, Action: LoadPolicies}, {Stage: End, Action: LoadPolicies, Status: 500},
		{Stage: Begin, Action: LoadPolicies}, {Stage: End, Action: LoadPolicies, Epoch: 7, Status: 200},
	}, got)
	err := l.Administrative(t.Context(), Record{}, statusOf, func() (uint64, error) { t.Error("it is done"); return 0, nil })
	require.ErrorIs(t, err, ErrUnwritten)
}
