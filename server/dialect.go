package server

import (
	"github.com/valyala/fasthttp"

	"sluice/client"
)

// dialect is the shape of a route's errors: what the API's own clients read.
type dialect int

const (
	own dialect = iota // RFC 9457
	openAIDialect
	teiDialect
	jinaDialect
	cohereDialect
)

// body is the failure in the dialect, with its content type.
func (d dialect) body(f *failure, requestID string) (contentType string, body any) {
	const plain = "application/json"
	switch d {
	case openAIDialect:
		return plain, openAIError(f)
	case teiDialect:
		return plain, client.InferenceError{Error: f.detail, ErrorType: inferenceErrorType(f.status)}
	case jinaDialect:
		return plain, client.JinaError{Detail: f.detail}
	case cohereDialect:
		return plain, client.CohereError{ID: requestID, Message: f.detail}
	}
	return "application/problem+json", f.problem()
}

// status is the failure's in the dialect.
func (d dialect) status(f *failure) int {
	if d == teiDialect && f.status == fasthttp.StatusBadRequest {
		return fasthttp.StatusUnprocessableEntity
	}
	if d == openAIDialect && f == errTooManyInputs {
		return fasthttp.StatusBadRequest
	}
	return f.status
}

// openAIError is a failure in the shape that OpenAI's clients read.
func openAIError(f *failure) client.EmbeddingError {
	kind, code := "invalid_request_error", (*string)(nil)
	switch {
	case f.status == fasthttp.StatusUnauthorized:
		code = new("invalid_api_key")
	case f.status == fasthttp.StatusNotFound:
		code = new("model_not_found")
	case f.status == fasthttp.StatusTooManyRequests:
		kind, code = "requests", new("rate_limit_exceeded")
	case f.status >= 500:
		kind = "server_error"
	}
	return client.EmbeddingError{Error: client.EmbeddingErrorDetail{Message: f.detail, Type: kind, Code: code}}
}

func inferenceErrorType(status int) string {
	switch {
	case status == fasthttp.StatusTooManyRequests:
		return "Overloaded"
	case status == fasthttp.StatusServiceUnavailable:
		return "Unhealthy"
	case status == fasthttp.StatusFailedDependency || status >= 500:
		return "Backend"
	}
	return "Validation"
}
