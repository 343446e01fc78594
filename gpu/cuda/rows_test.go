package cuda

import (
	"context"
	"math"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/gpu/cuda/wire"
)

// bits is a Mask.
type bits struct{ words *[]uint64 }

func (b bits) Words() []uint64 { return *b.words }

// allRows is a mask of so many.
func allRows(rows int) bits {
	words := make([]uint64, (rows+63)/64)
	return bits{&words}
}

// held waits until rows are on their device.
func held(t *testing.T, r *Rows) {
	t.Helper()
	require.Eventually(t, func() bool { return r.batcher.Load() != nil }, time.Minute, time.Millisecond)
}

// holdFake has a fake worker that behaves hold rows.
func holdFake(t *testing.T, told string, vectors []float32, dims int) *Rows {
	t.Helper()
	t.Setenv(behaviour, told)
	w, err := startWorker(t.Context(), os.Args[0], 0, quiet)
	require.NoError(t, err)
	rows := (&Searcher{workers: []*worker{w}}).Hold(vectors, dims)
	t.Cleanup(func() {
		rows.Close()
		rows.Close()
		w.end()
	})
	return rows
}

// Questions of many callers are put together, and each gets its own answer.
func TestQuestions(t *testing.T) {
	rows := holdFake(t, "", make([]float32, 70*5), 5)
	held(t, rows)
	masks := []bits{allRows(70), allRows(70)}
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			k := 1 + i*4
			query := []float32{float32(math.Exp2(float64(i - 14))), 0, 0, 0, 0} // its first half's high byte differs
			near, err := rows.Search(t.Context(), query, masks[i%2], k)
			if err != nil || len(near.Rows) != min(k, 100) || near.Rows[0]%1000 != 0 || int(near.Rows[0]/1000) != 4*(i+1) {
				t.Errorf("%d: %v %v", i, near.Rows, err)
			}
		})
	}
	all.Wait()
}

// As many as wait are asked at once, up to what one block of the kernel takes.
func TestQuestionsAreGathered(t *testing.T) {
	at := &batcher{asked: make(chan *question, 70)}
	require.Len(t, at.gather(&question{}), 1)
	for range 70 {
		at.asked <- &question{}
	}
	require.Len(t, at.gather(&question{}), mostQuestions)
	require.Len(t, at.gather(&question{}), 70-(mostQuestions-1)+1)
}

func TestSearchesThatAreNone(t *testing.T) {
	rows := holdFake(t, "", make([]float32, 70*5), 5)
	held(t, rows)
	infinite := float32(math.Inf(1))
	for what, query := range map[string][]float32{"short": make([]float32, 4), "infinite": {infinite, 0, 0, 0, 0}, "large": {65505, 0, 0, 0, 0}} {
		_, err := rows.Search(t.Context(), query, allRows(70), 1)
		require.ErrorContains(t, err, "is not for a GPU", what)
	}
	for _, k := range []int{0, mostRows + 1} {
		_, err := rows.Search(t.Context(), make([]float32, 5), allRows(70), k)
		require.ErrorContains(t, err, "is not for a GPU")
	}
	_, err := rows.Search(t.Context(), make([]float32, 5), allRows(700), 1)
	require.ErrorContains(t, err, "a bitmap of 11 words")
	over, end := context.WithCancel(t.Context())
	end()
	_, err = rows.Search(over, make([]float32, 5), allRows(70), 1)
	require.True(t, err == nil || over.Err() != nil)
}

// What goes wrong is an error of the search, and the rows are there again with
// the next worker.
func TestSearchesThatFail(t *testing.T) {
	for _, told := range []string{"dies", "finds too little", "has no memory"} {
		t.Run(told, func(t *testing.T) {
			rows := holdFake(t, told, make([]float32, 70*5), 5)
			held(t, rows)
			t.Setenv(behaviour, "")
			_, err := rows.Search(t.Context(), make([]float32, 5), allRows(70), 1)
			require.Error(t, err)
			if told == "has no memory" {
				require.NoError(t, rows.worker.life.reason())
				return
			}
			require.Eventually(t, func() bool {
				_, err := rows.Search(t.Context(), make([]float32, 5), allRows(70), 1)
				return err == nil
			}, time.Minute, time.Millisecond)
		})
	}
}

// Rows that find no room, or have numbers that are no halves, are given up.
func TestRowsThatAreNotHeld(t *testing.T) {
	large := make([]float32, 70*5)
	large[33] = 1e5
	for told, vectors := range map[string][]float32{"has no room": make([]float32, 70*5), "": large} {
		rows := holdFake(t, told, vectors, 5)
		<-rows.closing.Done()
		_, err := rows.Search(t.Context(), make([]float32, 5), allRows(70), 1)
		require.ErrorIs(t, err, ErrNotHeld)
	}
}

// A caller that leaves waits no longer, whatever the worker does.
func TestCallersThatLeave(t *testing.T) {
	rows := holdFake(t, "hangs", make([]float32, 70*5), 5)
	held(t, rows)
	for range 2 { // one that is asked, one that waits behind it
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, err := rows.Search(ctx, make([]float32, 5), allRows(70), 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		cancel()
	}
}

// What a device says of itself, and that it does not: a busy one is not killed.
func TestTelemetry(t *testing.T) {
	for _, told := range []string{"", "hangs"} {
		t.Setenv(behaviour, told)
		w, err := startWorker(t.Context(), os.Args[0], 0, quiet)
		require.NoError(t, err)
		patience := time.Minute
		if told == "hangs" {
			patience = time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		want := Telemetry{Device: wire.Device{Name: "fake", Free: 7}, Up: true, Starts: 1}
		if told == "hangs" {
			want.Device.Free, want.Up = 0, false
		}
		require.Equal(t, []Telemetry{want}, (&Searcher{workers: []*worker{w}}).Telemetry(ctx))
		require.NoError(t, w.life.reason())
		cancel()
		w.end()
	}
}

// A device that is silent hides no other: all are asked at once.
func TestTelemetryBesideASilentDevice(t *testing.T) {
	var workers []*worker
	for _, told := range []string{"hangs", ""} {
		t.Setenv(behaviour, told)
		w, err := startWorker(t.Context(), os.Args[0], 0, quiet)
		require.NoError(t, err)
		t.Cleanup(w.end)
		workers = append(workers, w)
	}
	silent, _ := workers[0].present()
	sound, _ := workers[1].present()
	all := make(chan []Telemetry)
	go func() { all <- (&Searcher{workers: workers}).Telemetry(t.Context()) }()
	require.Eventually(t, func() bool { return silent.waiting(1, 1) && sound.waiting(1, 0) }, time.Minute, time.Millisecond)
	silent.end(ErrWorker)
	got := <-all
	require.False(t, got[0].Up)
	require.True(t, got[1].Up)
}

// waiting reports that so many calls were made, of which so many have no answer yet.
func (l *life) waiting(made uint32, pending int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last == made && len(l.pending) == pending
}

// The bound on what products are off by is over that of rounding both vectors.
func TestSlack(t *testing.T) {
	r := &Rows{dims: 384, width: 384, longest: 1}
	require.Greater(t, r.slack(1), float32(0x1p-10))
	require.Less(t, r.slack(1), float32(0x1.4p-10))
	require.Greater(t, r.slack(1e-6), float32(0), "of subnormal halves too")
}
