package gpu

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"time"

	"sluice/model"
	"sluice/model/tokenizer"
	"sluice/trace"
)

// Served is a model and the devices that run it, replicas of each other. The
// first runs on the scheduler's processor 0, the next on 1, and so on: on one
// processor one batch runs at a time, whichever model's it is. An Aside comes after
// the device that it runs beside.
type Served struct {
	Model     *model.Model
	Tokenizer *tokenizer.Tokenizer
	Devices   []Device
}

// lane is one model of a scheduler, and its Embedder, or its Classifier and
// Reranker.
type lane struct {
	scheduler *Scheduler
	info      Info
	tokenizer *tokenizer.Tokenizer
	scores    bool              // it is a Classifier
	head      *model.Classifier // of a Classifier
	width     int               // of an answer: numbers of a vector, or logits
	probe     Batch             // a short text, to see whether a device works

	// Guarded by the scheduler's lock.
	devices []*device
	classes [2]class // by Priority
	speed   speed
	served  uint64 // the scheduler's count of batches when its last one began
}

// class is what waits of one priority.
type class struct {
	queue    queue
	prepared *batch // the next to run; it is topped up until then
	texts    int    // in both
	tokens   int    // of these
}

// device is a Device and how it fares.
type device struct {
	Device
	prompt bool  // it is Prompt
	aside  int   // tokens of the longest batch of an Aside; 0: it is none
	sick   error // why it is not used; nil if it is
}

func newLane(s *Scheduler, v Served) (*lane, error) {
	m, t := v.Model, v.Tokenizer
	if t.VocabSize() > m.Config.Vocabulary {
		return nil, fmt.Errorf("%w: the tokenizer of %s has ids up to %d, the encoder knows %d",
			model.ErrInvalid, m.Name, t.VocabSize()-1, m.Config.Vocabulary)
	}
	l := &lane{scheduler: s, info: describe(m, v.Devices[0]), tokenizer: t, width: v.Devices[0].Dimensions()}
	if c := m.Classifier; c != nil {
		l.scores, l.head, l.width, l.info.Labels = true, c, len(c.Labels), c.Labels
	}
	l.info.BatchTokens = s.options.BatchTokens
	for _, d := range v.Devices {
		_, prompt := d.(Prompt)
		own := &device{Device: d, prompt: prompt}
		if a, ok := d.(Aside); ok {
			own.aside = a.AsideTokens()
		}
		l.devices = append(l.devices, own)
	}
	for p := range l.classes {
		l.classes[p].prepared = newBatch()
	}
	var e tokenizer.Encoding
	if err := t.Encode(&e, "probe", tokenizer.Options{MaxLength: m.MaxTokens}); err != nil {
		return nil, fmt.Errorf("%w: the tokenizer of %s cannot do a word: %w", model.ErrInvalid, m.Name, err)
	}
	l.probe.Reset()
	l.probe.Append(e.IDs, e.TypeIDs)
	return l, nil
}

func describe(m *model.Model, d Device) Info {
	digest := sha256.Sum256([]byte(m.Digest + "\n" + d.Precision()))
	return Info{
		Model: m.Name, Digest: hex.EncodeToString(digest[:]), Dimensions: d.Dimensions(), TokenDimensions: m.Config.Hidden,
		MaxTokens: m.MaxTokens, Precision: d.Precision(), Pooling: m.Pooling, Prompts: m.Prompts,
	}
}

// Info implements Embedder, Classifier and Reranker.
func (l *lane) Info() Info { return l.info }

// Embed implements Embedder. Errors are ctx's own, a TooLongError,
// tokenizer.ErrUnknownID, that of Options.Room, an OverloadedError, ErrDevice or
// ErrClosed.
func (l *lane) Embed(ctx context.Context, r Request) ([]Embedding, error) {
	o := l.options(r.Truncation)
	if r.IDs != nil {
		return l.run(ctx, len(r.IDs), r, func(e *tokenizer.Encoding, i int) error {
			return l.tokenizer.EncodeIDs(e, r.IDs[i], o)
		})
	}
	return l.run(ctx, len(r.Texts), r, func(e *tokenizer.Encoding, i int) error {
		if err := l.tokenizer.Encode(e, r.Prompt+r.Texts[i], o); err != nil {
			return err
		}
		markPrompt(e, len(r.Prompt))
		return nil
	})
}

// markPrompt has the tokens within the first n bytes count as special.
func markPrompt(e *tokenizer.Encoding, n int) {
	for i, at := range e.Offsets {
		if n > 0 && at.End <= n {
			e.Special[i] = true
		}
	}
}

// encode tokenizes text i of a call.
type encode func(e *tokenizer.Encoding, i int) error

// run has n texts run. It returns as soon as ctx ends, or with the batch that it
// runs itself, which may be others' texts too; texts that were not started then never are. A full queue refuses a
// call before anything is done for it.
func (l *lane) run(ctx context.Context, n int, r Request, encode encode) ([]Embedding, error) {
	if n == 0 {
		return nil, ctx.Err()
	}
	if err := l.scheduler.admit(l, r.Priority); err != nil {
		return nil, err
	}
	c := newCall(ctx, n, l.width, r)
	err := l.submit(c, r, encode)
	if err == nil {
		err = c.wait()
	}
	if err != nil {
		c.fail(err)
		l.scheduler.forget(l, c)
		return nil, err
	}
	recordSpans(ctx, c.results)
	return c.results, nil
}

// recordSpans records the stages of the text that took longest in each.
func recordSpans(ctx context.Context, results []Embedding) {
	r := trace.From(ctx)
	if r == nil {
		return
	}
	var most Timing
	for _, e := range results {
		most.Tokenize, most.Queue, most.Run = max(most.Tokenize, e.Timing.Tokenize), max(most.Queue, e.Timing.Queue), max(most.Run, e.Timing.Run)
	}
	ran := time.Now().Add(-most.Run)
	queued := ran.Add(-most.Queue)
	r.AddSpan(trace.Span{Name: "tokenize", Start: queued.Add(-most.Tokenize), End: queued})
	r.AddSpan(trace.Span{Name: "queue", Start: queued, End: ran})
	r.AddSpan(trace.Span{Name: "infer", Start: ran, End: ran.Add(most.Run)})
}

// submit tokenizes texts and queues them, a batch's worth at a time, so that
// devices start on the first while the last are tokenized.
func (l *lane) submit(c *call, r Request, encode encode) error {
	defer l.scheduler.submitted()
	e := l.scheduler.encodings.Get().(*tokenizer.Encoding)
	defer l.scheduler.encodings.Put(e)
	n := len(c.results)
	items, tokens := make([]item, 0, min(n, 64)), 0
	for i := range n {
		if c.over() {
			return nil // wait sees why
		}
		if err := l.tokenize(c, e, i, r.Truncation, encode); err != nil {
			return err
		}
		if r.Reserve != nil {
			if err := r.Reserve(e.Len()); err != nil {
				return err
			}
		}
		items = append(items, newItem(c, i, e))
		if tokens += e.Len(); tokens >= l.scheduler.options.BatchTokens || i == n-1 {
			own, err := l.scheduler.enqueue(l, c, items, i == n-1)
			if err != nil {
				return err
			}
			if own != nil {
				own.lead()
			}
			items, tokens = items[:0], 0
		}
	}
	return nil
}

// tokenize takes a slot for one text only: a long call keeps no other waiting.
func (l *lane) tokenize(c *call, e *tokenizer.Encoding, i int, t Truncation, encode encode) error {
	select {
	case l.scheduler.tokenizing <- struct{}{}:
		defer func() { <-l.scheduler.tokenizing }()
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
	began := time.Now()
	if err := encode(e, i); err != nil {
		return fmt.Errorf("tokenizing text %d: %w", i, err)
	}
	if t.Refuse && e.Cut > 0 {
		return &TooLongError{Text: i, Tokens: e.Len() + e.Cut, Limit: l.info.MaxTokens}
	}
	result := &c.results[i]
	result.Tokens, result.Truncated, result.Timing.Tokenize = e.Len(), e.Truncated(), time.Since(began)
	if c.tokens {
		result.Special = slices.Clone(e.Special)
	}
	return nil
}

// options of the tokenizer for what the model takes.
func (l *lane) options(t Truncation) tokenizer.Options {
	return tokenizer.Options{MaxLength: l.info.MaxTokens, TruncateLeft: t.Left, Room: l.scheduler.options.Room}
}

// newItem copies the ids, as e is reused.
func newItem(c *call, text int, e *tokenizer.Encoding) item {
	both := make([]int32, 2*e.Len())
	ids, types := both[:e.Len():e.Len()], both[e.Len():]
	copy(ids, e.IDs)
	copy(types, e.TypeIDs)
	return item{c, text, ids, types, time.Now()}
}

// prepare tops up the batches that run next.
func (l *lane) prepare() {
	for p := range l.classes {
		c := &l.classes[p]
		c.prepared.fill(&c.queue, l.budget(Priority(p)))
	}
}

// budget is the tokens of a batch.
func (l *lane) budget(p Priority) int {
	most := l.scheduler.options.BatchTokens
	if p == Interactive || !l.scheduler.beside() {
		return most
	}
	return min(max(l.speed.during(besideTime), besideTokens, l.scheduler.streak.tokens/bulkShare), most)
}

// waits reports whether any text of the priority waits.
func (l *lane) waits(p Priority) bool { return l.classes[p].texts > 0 }

// runs reports whether processor p has a device of l's that works.
func (l *lane) runs(p int) bool { return p < len(l.devices) && l.devices[p].sick == nil }

// working counts the devices in use.
func (l *lane) working() (n int) {
	for _, d := range l.devices {
		if d.sick == nil && d.aside == 0 {
			n++
		}
	}
	return n
}

// drain estimates how long a newcomer of the priority would wait.
func (l *lane) drain(p Priority) time.Duration {
	tokens := l.classes[Interactive].tokens
	if p == Bulk {
		tokens += l.classes[Bulk].tokens
	}
	return l.speed.time(tokens, max(1, l.working()))
}

// speed is a moving average over the last batches of one device.
type speed struct{ tokens, seconds float64 }

const speedDecay = .9 // what a batch leaves of those before it

func (v *speed) add(tokens int, took time.Duration) {
	v.tokens = v.tokens*speedDecay + float64(tokens)
	v.seconds = v.seconds*speedDecay + took.Seconds()
}

// time is what a number of devices need for tokens; a second if nothing is known.
func (v *speed) time(tokens, devices int) time.Duration {
	if v.seconds == 0 {
		return time.Second
	}
	seconds := float64(tokens) / float64(devices) * v.seconds / v.tokens
	return time.Duration(math.Min(seconds, time.Hour.Seconds()) * float64(time.Second))
}

// during is the tokens that one device runs in so much time; 0 if nothing is known.
func (v *speed) during(t time.Duration) int {
	if v.seconds == 0 {
		return 0
	}
	return int(min(t.Seconds()*v.tokens/v.seconds, math.MaxInt32))
}
