package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

const (
	connectTimeout = 5 * time.Second  // an unreachable hub is noticed this fast
	answerTimeout  = 10 * time.Second // until the headers of an answer
	stallTimeout   = 30 * time.Second // without a byte of the body
	attempts       = 4                // each continues where the last one stopped
	partSuffix     = ".part"          // of a file whose checksum is not known yet
)

// errNoFile means that no part of the file came: the hub is out of reach, or
// says no. Another attempt at once would change nothing.
var errNoFile = errors.New("no answer with the file")

func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: connectTimeout}).DialContext,
		TLSHandshakeTimeout:   connectTimeout,
		ResponseHeaderTimeout: answerTimeout,
		IdleConnTimeout:       stallTimeout,
		ForceAttemptHTTP2:     true,
	}}
}

func fetchHub(ctx context.Context, model Model, staging string, opts Options) error {
	progress := Progress{Model: model.Name, Source: opts.URL, Total: model.size()}
	for _, f := range model.Files {
		progress.File = f.Path
		report := func(n int64) {
			progress.Done += n
			opts.Progress(progress)
		}
		url := fmt.Sprintf("%s/%s/resolve/%s/%s", opts.URL, model.Repo, model.revision(), f.Path)
		if err := download(ctx, opts.Client, url, staging, f, report); err != nil {
			return fmt.Errorf("from %s: %w", url, err)
		}
	}
	return nil
}

// download brings one file to staging, unless it is there already. The bytes
// collect in a .part file until their checksum is right.
func download(ctx context.Context, client *http.Client, url, staging string, f File, report func(int64)) error {
	if verifyFile(staging, f) == nil {
		report(f.Size)
		return nil
	}
	part := filepath.Join(staging, f.Path+partSuffix)
	if err := os.MkdirAll(filepath.Dir(part), 0o755); err != nil {
		return err
	}
	if err := downloadPart(ctx, client, url, part, f.Size, report); err != nil {
		return err
	}
	return settle(staging, f)
}

// settle gives a part file its name if it is the pinned file, and removes it
// if it is not.
func settle(staging string, f File) error {
	path := filepath.Join(staging, f.Path)
	part := f
	part.Path += partSuffix
	if err := verifyFile(staging, part); err != nil {
		return errors.Join(err, os.Remove(path+partSuffix))
	}
	return os.Rename(path+partSuffix, path)
}

func downloadPart(ctx context.Context, client *http.Client, url, part string, size int64, report func(int64)) error {
	file, err := os.OpenFile(part, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	w := &countingWriter{file: file, report: report}
	if err := w.resume(size); err != nil {
		return err
	}
	for range attempts {
		if err = w.attempt(ctx, client, url, size); err == nil || errors.Is(err, errNoFile) {
			break
		}
	}
	return errors.Join(err, file.Sync())
}

// countingWriter appends to a part file and reports what it holds.
type countingWriter struct {
	file   *os.File
	have   int64
	report func(int64)
}

// resume counts what an earlier pull left; more than size is of no use.
func (w *countingWriter) resume(size int64) error {
	info, err := w.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() > size {
		return w.restart()
	}
	w.have = info.Size()
	w.report(w.have)
	_, err = w.file.Seek(w.have, io.SeekStart)
	return err
}

func (w *countingWriter) restart() error {
	w.report(-w.have)
	w.have = 0
	if err := w.file.Truncate(0); err != nil {
		return err
	}
	_, err := w.file.Seek(0, io.SeekStart)
	return err
}

func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.file.Write(p)
	w.have += int64(n)
	w.report(int64(n))
	return n, err
}

// attempt asks for what is missing and reads at most size bytes in all.
func (w *countingWriter) attempt(ctx context.Context, client *http.Client, url string, size int64) error {
	if w.have == size {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	resp, err := get(ctx, client, url, w.have)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK && w.have > 0 { // the server ignored the range
		if err := w.restart(); err != nil {
			return err
		}
	}
	stall := time.AfterFunc(stallTimeout, func() { cancel(fmt.Errorf("no data for %s", stallTimeout)) })
	defer stall.Stop()
	body := &keepAlive{r: resp.Body, alive: func() { stall.Reset(stallTimeout) }}
	if _, err := io.Copy(w, io.LimitReader(body, size-w.have)); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	if w.have < size {
		return fmt.Errorf("ended after %d of %d bytes: %w", w.have, size, io.ErrUnexpectedEOF)
	}
	return nil
}

type keepAlive struct {
	r     io.Reader
	alive func()
}

func (k *keepAlive) Read(p []byte) (int, error) {
	k.alive()
	return k.r.Read(p)
}

// get requests url from offset on; the answer is 200 (whole) or a fitting 206.
func get(ctx context.Context, client *http.Client, url string, offset int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if offset > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoFile, err)
	}
	var start int64
	_, _ = fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes %d-", &start)
	switch {
	case resp.StatusCode == http.StatusOK:
	case resp.StatusCode == http.StatusPartialContent && start == offset:
	default:
		resp.Body.Close()
		return nil, fmt.Errorf("%w: HTTP %s", errNoFile, resp.Status)
	}
	return resp, nil
}
