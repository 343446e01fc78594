package bench

import (
	"context"
	"fmt"
	"time"

	"sluice/bench/load"
	"sluice/gpu"
	"sluice/gpu/cpu"
	"sluice/model"
	"sluice/model/tokenizer"
)

// engine is the model called in this process, without a server or a queue.
type engine struct {
	device *cpu.Device
	single []gpu.Batch // of a text each
	full   []gpu.Batch // of as many texts as a daemon runs at once
	tokens float64     // of a text, on average
	out    []float32
}

func newEngine(dir string, p cpu.Precision, texts []string, batchTokens int) (*engine, error) {
	m, err := model.Load(dir)
	if err != nil {
		return nil, err
	}
	t, err := tokenizer.Load(m.Tokenizer)
	if err != nil {
		return nil, err
	}
	e := &engine{}
	if err := e.encode(m, t, texts, batchTokens); err != nil {
		return nil, err
	}
	e.device, err = cpu.NewFor(m, t, p)
	return e, err
}

func (e *engine) encode(m *model.Model, t *tokenizer.Tokenizer, texts []string, batchTokens int) error {
	var x tokenizer.Encoding
	total := 0
	for i, text := range texts {
		if err := t.Encode(&x, text, tokenizer.Options{MaxLength: m.MaxTokens}); err != nil {
			return fmt.Errorf("text %d: %w", i, err)
		}
		total += x.Len()
		e.single = append(e.single, batchOf(&x))
		if n := len(e.full); n == 0 || e.full[n-1].Tokens()+x.Len() > batchTokens {
			e.full = append(e.full, batchOf(&x))
		} else {
			e.full[n-1].Append(x.IDs, x.TypeIDs)
		}
	}
	if n := len(e.full); n > 1 {
		e.full = e.full[:n-1] // the last one is a rest
	}
	e.tokens = float64(total) / float64(len(texts))
	return nil
}

func batchOf(x *tokenizer.Encoding) (b gpu.Batch) {
	b.Reset()
	b.Append(x.IDs, x.TypeIDs)
	return b
}

// called is one turn of the engine.
type called struct {
	latency   load.Histogram // of batches
	tokens    int
	wall, cpu time.Duration
}

// run runs full batches, or single texts, until the time is over.
func (e *engine) run(ctx context.Context, full bool, d time.Duration) (called, error) {
	c, batches := called{latency: load.NewHistogram()}, e.single
	if full {
		batches = e.full
	}
	begin, used := time.Now(), cpuTime()
	for i := 0; time.Since(begin) < d; i++ {
		b := &batches[i%len(batches)]
		began := time.Now()
		if err := e.device.Run(ctx, b, gpu.Output{Pooled: e.room(b.Len() * e.device.Dimensions())}); err != nil {
			return c, fmt.Errorf("running the model itself: %w", err)
		}
		c.latency.Record(time.Since(began))
		c.tokens += b.Tokens()
	}
	c.wall, c.cpu = time.Since(begin), cpuTime()-used
	return c, nil
}

func (e *engine) room(n int) []float32 {
	if cap(e.out) < n {
		e.out = make([]float32, n)
	}
	return e.out[:n]
}

func (e *engine) Close() error { return e.device.Close() }
