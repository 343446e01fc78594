package gpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var errPoison = errors.New("poison")

// refuse fails batches with the id.
func refuse(id int32) func(*Batch) error {
	return func(b *Batch) error {
		if slices.Contains(b.IDs, id) {
			return errPoison
		}
		return nil
	}
}

func explode(id int32) func(*Batch) error {
	return func(b *Batch) error {
		if slices.Contains(b.IDs, id) {
			panic("boom")
		}
		return nil
	}
}

func spoil(id int32, with float64) func([]int32, []float32) {
	return func(ids []int32, vector []float32) {
		if slices.Contains(ids, id) {
			vector[0] = float32(with)
		}
	}
}

// A text that a device cannot do fails its own call, clearly, and none of those
// that it was batched with; the device stays in use.
func TestABadTextHarmsNoOther(t *testing.T) {
	x := idOf(t, "x")
	for name, d := range map[string]*fakeDevice{
		"refused":  {onRun: refuse(x)},
		"panic":    {onRun: explode(x)},
		"NaN":      {onAnswer: spoil(x, math.NaN())},
		"infinite": {onAnswer: spoil(x, math.Inf(-1))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d.perToken = ms
				s, stop := start(t, Options{}, d)
				defer stop()
				first := embed(t.Context(), s, Request{Texts: []string{"a"}})
				synctest.Wait()
				var calls []<-chan outcome
				for i := range 20 {
					texts := []string{"a", "a a"}
					if i%7 == 0 {
						texts[1] = "x"
					}
					calls = append(calls, embed(t.Context(), s, Request{Texts: texts}))
				}
				require.NoError(t, (<-first).err)
				for i, c := range calls {
					o := <-c
					if i%7 == 0 {
						require.ErrorIs(t, o.err, ErrDevice)
						require.ErrorContains(t, o.err, "text 1")
						require.Nil(t, o.embeddings)
						continue
					}
					require.NoError(t, o.err, "call %d", i)
					require.Equal(t, float32(4), o.embeddings[1].Vector[0])
				}
				require.Equal(t, 40, len(d.seen()[1]), "they did run together")
				require.NoError(t, s.Health())
			})
		})
	}
}

// Alone, too, a bad text does not make its device look broken.
func TestABadTextAloneIsNoBrokenDevice(t *testing.T) {
	s, stop := start(t, Options{}, &fakeDevice{onRun: refuse(idOf(t, "x"))})
	defer stop()
	_, err := s.Embed(t.Context(), Request{Texts: []string{"x"}})
	require.ErrorIs(t, err, errPoison)
	require.NoError(t, s.Health())
}

// Token vectors are looked at where they are returned.
func TestABadTokenVector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := idOf(t, "x")
		d := &fakeDevice{perToken: ms, onToken: func(id int32, v []float32) {
			if id == x {
				v[1] = float32(math.Inf(1))
			}
		}}
		s, stop := start(t, Options{}, d)
		defer stop()
		first := embed(t.Context(), s, Request{Texts: []string{"a"}})
		synctest.Wait()
		asked := embed(t.Context(), s, Request{Texts: []string{"a", "x"}, TokenVectors: true})
		plain := embed(t.Context(), s, Request{Texts: []string{"x"}})
		require.NoError(t, (<-first).err)
		require.ErrorIs(t, (<-asked).err, ErrDevice)
		require.NoError(t, (<-plain).err)
		require.Len(t, d.seen(), 2)
	})
}

// Isolating a bad text among n takes 2 log2(n) runs, not n.
func TestIsolationIsCheap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDevice{onRun: refuse(idOf(t, "x")), perToken: ms}
		s, stop := start(t, Options{}, d)
		defer stop()
		texts := repeat("a", 63)
		good := embed(t.Context(), s, Request{Texts: repeat("a", 1)})
		synctest.Wait()
		many := embed(t.Context(), s, Request{Texts: texts})
		bad := embed(t.Context(), s, Request{Texts: []string{"x"}})
		require.NoError(t, errors.Join((<-good).err, (<-many).err))
		require.ErrorIs(t, (<-bad).err, errPoison)
		require.Len(t, d.seen(), 2+2*6)
	})
}

// breakable is a device that fails all it is given while it is broken.
type breakable struct {
	mu     sync.Mutex
	broken func() error
}

func (b *breakable) set(f func() error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken = f
}

func (b *breakable) run(*Batch) error {
	b.mu.Lock()
	f := b.broken
	b.mu.Unlock()
	if f != nil {
		return f()
	}
	return nil
}

// A device that dies fails the batch it has and no other: what waits is served
// when it works again, newcomers are told at once, and health is red meanwhile.
func TestADeadDevice(t *testing.T) {
	for name, death := range map[string]func() error{
		"error": func() error { return errPoison },
		"panic": func() error { panic("boom") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var health []string
				hooks := Hooks{Health: func(m string, i int, why error) { health = append(health, fmt.Sprint(i, " ", why == nil)) }}
				b := &breakable{}
				d := &fakeDevice{perToken: ms, onRun: b.run}
				s, stop := start(t, Options{BatchTokens: 10, Hooks: hooks}, d)
				defer stop()
				b.set(death)
				running := embed(t.Context(), s, Request{Texts: repeat(text(5), 2)})
				require.ErrorIs(t, (<-running).err, ErrDevice)
				synctest.Wait()
				require.ErrorIs(t, s.Health(), ErrDevice)
				require.ErrorIs(t, s.Ready(), ErrDevice)
				_, err := s.Embed(t.Context(), Request{Texts: []string{"a"}})
				require.ErrorIs(t, err, ErrDevice)
				require.Len(t, d.seen(), 1, "one try, one probe")

				b.set(nil)
				time.Sleep(firstProbe + lastProbe)
				require.NoError(t, s.Health())
				require.NoError(t, s.Ready())
				_, err = s.Embed(t.Context(), Request{Texts: []string{"a"}})
				require.NoError(t, err)
				require.Equal(t, []string{"0 true", "0 false", "0 true"}, health)
			})
		})
	}
}

func TestWhatWaitsOutlivesADeadDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &breakable{}
		d := &fakeDevice{onRun: func(batch *Batch) error { time.Sleep(ms); return b.run(batch) }}
		s, stop := start(t, Options{BatchTokens: 5}, d)
		defer stop()
		running := embed(t.Context(), s, Request{Texts: []string{text(5)}})
		synctest.Wait()
		waiting := embed(t.Context(), s, Request{Texts: []string{text(4), text(4)}})
		b.set(func() error { return errPoison })
		require.ErrorIs(t, (<-running).err, errPoison)
		time.Sleep(time.Second)
		b.set(nil)
		require.NoError(t, (<-waiting).err)
	})
}

// All vectors NaN is a device that broke, and nothing of it is returned.
func TestADeviceThatYieldsNaN(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var nan atomic.Bool
		nan.Store(true)
		d := &fakeDevice{onAnswer: func(_ []int32, v []float32) {
			if nan.Load() {
				v[1] = float32(math.NaN())
			}
		}}
		s, stop := start(t, Options{}, d)
		defer stop()
		_, err := s.Embed(t.Context(), Request{Texts: []string{"a", "b"}})
		require.ErrorIs(t, err, ErrDevice)
		synctest.Wait()
		require.Error(t, s.Health())
		nan.Store(false)
		time.Sleep(time.Second)
		require.NoError(t, s.Health())
	})
}

// With a replica that works the calls go on, and the scheduler is ready; its
// health says what is wrong.
func TestAReplicaTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &breakable{}
		b.set(func() error { return errPoison })
		dead, alive := &fakeDevice{onRun: b.run}, &fakeDevice{perToken: ms}
		s, stop := start(t, Options{BatchTokens: 3}, dead, alive)
		defer stop()
		failed := 0
		for range 20 {
			if _, err := s.Embed(t.Context(), Request{Texts: []string{"a"}}); err != nil {
				require.ErrorIs(t, err, ErrDevice)
				failed++
			}
		}
		require.LessOrEqual(t, failed, 2)
		time.Sleep(10 * ms)
		if failed > 0 {
			require.ErrorContains(t, s.Health(), "device 0")
		}
		require.NoError(t, s.Ready())
	})
}

// probeTime is what a probe takes at a second a token.
var probeTime = time.Duration(len(probeIDs)) * time.Second

// A device that stalls gets its context ended; the batch fails, and the device
// is tried again.
func TestAStalledBatchIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDevice{perToken: time.Second}
		s, stop := start(t, Options{BatchTime: 10 * time.Second}, d)
		defer stop()
		began := time.Now()
		got := <-embed(t.Context(), s, Request{Texts: repeat(text(6), 5)})
		require.ErrorIs(t, got.err, ErrDevice)
		require.Equal(t, 10*time.Second+probeTime, got.at.Sub(began), "its parts are not tried")
		require.NoError(t, s.Health())
		_, err := s.Embed(t.Context(), Request{Texts: []string{text(5)}})
		require.NoError(t, err)
	})
}

// A device that ignores that makes health red until it returns; calls honour
// their own deadlines, newcomers are told at once.
func TestAHangingDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDevice{perToken: time.Second, deaf: true}
		s, stop := start(t, Options{BatchTime: 10 * time.Second}, d)
		defer stop()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := s.Embed(ctx, Request{Texts: []string{text(60)}})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, s.Health())
		time.Sleep(6 * time.Second)
		require.ErrorContains(t, s.Health(), "has not returned")
		_, err = s.Embed(t.Context(), Request{Texts: []string{"a"}})
		require.ErrorIs(t, err, ErrDevice)
		time.Sleep(60 * time.Second)
		require.NoError(t, s.Ready())
		_, err = s.Embed(t.Context(), Request{Texts: []string{"a"}})
		require.NoError(t, err)
	})
}

// Nor does one whose device dies while it drains.
func TestADeviceDiesWhileItDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &breakable{}
		d := &fakeDevice{onRun: func(batch *Batch) error { time.Sleep(ms); return b.run(batch) }}
		s, stop := start(t, Options{BatchTokens: 5, QueueTokens: 5}, d)
		running := embed(t.Context(), s, Request{Texts: []string{text(5)}})
		synctest.Wait()
		long := embed(t.Context(), s, Request{Texts: repeat(text(5), 10)})
		other := embed(t.Context(), s, Request{Texts: []string{text(5)}, Priority: Bulk})
		synctest.Wait()
		b.set(func() error { return errPoison })
		stop()
		require.ErrorIs(t, (<-running).err, errPoison)
		require.ErrorIs(t, (<-long).err, ErrClosed)
		require.ErrorIs(t, (<-other).err, ErrClosed)
	})
}

// A scheduler that closes does not wait for a dead device.
func TestCloseGivesUpOnADeadDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &breakable{}
		b.set(func() error { return errPoison })
		d := &fakeDevice{onRun: func(batch *Batch) error { time.Sleep(ms); return b.run(batch) }}
		s, stop := start(t, Options{BatchTokens: 5}, d)
		running := embed(t.Context(), s, Request{Texts: []string{text(5)}})
		synctest.Wait()
		waiting := embed(t.Context(), s, Request{Texts: []string{text(5)}})
		require.ErrorIs(t, (<-running).err, errPoison)
		stop()
		require.ErrorIs(t, (<-waiting).err, ErrClosed)
	})
}
