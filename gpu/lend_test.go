package gpu

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"sluice/model/tokenizer"
)

// promptDevice lets its callers run their batches.
type promptDevice struct{ *fakeDevice }

func (promptDevice) Prompt() {}

// A caller is given its own model's batch, of its own priority, when that is
// next, and no other.
func TestACallerRunsWhatIsNextAndItsOwn(t *testing.T) {
	kept, prompt := tinyServed(), tinyServed()
	kept.Devices, prompt.Devices = []Device{&fakeDevice{}}, []Device{promptDevice{&fakeDevice{}}}
	enqueue := func(s *Scheduler, lane int, p Priority, last bool) *run {
		c := newCall(t.Context(), 1, dimensions, Request{Priority: p})
		own, err := s.enqueue(s.lanes[lane], c, []item{{call: c, ids: []int32{1}, types: []int32{0}}}, last)
		require.NoError(t, err)
		return own
	}
	idle := func() *Scheduler {
		s, err := newScheduler(Options{}, []Served{kept, prompt})
		require.NoError(t, err)
		return s
	}

	s := idle()
	require.NotNil(t, enqueue(s, 1, Bulk, true), "nothing else waits")
	require.Nil(t, enqueue(s, 1, Bulk, true), "the processor is taken")

	s = idle()
	require.Nil(t, enqueue(s, 1, Bulk, false), "more of the call comes")

	s = idle()
	require.Nil(t, enqueue(s, 0, Interactive, true), "its device keeps callers")
	require.Nil(t, enqueue(s, 1, Interactive, true), "the other model is next")

	s = idle()
	require.Nil(t, enqueue(s, 1, Interactive, false))
	require.Nil(t, enqueue(s, 1, Bulk, true), "the interactive text is next")
}

// What is to be found out about a batch that failed keeps no caller, and Close
// waits for it.
func TestACallerDoesNotDiagnose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probing, release := make(chan struct{}), make(chan struct{})
		d := &fakeDevice{onRun: func(b *Batch) error {
			if isProbe(b) {
				close(probing)
				<-release
				return nil
			}
			return errors.New("cannot")
		}}
		v := tinyServed()
		v.Devices = []Device{promptDevice{d}}
		s, err := NewScheduler(Options{}, v)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		call := embed(ctx, s, Request{Texts: []string{text(3)}})
		<-probing
		cancel()
		require.ErrorIs(t, (<-call).err, context.Canceled)
		closed := make(chan error)
		go func() { closed <- s.Close(context.Background()) }()
		synctest.Wait()
		require.Zero(t, d.closed)
		close(release)
		require.NoError(t, <-closed)
		require.Equal(t, 1, d.closed)
	})
}

// A call that panics is over for the scheduler too.
func TestAPanicLeavesNothingSubmitting(t *testing.T) {
	s, stop := start(t, Options{}, &fakeDevice{})
	require.Panics(t, func() {
		_, _ = s.lanes[0].run(t.Context(), 1, Request{}, func(*tokenizer.Encoding, int) error { panic("boom") })
	})
	require.Zero(t, s.submitting)
	stop()
}
