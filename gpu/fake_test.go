package gpu

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/model"
	"sluice/model/tokenizer"
)

const (
	tiny            = "../model/testdata/bert_e2e_wordpiece_cased"
	dimensions      = 2
	tokenDimensions = 3 // as where a Dense module follows pooling
)

// fakeDevice answers (number of tokens, sum of ids) for a sequence, with the
// number as the norm and the sum as the logit, and (id, 1, 0) for a token. It remembers each batch's lengths, probes left out, and does
// what a test tells it to.
type fakeDevice struct {
	perToken time.Duration                       // what a batch takes, on a fake clock
	onRun    func(b *Batch) error                // may fail, panic or hang
	onAnswer func(ids []int32, vector []float32) // may spoil an answer
	onToken  func(id int32, vector []float32)    // may spoil a token's vector
	deaf     bool                                // ignores its context
	labels   int                                 // logits; 0: one

	mu      sync.Mutex
	batches [][]int
	probes  int
	closed  int
}

func (d *fakeDevice) Dimensions() int   { return dimensions }
func (d *fakeDevice) Labels() int       { return max(1, d.labels) }
func (d *fakeDevice) Precision() string { return "fake" }
func (d *fakeDevice) Close() error      { d.closed++; return nil }

func (d *fakeDevice) Run(ctx context.Context, b *Batch, out Output) error {
	d.remember(b)
	if d.onRun != nil {
		if err := d.onRun(b); err != nil {
			return err
		}
	}
	if d.perToken > 0 {
		done := ctx.Done()
		if d.deaf {
			done = nil
		}
		select {
		case <-time.After(time.Duration(b.Tokens()) * d.perToken):
		case <-done:
			return ctx.Err()
		}
	}
	for i := range out.Norms {
		out.Norms[i] = float32(b.Offsets[i+1] - b.Offsets[i])
	}
	for i := range out.Logits {
		vector := make([]float32, dimensions)
		text := i / d.Labels()
		d.answer(b.IDs[b.Offsets[text]:b.Offsets[text+1]], vector)
		out.Logits[i] = vector[1] + float32(i%d.Labels())
	}
	for i := range len(out.Pooled) / dimensions {
		d.answer(b.IDs[b.Offsets[i]:b.Offsets[i+1]], out.Pooled[i*dimensions:][:dimensions])
	}
	for i := range len(out.Tokens) / tokenDimensions {
		vector := out.Tokens[i*tokenDimensions:][:tokenDimensions]
		if vector[0], vector[1] = float32(b.IDs[i]), 1; d.onToken != nil {
			d.onToken(b.IDs[i], vector)
		}
	}
	return nil
}

func (d *fakeDevice) answer(ids []int32, vector []float32) {
	vector[0], vector[1] = float32(len(ids)), 0
	for _, id := range ids {
		vector[1] += float32(id)
	}
	if d.onAnswer != nil {
		d.onAnswer(ids, vector)
	}
}

func (d *fakeDevice) remember(b *Batch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if isProbe(b) {
		d.probes++
		return
	}
	var lengths []int
	for i := range b.Len() {
		lengths = append(lengths, b.Offsets[i+1]-b.Offsets[i])
	}
	d.batches = append(d.batches, lengths)
}

// isProbe reports a batch of the word "probe" and nothing else.
func isProbe(b *Batch) bool { return slices.Equal(b.IDs, probeIDs) }

var probeIDs = func() []int32 {
	var e tokenizer.Encoding
	if err := tinyServed().Tokenizer.Encode(&e, "probe", tokenizer.Options{}); err != nil {
		panic(err)
	}
	return e.IDs
}()

// seen is the lengths of the sequences of every batch so far.
func (d *fakeDevice) seen() [][]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.batches)
}

var tinyServed = sync.OnceValue(func() Served {
	m, err := model.Load(tiny)
	if err != nil {
		panic(err)
	}
	t, err := tokenizer.Load(m.Tokenizer)
	if err != nil {
		panic(err)
	}
	m.Config.Hidden = tokenDimensions
	return Served{Model: m, Tokenizer: t}
})

// start serves the tiny model on the devices until the test ends, or, in a
// bubble, until the returned function is called.
func start(t *testing.T, o Options, devices ...*fakeDevice) (*Scheduler, func()) {
	t.Helper()
	v := tinyServed()
	for _, d := range devices {
		v.Devices = append(v.Devices, d)
	}
	s, err := NewScheduler(o, v)
	require.NoError(t, err)
	return s, func() {
		require.NoError(t, s.Close(context.Background()))
		for _, d := range devices {
			require.Equal(t, 1, d.closed)
		}
	}
}

// text is one of n tokens, the two special ones included.
func text(n int) string { return textOf("a", n) }

func textOf(word string, n int) string { return strings.Repeat(word+" ", n-2) }

// idOf is the id of a one-token word.
func idOf(t *testing.T, word string) int32 {
	t.Helper()
	var e tokenizer.Encoding
	require.NoError(t, tinyServed().Tokenizer.Encode(&e, word, tokenizer.Options{NoSpecialTokens: true}))
	require.Equal(t, 1, e.Len())
	return e.IDs[0]
}

func repeat(text string, n int) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = text
	}
	return texts
}

// outcome is what an Embed in the background returned, and when.
type outcome struct {
	embeddings []Embedding
	err        error
	at         time.Time
}

// embed calls Embed in the background.
func embed(ctx context.Context, e Embedder, r Request) <-chan outcome {
	c := make(chan outcome, 1)
	go func() {
		got, err := e.Embed(ctx, r)
		c <- outcome{got, err, time.Now()}
	}()
	return c
}
