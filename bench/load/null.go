package load

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

// ServeNull answers every request at once with nothing, until ctx ends: what
// Run measures there is what it adds itself.
func ServeNull(ctx context.Context, listener net.Listener) error {
	s := &fasthttp.Server{Handler: func(*fasthttp.RequestCtx) {}, CloseOnShutdown: true}
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return errors.Join(s.ShutdownWithContext(end), <-served)
}
