package bench

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"sluice/bench/figures"
	"sluice/bench/load"
	"sluice/kernels/simd"
)

// NullOptions says how long Null measures, and with how many connections.
type NullOptions struct {
	Connections []int
	Rounds      int
	Turn        time.Duration
	Log         io.Writer
}

// Null measures the load generator itself, against a server in this process
// that answers with nothing: null.closed.cN.requests_per_s is what it can send
// at most, and generator.null.load80.late_p99_us how late it is itself in an
// open loop at a tenth of that. The caller sets the file's Command.
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
	m := &serveRun{ServeOptions{Connections: o.Connections, Rounds: o.Rounds, Turn: o.Turn, Log: o.Log}, map[string]float64{}}
	m.setDefaults()
	file.Commit, file.Environment, file.Figures = figures.Commit(ctx), figures.Local(simd.Best().Level), m.out
	return file, m.endpoint(ctx, "http", nil, []Service{s})
}
