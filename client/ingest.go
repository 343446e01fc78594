package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
)

// ErrIncomplete is wrapped when the daemon's results end before the lines do.
// What has no result may or may not be written; sending it again is harmless.
var ErrIncomplete = errors.New("the results ended early")

// Ingest writes documents in one streamed request and hands every result to
// onResult, in the order of the documents, as it arrives. A document that fails
// is a result, not an error. Ingest does not retry: documents are an iterator.
// An error of the iterator or of onResult ends it.
func (c *Client) Ingest(ctx context.Context, collection string, documents iter.Seq2[Document, error], onResult func(WriteResult) error) error {
	return c.stream(ctx, collectionPath(collection, "documents"), func(w io.Writer) (int, error) { return encode(w, documents) }, onResult)
}

// stream sends the lines that write writes while it reads their results.
func (c *Client) stream(ctx context.Context, path string, write func(io.Writer) (lines int, err error), onResult func(WriteResult) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reader, writer := io.Pipe()
	sent := make(chan sending, 1)
	go func() { sent <- send(writer, write) }()

	results, err := c.exchange(ctx, path, reader, onResult)
	_ = reader.CloseWithError(errStopped) // ends send, if it has not ended
	out := <-sent
	switch {
	case out.err != nil && !errors.Is(out.err, errStopped):
		return out.err
	case err != nil:
		return err
	case out.err != nil || results < out.lines:
		return fmt.Errorf("%w: %d of at least %d lines have one", ErrIncomplete, results, out.lines)
	default:
		return nil
	}
}

var errStopped = errors.New("the request has ended")

// sending says how far the lines went.
type sending struct {
	lines int
	err   error
}

func send(w *io.PipeWriter, write func(io.Writer) (int, error)) (out sending) {
	out.lines, out.err = write(w)
	if errors.Is(out.err, io.ErrClosedPipe) { // by the transport, when the answer ended
		out.err = errStopped
	}
	_ = w.CloseWithError(out.err)
	return out
}

func encode(w io.Writer, documents iter.Seq2[Document, error]) (lines int, err error) {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	for d, err := range documents {
		if err == nil {
			err = encoder.Encode(d)
		}
		if err != nil {
			return lines, err
		}
		lines++
	}
	return lines, nil
}

func (c *Client) exchange(ctx context.Context, path string, body io.Reader, onResult func(WriteResult) error) (results int, err error) {
	request, err := c.request(ctx, http.MethodPost, path, body)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", ndjsonType)
	response, err := c.http.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return 0, problemOf(response)
	}
	for decoder := json.NewDecoder(response.Body); ; results++ {
		var r WriteResult
		switch err := decoder.Decode(&r); {
		case errors.Is(err, io.EOF):
			return results, nil
		case err != nil:
			return results, fmt.Errorf("%w: reading them: %w", ErrIncomplete, err)
		}
		if err := onResult(r); err != nil {
			return results, err
		}
	}
}
