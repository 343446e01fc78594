package cuda

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/gpu"
	"sluice/gpu/cuda/wire"
	"sluice/gpu/golden"
	"sluice/model"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func tinyModel(t *testing.T) *model.Model {
	t.Helper()
	m, err := model.Load(filepath.Join(golden.Dir, "bert"))
	require.NoError(t, err)
	return m
}

// startFake starts a fake worker that behaves, and a model on it.
func startFake(t *testing.T, told string) (*worker, *Device) {
	t.Helper()
	t.Setenv(behaviour, told)
	w, err := startWorker(t.Context(), os.Args[0], 0, quiet)
	require.NoError(t, err)
	m := tinyModel(t)
	number, err := w.load(t.Context(), "dir", "digest")
	require.NoError(t, err)
	d := newDevice(w, number, m)
	t.Cleanup(func() {
		require.NoError(t, d.Close())
		require.NoError(t, d.Close())
	})
	return w, d
}

// lengths is a batch of sequences of so many tokens.
func lengths(n ...int) *gpu.Batch {
	var cases []golden.Case
	for _, tokens := range n {
		cases = append(cases, golden.Case{IDs: make([]int32, tokens), Types: make([]int32, tokens)})
	}
	return golden.Batch(cases...)
}

// ask runs a batch and returns the numbers that fakes answer.
func ask(ctx context.Context, d *Device, b *gpu.Batch) ([]float32, error) {
	out := gpu.Output{Pooled: make([]float32, 32*b.Len()), Norms: make([]float32, b.Len())}
	err := d.Run(ctx, b, out)
	return out.Norms, err
}

// recovers waits until a worker answers again.
func recovers(t *testing.T, d *Device) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := ask(t.Context(), d, lengths(3))
		return err == nil
	}, time.Minute, 5*time.Millisecond)
}

func TestRun(t *testing.T) {
	_, d := startFake(t, "")
	got, err := ask(t.Context(), d, lengths(3, 1, 20))
	require.NoError(t, err)
	require.Equal(t, []float32{3, 1, 20}, got)
	_, err = ask(t.Context(), d, lengths(65))
	require.ErrorIs(t, err, gpu.ErrInput)
	_, err = ask(t.Context(), d, lengths())
	require.NoError(t, err)
}

// Many callers at once get their own answers.
func TestConcurrentRuns(t *testing.T) {
	_, d := startFake(t, "")
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for range 20 {
				if got, err := ask(t.Context(), d, lengths(n+1)); err != nil || got[0] != float32(n+1) {
					t.Errorf("%v, %v for %d", got, err, n+1)
				}
			}
		})
	}
	all.Wait()
}

func TestWorkersThatDoNotStart(t *testing.T) {
	for told, why := range map[string]string{
		"does not start": "it ended: exit status 1: fake worker: no CUDA device", "talks nonsense": "it begins with",
	} {
		t.Setenv(behaviour, told)
		_, err := startWorker(t.Context(), os.Args[0], 0, quiet)
		require.ErrorContains(t, err, why)
	}
	t.Setenv(behaviour, "says nothing")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := startWorker(ctx, os.Args[0], 0, quiet)
	require.ErrorIs(t, err, context.Canceled)
	_, err = startWorker(t.Context(), "/no/such/program", 0, quiet)
	require.ErrorContains(t, err, "starting the GPU worker")
	t.Setenv(behaviour, "loads no model")
	w, err := startWorker(t.Context(), os.Args[0], 0, quiet)
	require.NoError(t, err)
	_, err = w.load(t.Context(), "dir", "digest")
	require.ErrorContains(t, err, "too wide")
	w.end()
}

// A worker that misbehaves fails the batch with a reason, and the next one is
// there soon, with the model.
func TestWorkersAreStartedAgain(t *testing.T) {
	for told, why := range map[string]string{
		"dies": "fake worker: out of ideas", "answers too little": "invalid frame", "flips a bit": "CRC",
	} {
		t.Run(told, func(t *testing.T) {
			_, d := startFake(t, told)
			t.Setenv(behaviour, "has loads of text")
			_, err := ask(t.Context(), d, lengths(3))
			require.ErrorContains(t, err, why)
			recovers(t, d)
		})
	}
}

func TestHungWorkersAreKilled(t *testing.T) {
	w, d := startFake(t, "hangs")
	t.Setenv(behaviour, "")
	hung := w.life
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := ask(ctx, d, lengths(3))
	require.ErrorIs(t, err, ErrWorker)
	require.ErrorContains(t, err, "hangs")
	<-hung.ended
	require.NotNil(t, hung.process.ProcessState)
	recovers(t, d)
}

// A caller that goes away harms nobody, and gets no late answer.
func TestCancelledRuns(t *testing.T) {
	w, d := startFake(t, "hangs")
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	go func() {
		_, err := ask(ctx, d, lengths(3))
		result <- err
	}()
	require.Eventually(t, func() bool {
		w.life.mu.Lock()
		defer w.life.mu.Unlock()
		return len(w.life.pending) == 1
	}, time.Minute, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-result, context.Canceled)
	require.NoError(t, w.life.reason())
	require.Empty(t, w.life.pending)
	answer, err := wire.AppendAnswer(nil, w.life.last, wire.Answer{})
	require.NoError(t, err)
	require.NoError(t, w.life.answer(wire.Frame{Kind: wire.KindAnswer, ID: w.life.last, Payload: answer}), "late")
}

// What is not a number is an error; a worker that gives nothing else is killed.
func TestNaN(t *testing.T) {
	w, d := startFake(t, "gives NaN")
	t.Setenv(behaviour, "dislikes 13")
	sick := w.life
	_, err := ask(t.Context(), d, lengths(3))
	require.ErrorIs(t, err, errNaN)
	require.NoError(t, sick.reason(), "a text may be to blame")
	_, err = ask(t.Context(), d, lengths(3))
	require.ErrorIs(t, err, errNaN)
	<-sick.ended
	recovers(t, d)
	for range 3 { // one bad text among others is the scheduler's business
		_, err = ask(t.Context(), d, lengths(13))
		require.ErrorIs(t, err, errNaN)
		_, err = ask(t.Context(), d, lengths(3, 13))
		require.NoError(t, err)
	}
	require.NoError(t, w.life.reason())
}

func TestOutOfMemory(t *testing.T) {
	w, d := startFake(t, "has no memory")
	_, err := ask(t.Context(), d, lengths(3))
	require.ErrorContains(t, err, "memory does not suffice")
	require.NoError(t, w.life.reason())
}

func TestCloseFailsWhatRuns(t *testing.T) {
	w, d := startFake(t, "hangs")
	other := newDevice(w, 0, tinyModel(t))
	result := make(chan error)
	go func() {
		_, err := ask(context.Background(), d, lengths(3))
		result <- err
	}()
	require.Eventually(t, func() bool {
		w.life.mu.Lock()
		defer w.life.mu.Unlock()
		return len(w.life.pending) == 1
	}, time.Minute, time.Millisecond)
	require.NoError(t, other.Close())
	require.NoError(t, w.life.reason(), "another holds it")
	require.NoError(t, d.Close())
	require.ErrorIs(t, <-result, errClosed)
	_, err := ask(t.Context(), d, lengths(3))
	require.ErrorIs(t, err, errClosed)
}

func TestParseOrdinals(t *testing.T) {
	got, err := ParseOrdinals("0,3")
	require.NoError(t, err)
	require.Equal(t, []int{0, 3}, got)
	for _, bad := range []string{"", "x", "0,", "-1", "1,1", "999"} {
		_, err := ParseOrdinals(bad)
		require.Error(t, err, bad)
	}
}

// A steady exchange allocates a few small things a batch, whatever its size.
func TestRunsAllocateLittle(t *testing.T) {
	_, d := startFake(t, "")
	b := lengths(20, 30, 40)
	out := gpu.Output{Pooled: make([]float32, 32*3), Norms: make([]float32, 3)}
	require.Less(t, testing.AllocsPerRun(50, func() {
		if err := d.Run(context.Background(), b, out); err != nil {
			panic(err)
		}
	}), 8.0)
	require.False(t, errors.Is(d.worker.life.reason(), io.EOF))
}
