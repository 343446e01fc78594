package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"hash/maphash"
	"io"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/semaphore"

	"sluice/client"
	"sluice/server/identity"
)

// maxUnreadResults bounds the results that wait for a client which sends its
// whole body before it reads: some twenty thousand lines.
const maxUnreadResults = 4 << 20

// proveEvery is how long a stream's identity is taken to be what it was.
const proveEvery = time.Second

// ingestion is one NDJSON body of documents, or of access rows, under way, and
// at the same time the stream of its results: one line each, in the order of
// the body. The pump reads lines, workers apply them, the reporter puts results
// in order. Lines with the same key go to the same worker, so they are applied
// in order.
//
// fasthttp reads the results while the body is still arriving, and closes the
// ingestion before it lets go of the connection.
type ingestion struct {
	q          *request
	collection string
	read       func(line []byte) (written, error)
	apply      func(context.Context, written) (client.WriteResult, error)
	ctx        context.Context
	cancel     context.CancelFunc
	lines      *lines
	proven     proof
	ahead      time.Duration       // by which it has read what its tenant may write
	over       bool                // the last line was refused with all after it
	held       *semaphore.Weighted // bytes of lines in the workers: no more than a largest line has
	work       []chan job
	order      chan job
	results    *pipe
	start      sync.Once
	done       chan struct{}
}

// job is one line's document and the place of its result.
type job struct {
	line     int
	bytes    int // of the budget
	document written
	result   chan client.WriteResult // holds one
}

// ingest streams documents.
func (s *Server) ingest(q *request, collection string) error {
	return s.stream(q, &ingestion{
		collection: collection,
		read:       readDocumentLine,
		apply:      func(ctx context.Context, d written) (client.WriteResult, error) { return q.write(ctx, collection, d) },
	})
}

func readDocumentLine(line []byte) (d written, err error) {
	err = decode(line, &d)
	return d, err
}

func (s *Server) stream(q *request, in *ingestion) error {
	if _, err := s.backend.Collection(q.ctx, q.principal(), in.collection); err != nil {
		return err
	}
	in.q = q
	in.lines = newLines(q.body(), int(s.limits.BodyBytes), s.budget)
	in.held = semaphore.NewWeighted(int64(s.limits.BodyBytes))
	in.work = make([]chan job, s.limits.BulkConcurrency)
	in.order = make(chan job, 2*s.limits.BulkConcurrency)
	in.results = newPipe(maxUnreadResults)
	in.done = make(chan struct{})
	in.ctx, in.cancel = context.WithCancel(s.base)
	q.streams = true
	q.http.SetContentType("application/x-ndjson")
	q.http.Response.ImmediateHeaderFlush = true
	q.http.Response.SetBodyStream(in, -1)
	return nil
}

// run ends when the body has ended and every line has its result.
func (in *ingestion) run() {
	defer close(in.done)
	defer in.results.closeWrite()
	var workers, reporter sync.WaitGroup
	for i := range in.work {
		in.work[i] = make(chan job, cap(in.order)) // so that the pump waits for the order alone
		workers.Go(func() { in.write(in.work[i]) })
	}
	reporter.Go(in.report)
	in.pump()
	if in.over {
		linger(in.q.http.Conn()) // else what is unread would cost the client the last results
	}
	for _, w := range in.work {
		close(w)
	}
	workers.Wait()
	close(in.order)
	reporter.Wait()
}

// pump reads lines until the body ends, breaks, or the daemon drains.
func (in *ingestion) pump() {
	stop := context.AfterFunc(in.q.s.serving, in.interrupt)
	defer stop()
	seed := maphash.MakeSeed()
	for {
		line, err := in.next()
		if errors.Is(err, io.EOF) {
			return
		}
		j := job{line: in.lines.count, result: make(chan client.WriteResult, 1)}
		if err == nil {
			j.bytes = len(line)
			j.document, err = in.accept(line)
		}
		_ = in.held.Acquire(context.Background(), int64(j.bytes)) // until the workers have done enough
		in.order <- j
		if err == nil {
			in.work[maphash.String(seed, j.document.Key)%uint64(len(in.work))] <- j
			continue
		}
		in.release(j)
		j.result <- failedResult(j.document.Key, lineFailure(err))
		if in.over || !isLineFault(err) {
			return
		}
	}
}

// accept reads a line of whoever may still write.
func (in *ingestion) accept(line []byte) (written, error) {
	if err := in.prove(time.Now()); err != nil {
		in.over = true
		return written{}, err
	}
	w, err := in.read(line)
	if err != nil {
		return w, err
	}
	return w, in.charge(len(line))
}

// proof is when, and by which configuration, an identity was last proven.
type proof struct {
	at time.Time
	by *identity.Authenticator
}

// prove proves the stream's identity again, once a second and after a reload:
// tokens expire and API keys are removed while a stream is open.
func (in *ingestion) prove(now time.Time) error {
	by := in.q.s.identities.Load()
	if by == in.proven.by && now.Sub(in.proven.at) < proveEvery {
		return nil
	}
	who, err := in.q.prove(by)
	if err == nil && who.Principal.Digest() != in.q.who.Principal.Digest() {
		err = failf(fasthttp.StatusUnauthorized, "your identity has changed; send the lines from this one on again")
	}
	in.proven = proof{now, by}
	return err
}

// charge counts a line's bytes against the tenant's limit. Who sends a stream is
// slowed down, and refused only where that would take longer than a client may:
// a sleeping stream holds the slot of a request.
func (in *ingestion) charge(bytes int) (err error) {
	in.ahead, err = in.q.tenant.writeLine(bytes, in.q.s.limits.ReadTimeout)
	if err != nil {
		in.q.s.metrics.rejected.Inc()
		in.over = true
	}
	return err
}

// rest waits until the tenant may write again, and holds no bytes meanwhile. A
// drain ends it, and a client that leaves ends the ingestion.
func (in *ingestion) rest() {
	if in.ahead <= 0 {
		return
	}
	ctx, cancel := context.WithCancel(in.ctx)
	defer cancel()
	defer context.AfterFunc(in.q.s.serving, cancel)()
	defer in.q.watch(in.cancel)()
	in.q.s.tenants.pause(ctx, in.ahead)
	in.ahead = 0
}

// next reads a line, unless the ingestion is to stop. The order matters: a stop
// after the check finds the deadline that it has to cut short.
func (in *ingestion) next() ([]byte, error) {
	in.rest()
	_ = in.q.http.SetReadDeadline(time.Now().Add(in.q.s.limits.ReadTimeout))
	if err := in.stopped(); err != nil {
		in.lines.count++ // of the line that stays unread: its result says to send it again
		return nil, err
	}
	line, err := in.lines.next()
	if err != nil {
		err = cmp.Or(in.stopped(), err)
	}
	return line, err
}

var errLeft = errors.New("the client has closed its side of the connection")

// stopped is a drain, or a client that has gone.
func (in *ingestion) stopped() error {
	switch {
	case in.q.s.serving.Err() != nil:
		return context.Canceled
	case in.ctx.Err() != nil:
		return errLeft
	}
	return nil
}

// interrupt wakes the pump from waiting for the client.
func (in *ingestion) interrupt() { _ = in.q.http.SetReadDeadline(time.Unix(1, 0)) }

// isLineFault reports an error that is one line's alone.
func isLineFault(err error) bool {
	var f *failure
	return errors.As(err, &f) || errors.Is(err, errLineTooLong)
}

func lineFailure(err error) error {
	switch {
	case errors.Is(err, errLineTooLong):
		return failf(fasthttp.StatusRequestEntityTooLarge, "the line is larger than limits.body_bytes")
	case errors.Is(err, context.Canceled):
		return failf(fasthttp.StatusServiceUnavailable, "the daemon is shutting down; send the lines from this one on again")
	case errors.Is(err, errLeft):
		return badRequest("your side of the connection was closed while the stream waited for your tenant's limit; send the lines from this one on again")
	case isLineFault(err), errors.Is(err, identity.ErrUnauthenticated):
		return err
	default:
		return readFailure(err)
	}
}

func (in *ingestion) write(jobs <-chan job) {
	for j := range jobs {
		result, err := in.writeOne(j.document)
		if err != nil {
			result = failedResult(j.document.Key, err)
		}
		in.release(j)
		j.result <- result
	}
}

func (in *ingestion) release(j job) {
	in.held.Release(int64(j.bytes))
	in.q.s.budget.Give(j.bytes)
}

// writeOne gives every document its own deadline, and survives its panic.
func (in *ingestion) writeOne(d written) (result client.WriteResult, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = in.q.panicked(r)
		}
	}()
	ctx, cancel := context.WithTimeout(in.ctx, in.q.s.limits.RequestTimeout)
	defer cancel()
	result, err = in.apply(ctx, d)
	if err != nil && failureOf(err).status >= 500 {
		in.q.s.log.Error("a line of a bulk request failed", "request", in.q.id, "error", err)
	}
	return result, err
}

func (in *ingestion) report() {
	for j := range in.order {
		result := <-j.result
		result.Line = j.line
		text, err := json.Marshal(result)
		if err != nil { // strings and numbers only
			panic(err)
		}
		in.results.write(append(text, '\n'))
	}
}

// Read gives fasthttp the next results; the client has until the deadline to
// take them. The first call starts the work: until then the request's body is
// still fasthttp's.
func (in *ingestion) Read(p []byte) (int, error) {
	in.start.Do(func() { go in.run() })
	n, err := in.results.Read(p)
	_ = in.q.http.SetWriteDeadline(time.Now().Add(in.q.s.limits.ReadTimeout))
	return n, err
}

// Close ends the ingestion, at the latest when the documents in the workers are
// done. When the client has gone, the documents under way are cancelled.
func (in *ingestion) Close() error {
	in.cancel()
	in.start.Do(func() { close(in.done) }) // never started
	in.results.closeRead()
	select {
	case <-in.done:
	default:
		in.interrupt()
		<-in.done
	}
	in.q.finish()
	return nil
}
