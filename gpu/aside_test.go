package gpu

import (
	"testing"
	"testing/synctest"

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
		require.Empty(t, beside.seen())
		require.Equal(t, [][]int{{40}, {41}}, d.seen()[:2])
	})
}
