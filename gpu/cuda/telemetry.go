package cuda

import (
	"context"

	"sluice/gpu/cuda/wire"
)

// Telemetry is how a GPU is.
type Telemetry struct {
	Device wire.Device // as it is now, or, where it is not Up, as it was at the start
	Up     bool        // its worker answers
	Starts int         // of workers
}

// Telemetry asks all workers; one that has no answer when ctx ends is not Up,
// and lives on: it may be busy.
func (s *Searcher) Telemetry(ctx context.Context) []Telemetry {
	all := make([]Telemetry, len(s.workers))
	for i, w := range s.workers {
		all[i] = w.telemetry(ctx)
	}
	return all
}

func (w *worker) telemetry(ctx context.Context) Telemetry {
	l, _ := w.present()
	w.mu.Lock()
	t := Telemetry{Device: l.hello.Device, Starts: w.starts}
	w.mu.Unlock()
	ctx, cancel := patience(ctx)
	defer cancel()
	var hello wire.Hello
	if err := l.do(ctx, call{hello: &hello}, wire.AppendStatus); err == nil {
		t.Device, t.Up = hello.Device, true
	}
	return t
}
