package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	maxResponse  = 256 << 20
	maxProblem   = 64 << 10
	maxWait      = 10 * time.Second // between two tries
	firstWait    = 500 * time.Millisecond
	retries      = 4
	idlePerHost  = 256
	jsonType     = "application/json"
	ndjsonType   = "application/x-ndjson"
	demoHeader   = "X-Sluice-Principal"
	defaultLimit = 1000 // documents of a page
)

// Client speaks to one daemon. It is safe for concurrent use. An answer that is
// an error is returned as a *Problem. A request answered with 429 or 503 is
// sent again, a few times, after the time that the daemon asks for.
type Client struct {
	base    string
	header  http.Header
	http    *http.Client
	retries int
}

// Option changes a Client.
type Option func(*Client)

// WithToken sends a JSON Web Token.
func WithToken(token string) Option {
	return func(c *Client) { c.header.Set("Authorization", "Bearer "+token) }
}

// WithAPIKey sends an API key.
func WithAPIKey(key string) Option { return WithToken(key) }

// WithDemoPrincipal names a principal of a daemon in demo mode.
func WithDemoPrincipal(name string) Option {
	return func(c *Client) { c.header.Set(demoHeader, name) }
}

// WithRetries sets how often a request is sent again; 0 is never.
func WithRetries(n int) Option { return func(c *Client) { c.retries = n } }

// New returns a client of the daemon at the URL, for example "http://127.0.0.1:8080".
func New(baseURL string, options ...Option) (*Client, error) {
	u, err := url.Parse(baseURL)
	if err != nil { // whose words repeat the URL, and a password in it
		return nil, errors.New("the daemon's address is not a URL such as http://127.0.0.1:8080")
	}
	if u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.RawQuery != "" {
		return nil, fmt.Errorf("%q is not the URL of a daemon, such as http://127.0.0.1:8080", u.Redacted())
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost, transport.MaxIdleConns = idlePerHost, 0
	c := &Client{
		base:    strings.TrimSuffix(u.String(), "/"),
		header:  http.Header{},
		http:    &http.Client{Transport: transport, CheckRedirect: noRedirect},
		retries: retries,
	}
	for _, o := range options {
		o(c)
	}
	return c, nil
}

// noRedirect: the daemon sends none, and a token goes to nobody else.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// CloseIdle closes the connections that no request uses.
func (c *Client) CloseIdle() { c.http.CloseIdleConnections() }

// path joins literal and variable segments; each is escaped.
func path(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}

func collectionPath(collection string, more ...string) string {
	return path(append([]string{"v1", "collections", collection}, more...)...)
}

// call sends a JSON body (nil: none) and reads a JSON answer (nil: none).
func (c *Client) call(ctx context.Context, method, path string, body, into any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return fmt.Errorf("encoding the request: %w", err)
		}
	}
	for try := 0; ; try++ {
		err := c.try(ctx, method, path, text, into)
		wait, again := retry(err, try)
		if !again || try >= c.retries {
			return err
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

func (c *Client) try(ctx context.Context, method, path string, body []byte, into any) error {
	request, err := c.request(ctx, method, path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if body != nil {
		request.Header.Set("Content-Type", jsonType)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		return problemOf(response)
	}
	return read(response.Body, into)
}

func (c *Client) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	request.Header = c.header.Clone()
	return request, nil
}

// read decodes an answer. Fields that this client does not know are newer than it is.
func read(body io.Reader, into any) error {
	text, err := io.ReadAll(io.LimitReader(body, maxResponse+1))
	switch {
	case err != nil:
		return fmt.Errorf("reading the answer: %w", err)
	case len(text) > maxResponse:
		return fmt.Errorf("the answer is larger than %d bytes", maxResponse)
	}
	switch into := into.(type) {
	case nil:
		return nil
	case *[]byte:
		*into = text
		return nil
	default:
		if err := json.Unmarshal(text, into); err != nil {
			return fmt.Errorf("decoding the answer: %w", err)
		}
		return nil
	}
}

// problemOf reads an error answer, in this API's shape or in that of one of the
// others that the daemon speaks.
func problemOf(response *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(response.Body, maxProblem))
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	var p Problem
	if json.Unmarshal(text, &p) != nil || p.Status == 0 {
		p = Problem{Type: "about:blank", Title: http.StatusText(response.StatusCode), Detail: foreignDetail(text)}
	}
	p.Status = response.StatusCode
	p.RetryAfter = retryAfter(response.Header)
	return &p
}

// foreignDetail is what an error in the shape of OpenAI, text-embeddings-inference,
// Jina or Cohere says; of any other, nothing: the status says it all.
func foreignDetail(text []byte) string {
	var openAI EmbeddingError
	var inference InferenceError
	var jina JinaError
	var cohere CohereError
	for _, shape := range []any{&openAI, &inference, &jina, &cohere} {
		_ = json.Unmarshal(text, shape)
	}
	return cmp.Or(openAI.Error.Message, inference.Error, jina.Detail, cohere.Message)
}

func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 || seconds > int(time.Hour/time.Second) {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// retry decides whether a request is sent again, and after what time.
func retry(err error, try int) (time.Duration, bool) {
	var p *Problem
	if !errors.As(err, &p) || (p.Status != http.StatusTooManyRequests && p.Status != http.StatusServiceUnavailable) {
		return 0, false
	}
	wait := p.RetryAfter
	if wait == 0 {
		wait = firstWait << try
	}
	return min(wait, maxWait), true
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
