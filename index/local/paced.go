package local

import (
	"context"
	"io"
	"slices"

	"golang.org/x/time/rate"
)

// pacedWriter leaves the disk to searches and commits while it waits for its limit.
type pacedWriter struct {
	ctx   context.Context
	out   io.Writer
	limit *rate.Limiter
}

// paced returns out, limited in bytes; nil: not limited.
func paced(ctx context.Context, out io.Writer, limit *rate.Limiter) io.Writer {
	if limit == nil {
		return out
	}
	return pacedWriter{ctx, out, limit}
}

func (w pacedWriter) Write(p []byte) (written int, err error) {
	for some := range slices.Chunk(p, w.limit.Burst()) {
		if err := w.limit.WaitN(w.ctx, len(some)); err != nil {
			return written, err
		}
		n, err := w.out.Write(some)
		if written += n; err != nil {
			return written, err
		}
	}
	return written, nil
}
