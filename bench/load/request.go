package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/url"

	"github.com/valyala/fasthttp"
)

// Request is an HTTP request as it goes over the wire: made once, sent often.
type Request []byte

// Post is a request with a JSON body. An empty token is none.
func Post(target *url.URL, token string, body []byte) (Request, error) {
	var r fasthttp.Request
	r.Header.SetMethod(fasthttp.MethodPost)
	r.Header.SetContentType("application/json")
	r.SetRequestURI(target.String())
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.SetBodyRaw(body)
	var wire bytes.Buffer
	buffered := bufio.NewWriter(&wire)
	if err := errors.Join(r.Write(buffered), buffered.Flush()); err != nil {
		return nil, fmt.Errorf("making a request to %s: %w", target, err)
	}
	return wire.Bytes(), nil
}
