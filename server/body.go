package server

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/valyala/fasthttp"

	"sluice/client"
	"sluice/ingest"
)

// body is a request's body stream. fasthttp takes the end of the connection for
// the end of a body; here it is an error.
type body struct {
	stream io.Reader
	left   int // by Content-Length; negative: chunked
}

func (q *request) body() *body {
	b := &body{q.http.RequestBodyStream(), q.http.Request.Header.ContentLength()}
	if b.stream == nil {
		b.stream, b.left = bytes.NewReader(nil), 0
	}
	return b
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.stream.Read(p)
	if b.left >= 0 {
		b.left -= n
	}
	if err == io.EOF && b.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// charged charges the request with what it reads, after what is free.
type charged struct {
	io.Reader
	q    *request
	free int
}

func (c *charged) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	free := min(c.free, n)
	c.free -= free
	if n > free {
		if full := c.q.take(n - free); full != nil {
			return n, full
		}
	}
	return n, err
}

// limit is the size of the largest body that the route takes, and what says so.
func (q *request) limit() (bytes int, name string) {
	if most := q.route.largest; most > 0 && most < int(q.s.limits.BodyBytes) {
		return most, "what this call can need"
	}
	return int(q.s.limits.BodyBytes), "limits.body_bytes"
}

// readAll reads the whole body, or fails before it has read more than the limit.
func (q *request) readAll() ([]byte, error) {
	limit, name := q.limit()
	tooLarge := failf(fasthttp.StatusRequestEntityTooLarge, "the body is larger than %s, %d bytes", name, limit)
	b := q.body()
	if b.left > limit {
		return nil, tooLarge
	}
	in := &charged{Reader: b, q: q}
	if q.route.largest > 0 { // small bodies are part of a slot's own cost
		in.free = maxSmallBody
	}
	data, err := io.ReadAll(io.LimitReader(in, int64(limit)+1))
	if err != nil {
		return nil, readFailure(err)
	}
	if len(data) > limit {
		return nil, tooLarge
	}
	return data, nil
}

func readFailure(err error) error {
	if errors.Is(err, errNoRoom) {
		return errNoRoom
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return failf(fasthttp.StatusRequestTimeout, "the body did not arrive within limits.read_timeout")
	}
	return badRequest("the body ended early, or its framing is broken")
}

// mediaType returns the body's type without parameters. A compressed body is
// refused: its size could not be told in advance.
func (q *request) mediaType() (string, error) {
	header := &q.http.Request.Header
	if encoding := header.ContentEncoding(); len(encoding) > 0 && string(encoding) != "identity" {
		return "", failf(fasthttp.StatusUnsupportedMediaType, "content encodings are not supported; send the body as it is")
	}
	name, _, err := mime.ParseMediaType(string(header.ContentType()))
	if err != nil {
		return "", failf(fasthttp.StatusUnsupportedMediaType, "Content-Type is missing or malformed; send application/json")
	}
	return name, nil
}

// readJSON reads a JSON body into the value.
func (q *request) readJSON(into any) error {
	name, err := q.mediaType()
	if err != nil {
		return err
	}
	if name != "application/json" {
		return failf(fasthttp.StatusUnsupportedMediaType, "Content-Type must be application/json")
	}
	data, err := q.readAll()
	if err != nil {
		return err
	}
	if string(bytes.TrimSpace(data)) == "null" {
		return badRequest("the body is null; a JSON object is expected")
	}
	return decode(data, into)
}

// readWritten reads a JSON body that is to be stored, within its tenant's limit.
func (q *request) readWritten(into any) error {
	if err := q.readJSON(into); err != nil {
		return err
	}
	err := q.tenant.write(q.taken)
	if err != nil {
		q.s.metrics.rejected.Inc()
	}
	return err
}

// strict refuses unknown members. Duplicate members, names in another case,
// invalid UTF-8 and trailing data are refused by default, as RFC 7493 wants.
// Numbers in untyped places keep their digits.
var strict = json.JoinOptions(
	json.RejectUnknownMembers(true),
	json.WithUnmarshalers(json.JoinUnmarshalers(
		json.UnmarshalFromFunc(keepDigits),
		json.UnmarshalFromFunc(refuseNulls),
		json.UnmarshalFromFunc(atMost[client.Passage](ingest.MaxPassages, fmt.Errorf("more than %d passages", ingest.MaxPassages))),
		json.UnmarshalFromFunc(atMost[client.JinaDocument](maxInputs, errTooManyInputs)),
		json.UnmarshalFromFunc(boundInputs[client.Inputs]),
		json.UnmarshalFromFunc(boundInputs[client.Texts]),
		json.UnmarshalFromFunc(boundInputs[client.TokenIDs]),
		json.UnmarshalFromFunc(boundInputs[client.PredictInputs]),
	)),
)

func keepDigits(d *jsontext.Decoder, value *any) error {
	if d.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	digits, err := d.ReadValue()
	*value = stdjson.Number(digits)
	return err
}

// atMost reads a list and stops at one item too many: three bytes make a passage,
// which takes forty times that when it is decoded.
func atMost[T any](most int, tooMany error) func(*jsontext.Decoder, *[]T) error {
	return func(d *jsontext.Decoder, into *[]T) error {
		if d.PeekKind() != '[' {
			return errors.ErrUnsupported
		}
		if _, err := d.ReadToken(); err != nil {
			return err
		}
		for d.PeekKind() != ']' {
			if len(*into) == most {
				return tooMany
			}
			var item T
			if err := json.UnmarshalDecode(d, &item); err != nil {
				return err
			}
			*into = append(*into, item)
		}
		_, err := d.ReadToken()
		return err
	}
}

// boundInputs counts the items of a list before it is decoded, but for numbers:
// they are the tokens of one text.
func boundInputs[T any, P interface {
	*T
	json.Unmarshaler
}](d *jsontext.Decoder, into *T) error {
	value, err := d.ReadValue()
	if err != nil {
		return err
	}
	if err := checkItems(value); err != nil {
		return err
	}
	return P(into).UnmarshalJSON(value)
}

func checkItems(value jsontext.Value) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(value))
	if d.PeekKind() != '[' {
		return nil
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for n := 0; d.PeekKind() != ']'; {
		if d.PeekKind() != '0' {
			n++
		}
		if n > maxInputs {
			return errTooManyInputs
		}
		if err := d.SkipValue(); err != nil {
			return err
		}
	}
	return nil
}

// refuseNulls reads a list of strings, in which a null would become "".
func refuseNulls(d *jsontext.Decoder, into *[]string) error {
	if d.PeekKind() != '[' {
		return errors.ErrUnsupported
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	*into = []string{}
	for d.PeekKind() != ']' {
		if d.PeekKind() == 'n' {
			return errors.New("null is no string")
		}
		var s string
		if err := json.UnmarshalDecode(d, &s); err != nil {
			return err
		}
		*into = append(*into, s)
	}
	_, err := d.ReadToken()
	return err
}

// decode reads one JSON value. Errors name the place, not what stands there.
func decode(data []byte, into any) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return badRequest("the body is empty; a JSON object is expected")
	}
	err := json.Unmarshal(data, into, strict)
	if err == nil {
		return nil
	}
	var told *failure
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &told):
		return told
	case errors.As(err, &semantic) && errors.Is(err, json.ErrUnknownName):
		return badRequest("unknown field %q%s", shortened(semantic.JSONPointer.LastToken()), inside(semantic.JSONPointer.Parent()))
	case errors.As(err, &semantic):
		return badRequest("the value does not fit%s%s", inside(semantic.JSONPointer), reason(semantic.Err))
	case errors.As(err, &syntactic) && errors.Is(err, jsontext.ErrDuplicateName):
		return badRequest("field %q is there twice", shortened(syntactic.JSONPointer.LastToken()))
	case errors.As(err, &syntactic):
		return badRequest("malformed JSON at byte %d: %v", syntactic.ByteOffset, syntactic.Err)
	default:
		return badRequest("malformed JSON")
	}
}

func inside(pointer jsontext.Pointer) string {
	if pointer == "" {
		return ""
	}
	return " at " + shortened(string(pointer))
}

func reason(err error) string {
	if err == nil {
		return ""
	}
	return ": " + shortened(strings.TrimPrefix(err.Error(), "json: "))
}
