package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"sluice/bench/figures"
	"sluice/bench/load"
	"sluice/kernels/simd"
)

// nullRate is the rate of the open loop, in requests a second: enough for a
// 99th percentile, and far from what the cores can do.
const nullRate = 2000

// NullOptions says how long Null measures, and with how many connections.
type NullOptions struct {
	Connections []int
	Rounds      int
	Turn        time.Duration
	Log         io.Writer
	Watch       func(what string, answered int, since time.Duration) // as of a Service
}

// Null measures the load generator itself against a server, in this process,
// that answers with nothing. requests_per_s is the most that it sends in a
// closed loop, over the connections and the rounds; p99_error_us how late it is
// in an open loop; sleep_p99_us how late the machine wakes one who only sleeps,
// with .min and .max of the rounds. The caller sets the file's Command.
func Null(ctx context.Context, o NullOptions) (file figures.File, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return file, err
	}
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- load.ServeNull(serving, listener) }()
	defer func() { stop(); err = errors.Join(err, <-served) }()
	s, err := NewService("null", "http://"+listener.Addr().String()+"/", 0, []Call{{Body: struct{}{}}})
	if err != nil {
		return file, err
	}
	s.Watch = o.Watch
	file = figures.New(ctx, simd.Best().Level)
	return file, o.measure(ctx, s, file)
}

func (o NullOptions) measure(ctx context.Context, s Service, out figures.File) error {
	var most, late99, host []float64
	late := load.NewHistogram()
	for round := range o.Rounds {
		most = append(most, 0)
		for _, n := range o.Connections {
			t, err := s.run(ctx, load.Options{Connections: n, Duration: o.Turn})
			if err != nil {
				return err
			}
			most[round] = max(most[round], t.Rate())
			fmt.Fprintf(o.Log, "%d connections: %.0f requests/s\n", n, t.Rate())
		}
		t, err := s.run(ctx, load.Options{Connections: openConnections, Rate: nullRate, Seed: uint64(round), Duration: o.Turn})
		if err != nil {
			return err
		}
		late.Merge(t.Late)
		late99 = append(late99, microseconds(t.Late.Quantile(.99)))
		host = append(host, microseconds(load.Lateness(ctx, nullRate, uint64(round), o.Turn).Quantile(.99)))
		fmt.Fprintf(o.Log, "open loop at %d a second: p99 of the error %.0f µs, of a sleep alone %.0f µs\n", nullRate, late99[round], host[round])
	}
	out.Spread("sleep_p99_us", host)
	out.Rounds["requests_per_s"], out.Rounds["p99_error_us"] = most, late99
	out.Figures["requests_per_s"], out.Figures["p99_error_us"] = slices.Max(most), microseconds(late.Quantile(.99))
	out.Histograms["error"] = late.String()
	return nil
}
