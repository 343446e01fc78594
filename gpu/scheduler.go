package gpu

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"

	"sluice/model"
	"sluice/model/tokenizer"
)

// ErrClosed is returned by calls that Close overtook.
var ErrClosed = errors.New("embedder is closed")

// Options of a Scheduler; the zero value is ready to use.
type Options struct {
	// BatchTokens is how many tokens run at once (default 1024). More gains
	// little on a CPU and makes newcomers wait longer for the batch before them.
	BatchTokens int
	// Calls is how many calls may be in progress (default 1024); more wait.
	Calls int
}

// Scheduler is an Embedder that runs texts in batches on a device. Calls take
// turns, one text each, so that a query waits for about one batch however many
// texts a bulk call brings.
type Scheduler struct {
	info      Info
	tokenizer *tokenizer.Tokenizer
	device    Device
	budget    int
	slots     chan struct{}

	stop  context.CancelFunc
	ended chan struct{} // closed when the scheduler's goroutine has returned

	mu      sync.Mutex
	changed *sync.Cond // ring has grown, or closed is set
	ring    []*call    // those with texts to run, in turn
	closed  bool
}

var _ Embedder = (*Scheduler)(nil)

// NewScheduler starts a scheduler for m, whose encoder device runs. It owns
// the device from here on.
func NewScheduler(m *model.Model, t *tokenizer.Tokenizer, device Device, o Options) (*Scheduler, error) {
	if t.VocabSize() > m.Config.Vocabulary {
		return nil, fmt.Errorf("%w: the tokenizer of %s has ids up to %d, the encoder knows %d",
			model.ErrInvalid, m.Name, t.VocabSize()-1, m.Config.Vocabulary)
	}
	if o.BatchTokens <= 0 {
		o.BatchTokens = 1024
	}
	if o.Calls <= 0 {
		o.Calls = 1024
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Scheduler{
		info: describe(m, device), tokenizer: t, device: device, budget: o.BatchTokens,
		slots: make(chan struct{}, o.Calls), stop: stop, ended: make(chan struct{}),
	}
	s.changed = sync.NewCond(&s.mu)
	go s.loop(ctx)
	return s, nil
}

func describe(m *model.Model, device Device) Info {
	digest := sha256.Sum256([]byte(m.Digest + "\n" + device.Precision()))
	return Info{
		Model: m.Name, Digest: hex.EncodeToString(digest[:]), Dimensions: device.Dimensions(),
		MaxTokens: m.MaxTokens, Precision: device.Precision(),
	}
}

// Info describes the embedder.
func (s *Scheduler) Info() Info { return s.info }

// Close fails the calls in progress with ErrClosed and closes the device.
func (s *Scheduler) Close() error {
	s.mu.Lock()
	s.closed = true
	s.changed.Broadcast()
	s.mu.Unlock()
	s.stop()
	<-s.ended
	return s.device.Close()
}

// Embed implements Embedder. It returns as soon as ctx ends, and texts that
// were not started never are.
func (s *Scheduler) Embed(ctx context.Context, r Request) ([]Embedding, error) {
	texts := r.Texts
	if len(texts) == 0 {
		return nil, ctx.Err()
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.ended:
		return nil, ErrClosed
	}
	c := newCall(ctx, len(texts), s.info.Dimensions)
	c.tokenVectors = r.TokenVectors
	if err := s.tokenize(c, texts); err != nil {
		return nil, err
	}
	if err := s.enqueue(c); err != nil {
		return nil, err
	}
	select {
	case <-c.done:
		return c.results, c.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *Scheduler) tokenize(c *call, texts []string) error {
	var e tokenizer.Encoding
	for i, text := range texts {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if err := s.tokenizer.Encode(&e, text, tokenizer.Options{MaxLength: s.info.MaxTokens}); err != nil {
			return fmt.Errorf("tokenizing text %d: %w", i, err)
		}
		c.tokens.Append(e.IDs, e.TypeIDs)
		c.results[i].Tokens, c.results[i].Truncated = e.Len(), e.Truncated()
		if c.tokenVectors {
			c.results[i].Special = slices.Clone(e.Special)
		}
	}
	return nil
}

func (s *Scheduler) enqueue(c *call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.ring = append(s.ring, c)
	s.changed.Signal()
	return nil
}

// loop runs batches until Close.
func (s *Scheduler) loop(ctx context.Context) {
	defer close(s.ended)
	r := &runner{device: s.device}
	for items := s.next(nil); len(items) > 0; items = s.next(items[:0]) {
		r.run(ctx, items)
	}
}

// next waits for texts and appends those of the next batch to items: one per
// call in turn while the budget lasts, at least one. None means closed.
func (s *Scheduler) next(items []item) []item {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.closed {
		if items = s.take(items); len(items) > 0 {
			return items
		}
		s.changed.Wait()
	}
	for _, c := range s.ring {
		c.finish(ErrClosed)
	}
	s.ring = nil
	return items
}

func (s *Scheduler) take(items []item) []item {
	for tokens := 0; len(s.ring) > 0; {
		c := s.ring[0]
		if c.over() {
			s.ring = s.ring[1:]
			continue
		}
		if tokens += c.length(c.next); len(items) > 0 && tokens > s.budget {
			break // it is the first of the next batch
		}
		items = append(items, item{c, c.next})
		c.next++
		s.ring = s.ring[1:]
		if c.next < len(c.results) {
			s.ring = append(s.ring, c)
		}
	}
	return items
}
