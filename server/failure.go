package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/chunk"
	"sluice/client"
	"sluice/filter"
	"sluice/gpu"
	"sluice/index"
	"sluice/ingest"
	"sluice/model"
	"sluice/model/tokenizer"
	"sluice/retrieve"
	"sluice/server/audit"
	"sluice/server/identity"
	"sluice/store"
)

// failure is an error that the caller is told.
type failure struct {
	status int
	detail string
	retry  time.Duration // when a retry may succeed, if it is retryable; at least a second is told
}

func (f *failure) Error() string { return fmt.Sprintf("%d: %s", f.status, f.detail) }

func failf(status int, format string, args ...any) *failure {
	return &failure{status: status, detail: fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) error {
	return failf(fasthttp.StatusBadRequest, format, args...)
}

// problem is the failure on the wire.
func (f *failure) problem() *client.Problem {
	return &client.Problem{
		Type:   "about:blank",
		Title:  fasthttp.StatusMessage(f.status),
		Status: f.status,
		Detail: f.detail,
	}
}

// retryable reports whether the same request may succeed soon.
func (f *failure) retryable() bool {
	return f.status == fasthttp.StatusTooManyRequests || f.status == fasthttp.StatusServiceUnavailable
}

// failureOf decides what the caller is told of an error.
func failureOf(err error) *failure {
	var f *failure
	var long *gpu.TooLongError
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, retrieve.ErrBehind):
		return failf(fasthttp.StatusServiceUnavailable, "the write is stored, but searches do not see it yet; send it again later")
	case errors.Is(err, retrieve.ErrLagging):
		return failf(fasthttp.StatusServiceUnavailable, "this daemon has not caught up with the store yet; send it again")
	case errors.Is(err, store.ErrUnavailable):
		return failf(fasthttp.StatusServiceUnavailable, "the store cannot be reached, so nothing is shown or changed for sure; send it again later")
	case errors.Is(err, audit.ErrUnwritten):
		return failf(fasthttp.StatusServiceUnavailable, "the audit log cannot be written, so this is not done; tell the administrator of the daemon")
	case errors.Is(err, chunk.ErrPlanner):
		return failf(fasthttp.StatusServiceUnavailable, "the chat model that plans chunks (setting planner) gave no plan, so nothing was done; send it again later, or tell the administrator of the daemon")
	case errors.Is(err, identity.ErrUnauthenticated):
		return failf(fasthttp.StatusUnauthorized, "send a valid token or API key: Authorization: Bearer …")
	case errors.Is(err, store.ErrNotFound):
		return failf(fasthttp.StatusNotFound, "there is no such collection or document, or you may not read it")
	case errors.Is(err, filter.ErrPrincipal):
		return failf(fasthttp.StatusForbidden, "your identity's attributes are not what the policies declare; tell the administrator of the daemon")
	case errors.Is(err, store.ErrInvalid):
		return failf(fasthttp.StatusBadRequest, "%s", shortened(strings.TrimPrefix(err.Error(), store.ErrInvalid.Error()+": ")))
	case errors.Is(err, store.ErrSettingsDiffer):
		return failf(fasthttp.StatusConflict, "%s; settings are fixed at creation", store.ErrSettingsDiffer)
	case errors.Is(err, ingest.ErrBusy):
		return failf(fasthttp.StatusConflict, "%s", shortened(err.Error()))
	case errors.Is(err, store.ErrTooManyRows):
		return failf(fasthttp.StatusConflict, "%s", store.ErrTooManyRows)
	case errors.As(err, &long):
		return failf(fasthttp.StatusRequestEntityTooLarge, "inputs: %s; shorten it, or send truncate: true", long)
	case errors.Is(err, tokenizer.ErrUnknownID), errors.Is(err, model.ErrUnknownPrompt):
		return failf(fasthttp.StatusBadRequest, "%s", shortened(err.Error()))
	case errors.Is(err, gpu.ErrOverloaded):
		return overloaded(err)
	case errors.Is(err, gpu.ErrDevice), errors.Is(err, gpu.ErrClosed):
		return failf(fasthttp.StatusServiceUnavailable, "a part of the daemon is restarting; send it again later")
	case errors.Is(err, index.ErrUnavailable):
		return failf(fasthttp.StatusServiceUnavailable, "a server that holds the index cannot be reached; send it again later")
	case errors.Is(err, context.DeadlineExceeded):
		return failf(fasthttp.StatusGatewayTimeout, "the deadline passed; ask for less, send it again when the daemon has less to do, or raise limits.request_timeout")
	case errors.Is(err, context.Canceled), errors.Is(err, retrieve.ErrStopped):
		return failf(fasthttp.StatusServiceUnavailable, "the daemon is shutting down; send it again later")
	case errors.Is(err, syscall.ENOSPC):
		return failf(fasthttp.StatusInsufficientStorage, "the daemon's disk is full; nothing was changed")
	default:
		return failf(fasthttp.StatusInternalServerError, "this is the daemon's fault; its log has more under the request id")
	}
}

func overloaded(err error) *failure {
	f := failf(fasthttp.StatusTooManyRequests, "the daemon has too much to do; send it again later")
	if queue := new(gpu.OverloadedError); errors.As(err, &queue) {
		f.retry = queue.Drain
	}
	return f
}

// retryAfter is the value of the header, in whole seconds.
func (f *failure) retryAfter() string {
	return strconv.Itoa(max(1, int(math.Ceil(f.retry.Seconds()))))
}

const maxDetail = 500

func shortened(text string) string {
	if len(text) <= maxDetail {
		return text
	}
	return text[:maxDetail] + "…"
}
