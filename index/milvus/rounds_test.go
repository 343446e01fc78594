package milvus

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// heldServer is a server whose calls wait until the test lets each go.
type heldServer struct {
	begun   chan int // queries of the call
	release chan error
	calls   atomic.Int32
}

func (h *heldServer) call(_ context.Context, vectors [][]float32) ([][]found, error) {
	h.calls.Add(1)
	h.begun <- len(vectors)
	err := <-h.release
	hits := make([][]found, len(vectors))
	for i, v := range vectors {
		hits[i] = []found{{row: uint32(v[0])}}
	}
	return hits, err
}

// gathered waits until so many wait for the next round of a question.
func (r *rounds) gathered(q question, n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next[q] != nil && len(r.next[q].vectors) == n
}

// Queries that come while a call is under way are asked in the next one, and each
// gets its own answer; those of another question do not wait for it. Who gives up
// waits no longer, and an error is everybody's of that round.
func TestRounds(t *testing.T) {
	const n = 5
	var r rounds
	server, q := &heldServer{begun: make(chan int), release: make(chan error)}, question{"class in [1]", 18}
	ask := func(ctx context.Context, q question, row int) ([]found, error) {
		return r.ask(ctx, q, []float32{float32(row)}, server.call)
	}
	var asking sync.WaitGroup
	expect := func(row int, failure error) {
		asking.Go(func() {
			hits, err := ask(t.Context(), q, row)
			if !errors.Is(err, failure) || err == nil && hits[0].row != uint32(row) {
				t.Errorf("query %d: %v %v", row, hits, err)
			}
		})
	}
	await := func(n int) {
		require.Eventually(t, func() bool { return r.gathered(q, n) }, time.Minute, time.Millisecond)
	}
	expect(100, nil)
	require.Equal(t, 1, <-server.begun, "one that comes alone is asked at once")
	for row := range n {
		expect(row, nil)
	}
	await(n)
	gone, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := ask(gone, q, 99)
		left <- err
	}()
	await(n + 1)
	leave()
	require.ErrorIs(t, <-left, context.Canceled)

	other := make(chan error)
	go func() {
		_, err := ask(t.Context(), question{"class in [2]", 18}, 7)
		other <- err
	}()
	require.Equal(t, 1, <-server.begun)
	server.release <- nil // one of the two calls under way
	server.release <- nil
	require.NoError(t, <-other)

	require.Equal(t, n+1, <-server.begun)
	failure := errors.New("down")
	expect(200, failure)
	expect(201, failure)
	await(2)
	server.release <- nil
	require.Equal(t, 2, <-server.begun)
	server.release <- failure
	asking.Wait()
	require.EqualValues(t, 4, server.calls.Load())
	require.Eventually(t, func() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.next) == 0 }, time.Minute, time.Millisecond)
}

// A panic while the queries of a round are asked is an error of theirs, and the
// next query is asked as ever.
func TestAPanicOfARoundIsAnError(t *testing.T) {
	var r rounds
	q := question{"class in [1]", 18}
	begun, release := make(chan int), make(chan bool)
	ask := func() ([]found, error) {
		return r.ask(t.Context(), q, nil, func(_ context.Context, vectors [][]float32) ([][]found, error) {
			begun <- len(vectors)
			if <-release {
				panic("an answer that the client cannot read")
			}
			return make([][]found, len(vectors)), nil
		})
	}
	var asking sync.WaitGroup
	asking.Go(func() { _, _ = ask() })
	<-begun
	for range 2 {
		asking.Go(func() {
			if _, err := ask(); err == nil || !strings.Contains(err.Error(), "cannot read") {
				t.Errorf("a query of the round: %v", err)
			}
		})
	}
	require.Eventually(t, func() bool { return r.gathered(q, 2) }, time.Minute, time.Millisecond)
	release <- false
	require.Equal(t, 2, <-begun)
	release <- true
	asking.Wait()
	require.Eventually(t, func() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.next) == 0 }, time.Minute, time.Millisecond)
	asking.Go(func() {
		if _, err := ask(); err != nil {
			t.Error(err)
		}
	})
	require.Equal(t, 1, <-begun)
	release <- false
	asking.Wait()
}

// A round that is full is not made longer.
func TestRoundsAreBounded(t *testing.T) {
	var r rounds
	q := question{"", 1}
	_, _, alone := r.join(q, nil)
	require.True(t, alone)
	for i := range mostQueries {
		joined, at, alone := r.join(q, nil)
		require.NotNil(t, joined)
		require.Equal(t, i, at)
		require.False(t, alone)
	}
	joined, _, alone := r.join(q, nil)
	require.Nil(t, joined)
	require.False(t, alone)
}
