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
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reader, writer := io.Pipe()
	sent := make(chan sending, 1)
	go func() { sent <- send(writer, documents) }()

	results, err := c.exchange(ctx, collection, reader, onResult)
	_ = reader.CloseWithError(errStopped) // ends send, if it has not ended
	out := <-sent
	switch {
	case out.err != nil && !errors.Is(out.err, errStopped):
		return out.err
	case err != nil:
		return err
	case out.err != nil || results < out.documents:
		return fmt.Errorf("%w: %d of at least %d documents have one", ErrIncomplete, results, out.documents)
	default:
		return nil
	}
}

var errStopped = errors.New("the request has ended")

// sending says how far the documents went.
type sending struct {
	documents int
	err       error
}

func send(w *io.PipeWriter, documents iter.Seq2[Document, error]) (out sending) {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	for d, err := range documents {
		if err == nil {
			err = encoder.Encode(d)
			if errors.Is(err, io.ErrClosedPipe) { // by the transport, when the answer ended
				err = errStopped
			}
		}
		if err != nil {
			out.err = err
			break
		}
		out.documents++
	}
	_ = w.CloseWithError(out.err)
	return out
}

func (c *Client) exchange(ctx context.Context, collection string, body io.Reader, onResult func(WriteResult) error) (results int, err error) {
	request, err := c.request(ctx, http.MethodPost, collectionPath(collection, "documents"), body)
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
