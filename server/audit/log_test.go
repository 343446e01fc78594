package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
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

// faulty is a disk that fails, or waits, as told, and keeps what is done to files.
type faulty struct {
	system
	mu       sync.Mutex
	dir      string
	calls    []string
	err      error
	partial  int           // bytes that a failing write takes
	unsynced error         // of every sync
	gate     chan struct{} // nil: open
	entered  chan struct{} // gets one when a write waits
}

func (f *faulty) Append(path string) (file, error) {
	opened, err := f.system.Append(path)
	return &faultyFile{opened, f}, err
}

type faultyFile struct {
	file
	disk *faulty
}

func (f *faultyFile) Write(p []byte) (int, error) {
	f.disk.mu.Lock()
	gate := f.disk.gate
	f.disk.mu.Unlock()
	if gate != nil {
		f.disk.entered <- struct{}{}
		<-gate
	}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.disk.calls = append(f.disk.calls, "write")
	if f.disk.err != nil {
		n, err := f.file.Write(p[:min(f.disk.partial, len(p))])
		return n, errors.Join(f.disk.err, err)
	}
	return f.file.Write(p)
}

func (f *faultyFile) Sync() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.disk.calls = append(f.disk.calls, "sync")
	return f.disk.unsynced
}

func (f *faulty) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (o Options) on(f *faulty) Options {
	f.dir, o.disk = o.Directory, f
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
		all, _ := records(t, o.Directory)
		c, d := all[len(all)-2], all[len(all)-1]
		require.Equal(t, []any{"c", uint64(2), "d", uint64(0)}, []any{c.Document, c.Lost, d.Document, d.Lost})
		require.Equal(t, []uint64{2, 3}, []uint64{c.Sequence, d.Sequence})
		require.Equal(t, 3.0, count(t, l.written))
	}
}

// A disk that hangs keeps nobody for ever. What nobody waits for any longer is
// not written; what was being written then is followed by its refusal.
func TestNobodyWaitsForEver(t *testing.T) {
	f, o := &faulty{gate: make(chan struct{}), entered: make(chan struct{}, 1)}, options(t)
	o.patience = time.Millisecond
	l := open(t, o.on(f))
	refused := make(chan error)
	go func() { refused <- l.step(t.Context(), Record{Stage: Begin, Document: "a"}) }()
	<-f.entered
	require.ErrorIs(t, <-refused, ErrUnwritten)
	require.ErrorIs(t, l.step(t.Context(), Record{Stage: Begin, Document: "given up"}), ErrUnwritten)
	for range queued - 1 + 7 {
		require.NoError(t, l.Search(t.Context(), Record{Action: Search}))
	}
	require.Equal(t, 8.0, count(t, l.unwritten))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	l.options.patience = time.Hour
	require.ErrorIs(t, l.step(gone, Record{Document: "b"}), context.Canceled)
	require.Equal(t, 8.0, count(t, l.unwritten), "a client that hangs up is no failure of the log")
	gate := f.gate
	f.set(func() { f.gate = nil })
	close(gate)
	do(t, l, "z")
	l.Close()
	all, _ := records(t, o.Directory)
	require.Len(t, all, 1+1+queued-1+1)
	require.Equal(t, []any{"a", Begin, 0, "a", End, 503}, []any{all[0].Document, all[0].Stage, all[0].Status, all[1].Document, all[1].Stage, all[1].Status})
	require.NotContains(t, documents(all), "given up")
	require.EqualValues(t, 8, all[1].Lost+all[2].Lost)
}

// What is in the log and may not last is refused, and the log says so.
func TestARefusalIsInTheLog(t *testing.T) {
	f, o := &faulty{}, options(t)
	o.Sync = 0
	l := open(t, o.on(f))
	f.set(func() { f.unsynced = errFull })
	require.ErrorIs(t, l.step(t.Context(), Record{Stage: Begin, Action: WriteDocument, Document: "a"}), ErrUnwritten)
	require.ErrorIs(t, l.step(t.Context(), Record{Stage: End, Action: WriteDocument, Document: "done", Status: 200}), ErrUnwritten)
	f.set(func() { f.unsynced = nil })
	l.Close()
	all, _ := records(t, o.Directory)
	require.Len(t, all, 3)
	require.Equal(t, []any{"a", End, 503}, []any{all[1].Document, all[1].Stage, all[1].Status})
	require.Equal(t, []any{"done", 200}, []any{all[2].Document, all[2].Status}, "what is done is not refused")
}

// A sync that fails is tried again at its next time, and counted; the log tells
// of the first failure, and of the end of them.
func TestAFailedSyncIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, o, said := &faulty{}, options(t), &bytes.Buffer{}
		o.Sync, o.Log = time.Second, slog.New(slog.NewTextHandler(said, nil))
		l := open(t, o.on(f))
		f.set(func() { f.unsynced = errFull })
		do(t, l, "a")
		time.Sleep(3*o.Sync + o.Sync/2)
		f.set(func() { require.Equal(t, []string{"write", "sync", "sync", "sync"}, f.calls) })
		require.EqualValues(t, 3, count(t, l.unsynced))
		f.set(func() { f.unsynced = nil })
		time.Sleep(3 * o.Sync)
		f.set(func() { require.Len(t, f.calls, 5, "synced once it goes, and no more") })
		require.EqualValues(t, 3, count(t, l.unsynced))
		l.Close()
		require.Equal(t, 1, strings.Count(said.String(), "does not reach the disk"))
		require.Equal(t, 1, strings.Count(said.String(), "reaches the disk again"))
	})
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

// failing is a disk of which any operation may fail: before it is done, half
// done, or done.
type failing struct {
	system
	random *rand.Rand
	healed bool
}

func (f *failing) fails() bool { return !f.healed && f.random.IntN(6) == 0 }

func (f *failing) try(do func() error) error {
	if f.fails() {
		if f.random.IntN(2) == 0 {
			return errors.Join(errFull, do())
		}
		return errFull
	}
	return do()
}

func (f *failing) Append(path string) (opened file, err error) {
	if f.fails() {
		return nil, errFull
	}
	opened, err = f.system.Append(path)
	return &failingFile{opened, f}, err
}

func (f *failing) Rename(from, to string) error {
	return f.try(func() error { return f.system.Rename(from, to) })
}

func (f *failing) SyncDir(path string) error {
	return f.try(func() error { return f.system.SyncDir(path) })
}

type failingFile struct {
	file
	disk *failing
}

func (f *failingFile) Write(p []byte) (int, error) {
	if !f.disk.fails() {
		return f.file.Write(p)
	}
	n, err := f.file.Write(p[:f.disk.random.IntN(len(p)+1)])
	if f.disk.random.IntN(3) == 0 {
		n = 0 // it does not know better
	}
	return n, errors.Join(errFull, err)
}

func (f *failingFile) Sync() error  { return f.disk.try(f.file.Sync) }
func (f *failingFile) Close() error { return f.disk.try(f.file.Close) }

// Whatever fails, numbers follow each other, no file is overwritten, and what
// was acknowledged is there once.
func TestAFailingDisk(t *testing.T) {
	seed := rand.Uint64()
	for run := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, run))
		disk, o := &failing{random: random}, options(t)
		o.FileBytes, o.disk = int64(200+random.IntN(1000)), disk
		if random.IntN(2) == 0 {
			o.Sync = 0
		}
		acked := failingRun(t, disk, o)
		all, _ := records(t, o.Directory)
		times := map[string]int{}
		for i, r := range all {
			require.EqualValues(t, i+1, r.Sequence, "seed %d, run %d", seed, run)
			if r.Stage == Begin {
				times[r.Document]++
			}
		}
		for _, document := range acked {
			require.Equal(t, 1, times[document], "%s, seed %d, run %d", document, seed, run)
		}
	}
}

// failingRun writes, in batches, through restarts, and returns what was acknowledged.
func failingRun(t *testing.T, disk *failing, o Options) (acked []string) {
	t.Helper()
	for restart := range 4 {
		o.Registry = prometheus.NewRegistry()
		disk.healed = restart == 3
		l, err := Open(o)
		if err != nil {
			require.ErrorIs(t, err, errFull)
			continue
		}
		for batch := range 20 {
			acked = append(acked, together(t, l, fmt.Sprint(restart, ".", batch))...)
		}
		l.Close()
	}
	return acked
}

// together writes a few records at a time, and returns which were acknowledged.
func together(t *testing.T, l *Log, name string) (acked []string) {
	var mu sync.Mutex
	var writing sync.WaitGroup
	for i := range 4 {
		document := fmt.Sprint(name, ".", i)
		writing.Go(func() {
			err := l.step(t.Context(), Record{Stage: Begin, Action: WriteDocument, Document: document})
			if err != nil {
				if !errors.Is(err, errFull) {
					t.Errorf("%s: %v", document, err)
				}
				return
			}
			mu.Lock()
			defer mu.Unlock()
			acked = append(acked, document)
		})
	}
	writing.Wait()
	return acked
}
