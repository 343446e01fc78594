package gpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/model"
	"sluice/model/tokenizer"
)

const (
	tiny       = "../model/testdata/bert_e2e_wordpiece_cased"
	dimensions = 2
)

// fakeDevice answers (number of tokens, sum of ids), remembers each batch's
// lengths, and does what a test tells it to.
type fakeDevice struct {
	entered chan struct{} // if not nil, told when a batch begins
	proceed chan struct{} // if not nil, awaited before it is answered
	poison  int32         // a batch with this id is refused
	nan     int32         // a sequence with this id gets a NaN

	mu      sync.Mutex
	batches [][]int
	closed  int
}

var errPoison = errors.New("poison")

func (d *fakeDevice) Dimensions() int   { return dimensions }
func (d *fakeDevice) Precision() string { return "fake" }
func (d *fakeDevice) Close() error      { d.closed++; return nil }

func (d *fakeDevice) Embed(ctx context.Context, b *Batch, dst []float32) error {
	d.remember(b)
	if d.entered != nil {
		d.entered <- struct{}{}
	}
	if d.proceed != nil {
		select {
		case <-d.proceed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for i := range b.Len() {
		v := dst[i*dimensions:][:dimensions]
		v[0], v[1] = float32(b.Offsets[i+1]-b.Offsets[i]), 0
		for _, id := range b.IDs[b.Offsets[i]:b.Offsets[i+1]] {
			switch v[1] += float32(id); {
			case d.poison != 0 && id == d.poison:
				return errPoison
			case d.nan != 0 && id == d.nan:
				v[0] = float32(math.NaN())
			}
		}
	}
	return nil
}

func (d *fakeDevice) remember(b *Batch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var lengths []int
	for i := range b.Len() {
		lengths = append(lengths, b.Offsets[i+1]-b.Offsets[i])
	}
	d.batches = append(d.batches, lengths)
}

// seen is the lengths of the sequences of every batch so far.
func (d *fakeDevice) seen() [][]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.batches)
}

func tinyModel(t *testing.T) (*model.Model, *tokenizer.Tokenizer) {
	t.Helper()
	m, err := model.Load(tiny)
	require.NoError(t, err)
	tok, err := tokenizer.Load(m.Tokenizer)
	require.NoError(t, err)
	return m, tok
}

func start(t *testing.T, d *fakeDevice, o Options) *Scheduler {
	t.Helper()
	m, tok := tinyModel(t)
	s, err := NewScheduler(m, tok, d, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.Positive(t, d.closed)
	})
	return s
}

// word is a text of one token, besides the two special ones.
const word = "a"

// idOf is the id of a one-token text.
func idOf(t *testing.T, text string) int32 {
	t.Helper()
	_, tok := tinyModel(t)
	var e tokenizer.Encoding
	require.NoError(t, tok.Encode(&e, text, tokenizer.Options{NoSpecialTokens: true}))
	require.Equal(t, 1, e.Len())
	return e.IDs[0]
}

func TestEmbedAnswersInOrder(t *testing.T) {
	d := &fakeDevice{}
	s := start(t, d, Options{BatchTokens: 10})
	_, tok := tinyModel(t)
	texts := []string{"", word, "a a a a a a a a a a a a", "the end", "a [SEP] b", strings.Repeat("a ", 500)}
	got, err := s.Embed(t.Context(), texts)
	require.NoError(t, err)
	for i, text := range texts {
		var e tokenizer.Encoding
		require.NoError(t, tok.Encode(&e, text, tokenizer.Options{MaxLength: 64}))
		var sum float32
		for _, id := range e.IDs {
			sum += float32(id)
		}
		require.Equal(t, Embedding{[]float32{float32(e.Len()), sum}, e.Len(), i == 5}, got[i], "text %d", i)
	}
	require.Equal(t, 64, got[5].Tokens)
	for _, lengths := range d.seen() {
		sum := 0
		for _, n := range lengths {
			sum += n
		}
		require.True(t, sum <= 10 || len(lengths) == 1, "batch of %v", lengths)
	}
}

func TestNoTexts(t *testing.T) {
	got, err := start(t, &fakeDevice{}, Options{}).Embed(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestInfo(t *testing.T) {
	s := start(t, &fakeDevice{}, Options{})
	info := s.Info()
	require.Len(t, info.Digest, 64)
	info.Digest = ""
	require.Equal(t, Info{Model: "bert_e2e_wordpiece_cased", Dimensions: 2, MaxTokens: 64, Precision: "fake"}, info)
}

// A call that comes while another runs is in the very next batch, and neither
// keeps the other out.
func TestCallsTakeTurns(t *testing.T) {
	d := &fakeDevice{entered: make(chan struct{}), proceed: make(chan struct{})}
	s := start(t, d, Options{BatchTokens: 12}) // four one-word texts
	bulk, other := make(chan error, 1), make(chan error, 1)
	go func() { _, err := s.Embed(t.Context(), repeat(word, 12)); bulk <- err }()
	<-d.entered
	go func() { _, err := s.Embed(t.Context(), repeat("a a", 4)); other <- err }()
	waitForCalls(s, 2)
	d.proceed <- struct{}{}
	<-d.entered
	require.Contains(t, d.seen()[1], 3)
	require.Contains(t, d.seen()[1], 4)
	go func() {
		for range d.entered {
		}
	}()
	close(d.proceed)
	require.NoError(t, <-bulk)
	require.NoError(t, <-other)
	close(d.entered)
}

func repeat(text string, n int) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = text
	}
	return texts
}

// waitForCalls waits until n calls have texts waiting.
func waitForCalls(s *Scheduler, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.ring) < n {
		s.mu.Unlock()
		runtime.Gosched()
		s.mu.Lock()
	}
}

// What nobody waits for any more is not run, and its neighbours are.
func TestCancelledTextsAreNotRun(t *testing.T) {
	d := &fakeDevice{entered: make(chan struct{}), proceed: make(chan struct{})}
	s := start(t, d, Options{BatchTokens: 3})
	ctx, cancel := context.WithCancel(t.Context())
	doomed, other := make(chan error, 1), make(chan error, 1)
	go func() { _, err := s.Embed(ctx, repeat(word, 100)); doomed <- err }()
	<-d.entered
	go func() { _, err := s.Embed(t.Context(), []string{"a a a"}); other <- err }()
	waitForCalls(s, 2)
	cancel()
	require.ErrorIs(t, <-doomed, context.Canceled)
	d.proceed <- struct{}{}
	<-d.entered
	d.proceed <- struct{}{}
	require.NoError(t, <-other)
	require.Equal(t, [][]int{{3}, {5}}, d.seen())
}

func TestCancelledBeforeItStarts(t *testing.T) {
	d := &fakeDevice{}
	s := start(t, d, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Embed(ctx, []string{word})
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, d.seen())
}

// Calls beyond the limit wait, and stop waiting with their context.
func TestCallsAreBounded(t *testing.T) {
	d := &fakeDevice{entered: make(chan struct{}), proceed: make(chan struct{})}
	s := start(t, d, Options{Calls: 1})
	first := make(chan error, 1)
	go func() { _, err := s.Embed(t.Context(), []string{word}); first <- err }()
	<-d.entered
	ctx, cancel := context.WithCancel(t.Context())
	second := make(chan error, 1)
	go func() { _, err := s.Embed(ctx, []string{word}); second <- err }()
	cancel()
	require.ErrorIs(t, <-second, context.Canceled)
	close(d.proceed)
	require.NoError(t, <-first)
	require.Len(t, d.seen(), 1)
}

func TestABadTextHarmsNoOther(t *testing.T) {
	for name, d := range map[string]*fakeDevice{"refused": {poison: idOf(t, "x")}, "not finite": {nan: idOf(t, "x")}} {
		t.Run(name, func(t *testing.T) {
			s := start(t, d, Options{})
			var wg sync.WaitGroup
			for i := range 20 {
				wg.Go(func() {
					texts := []string{word, word}
					if i%5 == 0 {
						texts[1] = "x"
					}
					got, err := s.Embed(t.Context(), texts)
					if i%5 == 0 {
						if err == nil || !strings.Contains(err.Error(), "text 1") {
							t.Errorf("call %d: %v, want an error that names text 1", i, err)
						}
						return
					}
					if err != nil || len(got) != 2 || got[1].Vector[0] != 3 {
						t.Errorf("call %d: %v, %v", i, got, err)
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestManyCallsAtOnce(t *testing.T) {
	s := start(t, &fakeDevice{}, Options{BatchTokens: 50, Calls: 8})
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			texts := make([]string, 1+i%9)
			for j := range texts {
				texts[j] = strings.Repeat("a ", (i+j)%20)
			}
			got, err := s.Embed(t.Context(), texts)
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

func TestCloseFailsWhatIsInProgress(t *testing.T) {
	d := &fakeDevice{entered: make(chan struct{}), proceed: make(chan struct{})}
	s := start(t, d, Options{BatchTokens: 3})
	running, waiting := make(chan error, 1), make(chan error, 1)
	go func() { _, err := s.Embed(t.Context(), repeat(word, 5)); running <- err }()
	<-d.entered
	go func() { _, err := s.Embed(t.Context(), []string{word}); waiting <- err }()
	waitForCalls(s, 2)
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-running, ErrClosed)
	require.ErrorIs(t, <-waiting, ErrClosed)
	_, err := s.Embed(t.Context(), []string{word})
	require.ErrorIs(t, err, ErrClosed)
}

func TestTokenizerMustFitTheModel(t *testing.T) {
	m, tok := tinyModel(t)
	m.Config.Vocabulary = 10
	_, err := NewScheduler(m, tok, &fakeDevice{}, Options{})
	require.ErrorIs(t, err, model.ErrInvalid)
	require.ErrorContains(t, err, fmt.Sprintf("ids up to %d, the encoder knows 10", tok.VocabSize()-1))
}
