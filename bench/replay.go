package bench

import (
	"context"
	"io"
	"time"

	"sluice/bench/figures"
	"sluice/bench/load"
)

// ReplayOptions says what Replay sends.
type ReplayOptions struct {
	Service Service
	Times   []time.Duration // ascending: when each of its requests is due
	Rounds  int             // how often the whole is sent (default 1)
	Log     io.Writer
}

// Replay sends a service the requests of a log, each at its time, whatever
// becomes of those before. The caller sets the file's Command.
//
// Figures: s.replay.… as those of a service under a load in Serve, and
// generator.replay.late_p99_us.
func Replay(ctx context.Context, o ReplayOptions) (file figures.File, err error) {
	r := newRecorder(ctx, o.Log)
	var turns []served
	for range max(o.Rounds, 1) {
		t, err := o.Service.run(ctx, load.Options{Connections: openConnections, Times: o.Times})
		if err != nil {
			return file, err
		}
		turns = append(turns, t)
	}
	r.report(o.Service.Name+".replay", turns)
	r.Figures["generator.replay.late_p99_us"] = microseconds(merged(turns, func(r load.Result) load.Histogram { return r.Late }).Quantile(.99))
	return r.File, nil
}
