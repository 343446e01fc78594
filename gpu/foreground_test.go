package gpu

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// layered is a device whose batches take so long a layer, on several goroutines, and
// give way before each.
func layered(goroutines, layers int, each time.Duration) *fakeDevice {
	return &fakeDevice{onRun: func(b *Batch) error {
		var running sync.WaitGroup
		for range goroutines {
			running.Go(func() {
				for range layers {
					if b.GiveWay != nil {
						b.GiveWay()
					}
					time.Sleep(each)
				}
			})
		}
		running.Wait()
		return nil
	}}
}

// A bulk batch stands still while a search is under way, and goes on when that is over.
func TestBulkStandsStillForSearches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, stop := start(t, Options{}, layered(2, 6, ms))
		defer stop()
		began := time.Now()
		bulk := embed(t.Context(), s, Request{Texts: []string{text(64)}, Priority: Bulk})
		time.Sleep(2*ms + ms/2)
		s.EnterForeground()
		time.Sleep(10*ms + ms/2)
		s.LeaveForeground()
		require.InDelta(t, 16*ms, (<-bulk).at.Sub(began), float64(stillStep), "ten of them still")
	})
}

// Searches that never end leave bulk its share: a batch stands still for stillMost at
// most. What it took says nothing of the device's speed.
func TestBulkStandsStillForAWhileOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, stop := start(t, Options{}, layered(2, 6, ms))
		defer stop()
		s.EnterForeground()
		defer s.LeaveForeground()
		for range 10 {
			got, err := s.Embed(t.Context(), Request{Texts: []string{text(64)}, Priority: Bulk})
			require.NoError(t, err)
			require.Equal(t, stillMost+6*ms, got[0].Timing.Run)
		}
		require.Zero(t, s.lanes[0].speed)
		_, err := s.Embed(t.Context(), Request{Texts: []string{text(64)}})
		require.NoError(t, err)
		require.InDelta(t, 64*6, s.lanes[0].speed.during(36*ms), 1)
	})
}

// Queries that wait for a bulk batch have it go on, whoever searches.
func TestBulkDoesNotStandInTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, stop := start(t, Options{}, layered(2, 6, ms))
		defer stop()
		s.EnterForeground()
		defer s.LeaveForeground()
		bulk := embed(t.Context(), s, Request{Texts: []string{text(64)}, Priority: Bulk})
		time.Sleep(ms)
		got, err := s.Embed(t.Context(), Request{Texts: []string{text(4)}})
		require.NoError(t, err)
		require.LessOrEqual(t, got[0].Timing.Queue, 6*ms+stillStep)
		require.NoError(t, (<-bulk).err)
	})
}

// A search needs two cores: where there are more, bulk goes on on those.
func TestBulkStandsStillOnTwoCoresOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var going time.Duration // of the first goroutine to end
		var once sync.Once
		s, stop := start(t, Options{}, &fakeDevice{onRun: func(b *Batch) error {
			began := time.Now()
			var running sync.WaitGroup
			for range stillEach + 1 {
				running.Go(func() {
					b.GiveWay()
					once.Do(func() { going = time.Since(began) })
				})
			}
			running.Wait()
			require.Equal(t, stillMost, time.Since(began))
			return nil
		}})
		defer stop()
		s.EnterForeground()
		defer s.LeaveForeground()
		_, err := s.Embed(t.Context(), Request{Texts: []string{text(64)}, Priority: Bulk})
		require.NoError(t, err)
		require.Zero(t, going)
	})
}
