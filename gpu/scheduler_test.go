package gpu

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/model"
	"sluice/model/tokenizer"
	"sluice/trace"
)

func TestEmbedAnswersInOrder(t *testing.T) {
	d := &fakeDevice{}
	s, stop := start(t, Options{BatchTokens: 10}, d)
	defer stop()
	texts := []string{"", "a", "a a a a a a a a a a a a", "the end", "a [SEP] b", strings.Repeat("a ", 500)}
	got, err := s.Embed(t.Context(), Request{Texts: texts})
	require.NoError(t, err)
	for i, text := range texts {
		var e tokenizer.Encoding
		require.NoError(t, tinyServed().Tokenizer.Encode(&e, text, tokenizer.Options{MaxLength: 64}))
		var sum float32
		for _, id := range e.IDs {
			sum += float32(id)
		}
		got[i].Timing = Timing{}
		require.Equal(t, Embedding{Vector: []float32{float32(e.Len()), sum}, Norm: float32(e.Len()), Tokens: e.Len(), Truncated: i == 5}, got[i], "text %d", i)
	}
	require.Equal(t, 64, got[5].Tokens)
	for _, lengths := range d.seen() {
		require.True(t, sum(lengths) <= 10 || len(lengths) == 1, "batch of %v", lengths)
	}
}

func sum(lengths []int) (total int) {
	for _, n := range lengths {
		total += n
	}
	return total
}

// A call records where its time went.
func TestStages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, stop := start(t, Options{}, &fakeDevice{perToken: time.Millisecond})
		defer stop()
		var r trace.Recorder
		_, err := s.Embed(trace.With(t.Context(), &r), Request{Texts: []string{"a", "a b x"}})
		require.NoError(t, err)
		took := map[string]time.Duration{}
		for _, span := range r.Spans() {
			took[span.Name] = span.Took()
		}
		require.Equal(t, map[string]time.Duration{"tokenize": 0, "queue": 0, "infer": 8 * time.Millisecond}, took)
	})
}

// Token vectors come with the pooled ones, to those who asked, in one batch
// with those who did not.
func TestTokenVectors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDevice{perToken: time.Millisecond}
		s, stop := start(t, Options{}, d)
		defer stop()
		first := embed(t.Context(), s, Request{Texts: []string{"a"}})
		synctest.Wait()
		plain := embed(t.Context(), s, Request{Texts: []string{"a b"}})
		synctest.Wait()
		asked := embed(t.Context(), s, Request{Texts: []string{"x", "b a"}, TokenVectors: true})
		require.Nil(t, (<-first).embeddings[0].TokenVectors)
		unasked := (<-plain).embeddings[0]
		require.Nil(t, unasked.TokenVectors)
		require.Nil(t, unasked.Special)
		got := (<-asked).embeddings
		require.Equal(t, []float32{float32(idOf(t, "x")), 1, 0}, got[0].TokenVectors[tokenDimensions:2*tokenDimensions])
		require.Len(t, got[1].TokenVectors, got[1].Tokens*tokenDimensions)
		require.Equal(t, []bool{true, false, false, true}, got[1].Special)
		require.Equal(t, float32(idOf(t, "a")), got[1].TokenVectors[2*tokenDimensions])
		require.Equal(t, [][]int{{3}, {4, 3, 4}}, d.seen())
	})
}

// Reserve is told of each text before it is queued, and can end the call.
func TestReserve(t *testing.T) {
	d := &fakeDevice{}
	s, stop := start(t, Options{}, d)
	defer stop()
	var told []int
	full := errors.New("full")
	reserve := func(tokens int) error {
		if told = append(told, tokens); len(told) == 5 {
			return full
		}
		return nil
	}
	_, err := s.Embed(t.Context(), Request{Texts: []string{"a", "a b"}, Reserve: reserve})
	require.NoError(t, err)
	_, err = s.Embed(t.Context(), Request{IDs: [][]int32{{}, {}, {}, {}}, Reserve: reserve})
	require.ErrorIs(t, err, full)
	require.Equal(t, []int{3, 4, 2, 2, 2}, told)
	require.Equal(t, [][]int{{3, 4}}, d.seen())
}

// A prompt goes before each text, and its tokens are not the text's own.
func TestPrompt(t *testing.T) {
	s, stop := start(t, Options{}, &fakeDevice{})
	defer stop()
	whole, err := s.Embed(t.Context(), Request{Texts: []string{"a b x", "a b"}, TokenVectors: true})
	require.NoError(t, err)
	got, err := s.Embed(t.Context(), Request{Texts: []string{"x", ""}, Prompt: "a b ", TokenVectors: true})
	require.NoError(t, err)
	for i := range got {
		require.Equal(t, whole[i].TokenVectors, got[i].TokenVectors)
		require.Equal(t, whole[i].Vector, got[i].Vector)
	}
	require.Equal(t, []bool{true, true, true, false, true}, got[0].Special)
	require.Equal(t, []bool{true, true, true, true}, got[1].Special)
}

func TestNoTexts(t *testing.T) {
	s, stop := start(t, Options{}, &fakeDevice{})
	defer stop()
	got, err := s.Embed(t.Context(), Request{})
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestInfo(t *testing.T) {
	s, stop := start(t, Options{}, &fakeDevice{})
	defer stop()
	info := s.Info()
	require.Len(t, info.Digest, 64)
	info.Digest = ""
	require.Equal(t, Info{Model: "bert_e2e_wordpiece_cased", Dimensions: 2, TokenDimensions: 3, MaxTokens: 64, Precision: "fake", BatchTokens: 1024, Pooling: model.MeanPooling}, info)
}

// A device that is idle starts at once; what comes meanwhile runs together.
func TestIdleDevicesDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDevice{perToken: time.Millisecond}
		s, stop := start(t, Options{BatchTokens: 12}, d)
		defer stop()
		began := time.Now()
		first := embed(t.Context(), s, Request{Texts: []string{text(5)}})
		synctest.Wait()
		var others []<-chan outcome
		for range 5 {
			others = append(others, embed(t.Context(), s, Request{Texts: []string{text(4)}}))
		}
		require.Equal(t, 5*time.Millisecond, (<-first).at.Sub(began))
		for _, c := range others {
			require.NoError(t, (<-c).err)
		}
		require.Equal(t, [][]int{{5}, {4, 4, 4}, {4, 4}}, d.seen())
		require.Equal(t, 25*time.Millisecond, time.Since(began))
	})
}

// Texts that nobody waits for any more are not run, wherever they wait; their
// neighbours are, and the batch is filled up.
func TestCancelledAndExpiredTextsCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDevice{perToken: time.Millisecond}
		s, stop := start(t, Options{BatchTokens: 9}, d)
		defer stop()
		running := embed(t.Context(), s, Request{Texts: []string{text(9)}})
		synctest.Wait()
		cancelled, cancel := context.WithCancel(t.Context())
		expiring, free := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer free()
		doomed := embed(cancelled, s, Request{Texts: repeat(text(3), 100)})
		late := embed(expiring, s, Request{Texts: repeat(text(3), 100)})
		synctest.Wait()
		others := embed(t.Context(), s, Request{Texts: []string{text(4), text(5)}})
		synctest.Wait()
		cancel()
		require.ErrorIs(t, (<-doomed).err, context.Canceled)
		require.ErrorIs(t, (<-late).err, context.DeadlineExceeded)
		require.NoError(t, (<-running).err)
		require.NoError(t, (<-others).err)
		require.Equal(t, [][]int{{9}, {4, 5}}, d.seen())
		require.Zero(t, s.lanes[0].classes[Interactive].tokens)
		require.Zero(t, s.lanes[0].classes[Interactive].texts)
	})
}

func TestCancelledBeforeItStarts(t *testing.T) {
	d := &fakeDevice{}
	s, stop := start(t, Options{}, d)
	defer stop()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Embed(ctx, Request{Texts: []string{"a"}})
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, d.seen())
}

// A full queue refuses newcomers of its priority, and says when it will be
// empty at the speed measured; the other priority has room of its own.
func TestAFullQueueRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDevice{perToken: time.Millisecond}
		s, stop := start(t, Options{BatchTokens: 10, QueueTokens: 30}, d)
		defer stop()
		var accepted []<-chan outcome
		for range 4 { // one runs, three wait
			accepted = append(accepted, embed(t.Context(), s, Request{Texts: []string{text(10)}, Priority: Bulk}))
			synctest.Wait()
		}
		_, err := s.Embed(t.Context(), Request{Texts: []string{"a"}, Priority: Bulk})
		require.ErrorIs(t, err, ErrOverloaded)
		require.Equal(t, time.Second, drainOf(t, err), "nothing is known yet")
		require.NoError(t, (<-accepted[0]).err)
		synctest.Wait()
		accepted = append(accepted, embed(t.Context(), s, Request{Texts: []string{text(10)}, Priority: Bulk}))
		synctest.Wait()
		_, err = s.Embed(t.Context(), Request{Texts: []string{"a"}, Priority: Bulk})
		require.ErrorIs(t, err, ErrOverloaded)
		require.Equal(t, 30*time.Millisecond, drainOf(t, err))
		_, err = s.Embed(t.Context(), Request{Texts: []string{"a"}})
		require.NoError(t, err)
		for _, c := range accepted[1:] {
			require.NoError(t, (<-c).err)
		}
	})
}

func drainOf(t *testing.T, err error) time.Duration {
	t.Helper()
	var overloaded *OverloadedError
	require.ErrorAs(t, err, &overloaded)
	return overloaded.Drain
}

// A call larger than the queue is served, and never holds more than the queue
// and one batch; what it has not queued yet can still be cancelled.
func TestALongCallWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		most := 0
		hooks := Hooks{Queue: func(_ string, _ Priority, tokens int) { most = max(most, tokens) }}
		s, stop := start(t, Options{BatchTokens: 10, QueueTokens: 20, Hooks: hooks}, &fakeDevice{perToken: time.Millisecond})
		defer stop()
		got, err := s.Embed(t.Context(), Request{Texts: repeat(text(5), 100), Priority: Bulk})
		require.NoError(t, err)
		require.Len(t, got, 100)
		require.LessOrEqual(t, most, 20+10)

		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err = s.Embed(ctx, Request{Texts: repeat(text(5), 100), Priority: Bulk})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		require.Zero(t, s.lanes[0].classes[Bulk].tokens)
	})
}

func TestManyCallsAtOnce(t *testing.T) {
	s, stop := start(t, Options{BatchTokens: 50}, &fakeDevice{}, &fakeDevice{})
	defer stop()
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			texts := make([]string, 1+i%9)
			for j := range texts {
				texts[j] = text(2 + (i+j)%20)
			}
			got, err := s.Embed(t.Context(), Request{Texts: texts, Priority: Priority(i % 2), TokenVectors: i%3 == 0})
			if err != nil {
				t.Errorf("call %d: %v", i, err)
				return
			}
			for j := range texts {
				if want := float32((i+j)%20 + 2); got[j].Vector[0] != want {
					t.Errorf("call %d text %d: %v tokens, want %v", i, j, got[j].Vector[0], want)
				}
			}
		})
	}
	wg.Wait()
}

// Close lets no more in, and finishes what waits.
func TestCloseDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDevice{perToken: time.Millisecond}
		s, _ := start(t, Options{BatchTokens: 3, QueueTokens: 9}, d)
		one := embed(t.Context(), s, Request{Texts: repeat("a", 50)}) // more than may wait
		two := embed(t.Context(), s, Request{Texts: repeat("a", 5), Priority: Bulk})
		synctest.Wait()
		require.NoError(t, s.Close(t.Context()))
		require.NoError(t, (<-one).err)
		require.NoError(t, (<-two).err)
		require.Equal(t, 1, d.closed)
		_, err := s.Embed(t.Context(), Request{Texts: []string{"a"}})
		require.ErrorIs(t, err, ErrClosed)
		require.ErrorIs(t, s.Ready(), ErrClosed)
	})
}

// A call that was let in and is not tokenized yet is finished, too.
func TestCloseWaitsForWhatIsTokenized(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, stop := start(t, Options{}, &fakeDevice{})
		free := occupy(s)
		call := embed(t.Context(), s, Request{Texts: []string{"a"}})
		synctest.Wait()
		go func() { time.Sleep(time.Second); free() }()
		stop()
		require.NoError(t, (<-call).err)
	})
}

// Nor does it hang when Close has given up on it.
func TestWhatIsTokenizedTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := start(t, Options{}, &fakeDevice{})
		free := occupy(s)
		call := embed(t.Context(), s, Request{Texts: []string{"a"}})
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		go func() { time.Sleep(cutGrace / 2); free() }()
		require.NoError(t, s.Close(ctx))
		require.ErrorIs(t, (<-call).err, ErrClosed)
	})
}

// occupy keeps everybody from tokenizing until free is called.
func occupy(s *Scheduler) (free func()) {
	for range cap(s.tokenizing) {
		s.tokenizing <- struct{}{}
	}
	return func() {
		for range cap(s.tokenizing) {
			<-s.tokenizing
		}
	}
}

// A call that is cancelled makes room at once, in the prepared batch as well.
func TestCancelledTextsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, stop := start(t, Options{BatchTokens: 10}, &fakeDevice{perToken: ms})
		defer stop()
		running := embed(t.Context(), s, Request{Texts: []string{text(10)}})
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		doomed := embed(ctx, s, Request{Texts: repeat(text(5), 7)})
		synctest.Wait()
		require.Equal(t, 35, s.lanes[0].classes[Interactive].tokens)
		cancel()
		require.ErrorIs(t, (<-doomed).err, context.Canceled)
		require.Zero(t, s.lanes[0].classes[Interactive].tokens)
		require.NoError(t, (<-running).err)
	})
}

// A Close that runs out of time cuts off what runs and fails what waits.
func TestCloseCutsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDevice{perToken: time.Second}
		s, _ := start(t, Options{BatchTokens: 3, QueueTokens: 6}, d)
		running := embed(t.Context(), s, Request{Texts: []string{"a"}})
		synctest.Wait()
		long := embed(t.Context(), s, Request{Texts: repeat("a", 50)})
		waiting := embed(t.Context(), s, Request{Texts: repeat("a", 2), Priority: Bulk})
		synctest.Wait()
		require.NoError(t, s.Health())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.NoError(t, s.Close(ctx))
		require.ErrorIs(t, (<-running).err, ErrClosed)
		require.ErrorIs(t, (<-long).err, ErrClosed)
		require.ErrorIs(t, (<-waiting).err, ErrClosed)
		require.Equal(t, 1, d.closed)
		require.Equal(t, [][]int{{3}}, d.seen())
	})
}

// A device that does not return at all does not hang Close, nor is it closed
// in the middle of a batch.
func TestCloseLeavesAHangingDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDevice{perToken: time.Minute, deaf: true}
		s, _ := start(t, Options{}, d)
		running := embed(t.Context(), s, Request{Texts: []string{"a"}})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, s.Close(ctx), ErrDevice)
		require.Zero(t, d.closed)
		<-running // when the device returns after all
	})
}

func TestTokenizerMustFitTheModel(t *testing.T) {
	m := *tinyServed().Model
	m.Config.Vocabulary = 10
	_, err := NewScheduler(Options{}, Served{Model: &m, Tokenizer: tinyServed().Tokenizer, Devices: []Device{&fakeDevice{}}})
	require.ErrorIs(t, err, model.ErrInvalid)
	require.ErrorContains(t, err, fmt.Sprintf("ids up to %d, the encoder knows 10", tinyServed().Tokenizer.VocabSize()-1))
}

// Two models on one processor: one batch at a time, whichever model's.
func TestSeveralModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most int
		var mu sync.Mutex
		note := func(change int) {
			mu.Lock()
			defer mu.Unlock()
			running += change
			most = max(most, running)
		}
		var order strings.Builder
		one := &fakeDevice{onRun: func(b *Batch) error {
			if note(1); !isProbe(b) {
				fmt.Fprint(&order, b.IDs[1], " ")
			}
			time.Sleep(time.Millisecond)
			note(-1)
			return nil
		}}
		two := &fakeDevice{onRun: one.onRun}
		first, second := tinyServed(), tinyServed()
		other := *second.Model
		other.Name = "other"
		first.Devices, second.Model, second.Devices = []Device{one}, &other, []Device{two}
		s, err := NewScheduler(Options{BatchTokens: 3}, first, second)
		require.NoError(t, err)
		e, ok := s.Embedder("other")
		require.True(t, ok)
		require.Equal(t, "other", e.Info().Model)
		_, ok = s.Embedder("third")
		require.False(t, ok)
		a := embed(t.Context(), s, Request{Texts: repeat("a", 10)})
		b := embed(t.Context(), e, Request{Texts: repeat("x", 10)})
		require.NoError(t, errors.Join((<-a).err, (<-b).err))
		require.Len(t, one.seen(), 10)
		require.Len(t, two.seen(), 10)
		require.Equal(t, 1, most)
		turns := fmt.Sprintf("%d %d ", idOf(t, "a"), idOf(t, "x"))
		require.Contains(t, order.String(), strings.Repeat(turns, 9), "they take turns")
		require.NoError(t, s.Close(t.Context()))
	})
}

// Replicas share the work.
func TestSeveralDevices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		devices := []*fakeDevice{{perToken: time.Millisecond}, {perToken: time.Millisecond}, {perToken: 10 * time.Millisecond}}
		s, stop := start(t, Options{BatchTokens: 10}, devices...)
		defer stop()
		began := time.Now()
		_, err := s.Embed(t.Context(), Request{Texts: repeat(text(10), 21)})
		require.NoError(t, err)
		require.Equal(t, 100*time.Millisecond, time.Since(began))
		require.Len(t, devices[2].seen(), 1)
	})
}
