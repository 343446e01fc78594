package gpu

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// asideDevice runs batches of at most 64 tokens beside another device's.
type asideDevice struct{ *fakeDevice }

func (asideDevice) AsideTokens() int { return 64 }

// startAside serves the tiny model on a device and one aside of it.
func startAside(t *testing.T) (s *Scheduler, d, beside *fakeDevice) {
	t.Helper()
	v := tinyServed()
	d, beside = &fakeDevice{perToken: ms}, &fakeDevice{perToken: ms}
	v.Devices = []Device{d, asideDevice{beside}}
	s, err := NewScheduler(Options{}, v)
	require.NoError(t, err)
	return s, d, beside
}

// A short query does not wait for the bulk batch in progress, a longer one does.
func TestShortQueriesRunBesideBulk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, beside := startAside(t)
		defer func() { require.NoError(t, s.Close(t.Context())) }()
		bulk := embed(t.Context(), s, Request{Texts: repeat(text(64), 4), Priority: Bulk})
		synctest.Wait()
		short := (<-embed(t.Context(), s, Request{Texts: []string{text(30), text(34)}})).embeddings
		require.Zero(t, short[0].Timing.Queue)
		long := (<-embed(t.Context(), s, Request{Texts: []string{text(30), text(35)}})).embeddings
		require.Equal(t, (4-1)*64*ms, long[0].Timing.Queue)
		require.NoError(t, (<-bulk).err)
		require.Equal(t, [][]int{{30, 34}}, beside.seen())
		require.Equal(t, [][]int{{64, 64, 64, 64}, {30, 35}}, d.seen())
	})
}

// How fast an aside is says nothing of the device, whose speed bounds bulk batches.
func TestAnAsideIsNotTheDevicesSpeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := tinyServed()
		v.Devices = []Device{&fakeDevice{perToken: ms}, asideDevice{&fakeDevice{perToken: 4 * ms}}}
		s, err := NewScheduler(Options{}, v)
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close(t.Context())) }()
		bulk := embed(t.Context(), s, Request{Texts: repeat(text(64), 4), Priority: Bulk})
		synctest.Wait()
		require.NoError(t, (<-embed(t.Context(), s, Request{Texts: []string{text(60)}})).err)
		require.NoError(t, (<-bulk).err)
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		require.Equal(t, 1000, s.lanes[0].speed.during(1000*ms))
	})
}

// What ran aside took no turn, so that bulk is owed none for it.
func TestWhatRunsAsideTakesNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, _ := startAside(t)
		defer func() { require.NoError(t, s.Close(t.Context())) }()
		bulk := embed(t.Context(), s, Request{Texts: repeat(text(64), 40), Priority: Bulk})
		synctest.Wait()
		for range 2 * bulkShare {
			_, err := s.Embed(t.Context(), Request{Texts: []string{text(4)}})
			require.NoError(t, err)
		}
		_, err := s.Embed(t.Context(), Request{Texts: []string{text(40), text(41)}})
		require.NoError(t, err)
		require.NoError(t, (<-bulk).err)
		require.Equal(t, []int{40, 41}, d.seen()[1])
	})
}

// A query that waits when bulk has its turn does not wait for that too.
func TestAnAsideDeviceRunsWhatWaitsWhenBulkBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, beside := startAside(t)
		defer func() { require.NoError(t, s.Close(t.Context())) }()
		began := time.Now()
		full := Request{Texts: repeat(text(64), 16)}
		embed(t.Context(), s, full)
		synctest.Wait()
		bulk := embed(t.Context(), s, Request{Texts: repeat(text(64), 16), Priority: Bulk})
		for range bulkShare {
			embed(t.Context(), s, full)
		}
		time.Sleep(bulkShare*1024*ms + ms)
		short := <-embed(t.Context(), s, Request{Texts: []string{text(4)}})
		require.NoError(t, short.err)
		require.Equal(t, (1+bulkShare)*1024*ms+4*ms, short.at.Sub(began))
		require.Equal(t, [][]int{{4}}, beside.seen())
		require.NoError(t, (<-bulk).err)
	})
}

// An aside device runs nothing else: no bulk, and no queries beside others.
func TestAnAsideDeviceOnlyRunsBesideBulk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, beside := startAside(t)
		defer func() { require.NoError(t, s.Close(t.Context())) }()
		first := embed(t.Context(), s, Request{Texts: []string{text(40)}})
		synctest.Wait()
		second := embed(t.Context(), s, Request{Texts: []string{text(41)}})
		bulk := embed(t.Context(), s, Request{Texts: repeat(text(42), 100), Priority: Bulk})
		for _, c := range []<-chan outcome{first, second, bulk} {
			require.NoError(t, (<-c).err)
		}
		first = embed(t.Context(), s, Request{Texts: []string{text(40)}, Priority: Bulk})
		synctest.Wait()
		second = embed(t.Context(), s, Request{Texts: []string{text(41)}, Priority: Bulk})
		require.NoError(t, (<-first).err)
		require.NoError(t, (<-second).err)
		require.Empty(t, beside.seen())
		require.Equal(t, [][]int{{40}, {41}}, d.seen()[:2])
	})
}

// An aside device stands in for nobody: where the other is sick, so is the model, and
// what waits for it is given up when the scheduler closes.
func TestAnAsideDeviceIsNoReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, _ := startAside(t)
		d.onRun = func(*Batch) error { time.Sleep(ms); return errors.New("gone") }
		full := Request{Texts: repeat(text(64), 16), Priority: Bulk}
		fails := embed(t.Context(), s, full)
		synctest.Wait()
		waits := embed(t.Context(), s, full)
		require.ErrorIs(t, (<-fails).err, ErrDevice)
		require.ErrorIs(t, s.Ready(), ErrDevice)
		require.NoError(t, s.Close(t.Context()))
		require.ErrorIs(t, (<-waits).err, ErrClosed)
	})
}
