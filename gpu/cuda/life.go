package cuda

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"

	"sluice/gpu"
	"sluice/gpu/cuda/wire"
)

// life is one process of a worker, from its start to its end.
type life struct {
	process *exec.Cmd
	socket  net.Conn
	reader  *wire.Reader
	said    *said
	hello   wire.Hello
	ended   chan struct{} // closed when the process is gone and nobody waits for it

	writing sync.Mutex
	buffer  []byte

	mu      sync.Mutex // guards what follows, and the outputs of pending calls
	pending map[uint32]*call
	last    uint32 // id
	over    error  // why it is, or is about to be; nil: it is not
}

// call is a request that waits for its answer, and where that goes.
type call struct {
	out   gpu.Output
	found wire.Found
	hello *wire.Hello // nil: none is wanted
	done  chan error  // takes one
}

var errUnasked = fmt.Errorf("%w: a hello that was not asked for", wire.ErrFrame)

// begin starts a process for a device and waits until it has said hello.
func begin(ctx context.Context, path string, ordinal int, log *slog.Logger) (*life, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	l := &life{socket: ours, reader: wire.NewReader(ours), said: &said{log: log}, ended: make(chan struct{}), pending: map[uint32]*call{}}
	l.process = exec.Command(path, "run", strconv.Itoa(ordinal))
	l.process.ExtraFiles, l.process.Stderr = []*os.File{theirs}, l.said
	err = l.process.Start()
	if err = errors.Join(err, theirs.Close()); err != nil { // open here, it would hide the worker's end
		return nil, errors.Join(fmt.Errorf("starting the GPU worker: %w", err), ours.Close())
	}
	stop := context.AfterFunc(ctx, func() { l.end(fmt.Errorf("%w: it says nothing: %w", ErrWorker, ctx.Err())) })
	defer stop()
	if err := l.greet(); err != nil {
		l.end(err)
		l.bury()
		return nil, l.reason()
	}
	go l.read()
	return l, nil
}

// socketPair is two ends of a Unix socket: the second is for a child.
func socketPair() (ours net.Conn, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(ends[0])
		syscall.CloseOnExec(ends[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("making a socket for the GPU worker: %w", err)
	}
	mine, theirs := os.NewFile(uintptr(ends[0]), "worker"), os.NewFile(uintptr(ends[1]), "daemon")
	defer mine.Close()
	if ours, err = net.FileConn(mine); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("making a socket for the GPU worker: %w", err), theirs.Close())
	}
	return ours, theirs, nil
}

func (l *life) greet() error {
	f, err := l.reader.Read()
	if err != nil {
		return err
	}
	if f.Kind != wire.KindHello {
		return fmt.Errorf("%w: it begins with kind %d", wire.ErrFrame, f.Kind)
	}
	return wire.DecodeJSON(f, &l.hello)
}

// read hands out answers until the process ends.
func (l *life) read() {
	for {
		f, err := l.reader.Read()
		if err == nil {
			err = l.answer(f)
		}
		if err != nil {
			l.end(err)
			l.bury()
			return
		}
	}
}

// answer completes the call that a frame is for. One that was given up is not
// there any more, and neither is its output. An error says that the frame is none.
func (l *life) answer(f wire.Frame) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.pending[f.ID]
	if c == nil {
		return nil
	}
	delete(l.pending, f.ID)
	if f.Kind == wire.KindFailure {
		failure, err := wire.DecodeFailure(f.Payload)
		c.done <- errors.Join(err, failureError(failure))
		return err
	}
	err := c.decode(f)
	c.done <- err
	return err
}

// decode takes what the frame brings.
func (c *call) decode(f wire.Frame) error {
	switch f.Kind {
	case wire.KindLoaded:
		return nil
	case wire.KindAnswer:
		return wire.DecodeAnswer(f.Payload, c.out)
	case wire.KindFound:
		return c.found.Decode(f.Payload)
	case wire.KindHello:
		if c.hello == nil {
			return errUnasked
		}
		return wire.DecodeJSON(f, c.hello)
	}
	return fmt.Errorf("%w: of kind %d, which only a daemon sends", wire.ErrFrame, f.Kind)
}

// end kills the process; the first reason counts.
func (l *life) end(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over == nil {
		l.over = why
	}
	_ = l.process.Process.Kill() // it may be gone already
	_ = l.socket.Close()
}

// bury waits for the process and fails the calls that wait for it.
func (l *life) bury() {
	status := l.process.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(l.over, io.EOF) || errors.Is(l.over, syscall.ECONNRESET) { // it went by itself
		l.over = fmt.Errorf("%w: it ended: %v%s", ErrWorker, status, l.said.suffix())
	}
	for id, c := range l.pending {
		c.done <- l.over
		delete(l.pending, id)
	}
	close(l.ended)
}

// reason is why the life is over; nil if it is not.
func (l *life) reason() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

// do sends a request and waits for its answer.
func (l *life) do(ctx context.Context, c call, frame func(dst []byte, id uint32) ([]byte, error)) error {
	c.done = make(chan error, 1)
	id, err := l.register(&c)
	if err != nil {
		return err
	}
	if err := l.send(ctx, id, frame); err != nil {
		l.forget(id)
		l.end(fmt.Errorf("%w: writing to it: %w", ErrWorker, err))
		return l.reason()
	}
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
		l.forget(id)
		if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		l.end(fmt.Errorf("%w: it hangs, and was killed: %w", ErrWorker, ctx.Err()))
		return l.reason()
	}
}

func (l *life) register(c *call) (uint32, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over != nil {
		return 0, l.over
	}
	l.last++
	l.pending[l.last] = c
	return l.last, nil
}

func (l *life) forget(id uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pending, id)
}

// send writes a frame before ctx's deadline: a worker that hangs reads nothing.
func (l *life) send(ctx context.Context, id uint32, frame func(dst []byte, id uint32) ([]byte, error)) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	data, err := frame(l.buffer, id)
	if err != nil {
		return err
	}
	l.buffer = data
	deadline, _ := ctx.Deadline() // none: the zero time, which is none
	if err := l.socket.SetWriteDeadline(deadline); err != nil {
		return err
	}
	_, err = l.socket.Write(data)
	return err
}
