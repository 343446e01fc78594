"""What both clients decide alike: how an answer is judged, and when a request is sent again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import msgspec

from sluice import errors, wire

MAX_ANSWER = 256 << 20  # bytes
MAX_WAIT = 30.0  # seconds between two tries
_FIRST_WAIT = 0.5
BROKEN_OFF = "the stream ended before the answer did"

_problem = msgspec.json.Decoder(wire.Problem)


@contextmanager
def translated() -> Iterator[None]:
    """Raise this package's errors in place of httpx's."""
    try:
        yield
    except httpx.TimeoutException as error:
        raise errors.DeadlineError(f"no answer in time ({type(error).__name__})") from error
    except httpx.HTTPError as error:
        raise errors.TransportError(f"no answer: {error or type(error).__name__}") from error


def collect(body: bytearray, part: bytes) -> None:
    """Add a part of an answer, within bounds."""
    body += part
    if len(body) > MAX_ANSWER:
        raise errors.AnswerError(f"the answer is larger than {MAX_ANSWER} bytes")


def check(response: httpx.Response, body: bytes) -> None:
    """Raise what an answer says, unless it is a success."""
    status = response.status_code
    if 200 <= status < 300:
        return
    try:
        problem = _problem.decode(body)
    except msgspec.MsgspecError:  # of something in between, perhaps: the status says it all
        problem = wire.Problem()
    raise errors.of_status(status)(
        status,
        problem.title or response.reason_phrase or f"HTTP status {status}",
        problem.detail,
        retry_after=_retry_after(response.headers.get("Retry-After", "")),
        request_id=response.headers.get("X-Request-Id", ""),
    )


def step(event: wire.AnswerEvent) -> wire.AnswerEvent:
    """Return a step of an answer, or raise the problem that ends it."""
    if (problem := event.problem) is not None:
        raise errors.of_status(problem.status)(problem.status, problem.title, problem.detail)
    return event


def _retry_after(text: str) -> float | None:
    return float(text) if text.isascii() and text.isdigit() else None


def pause(error: errors.SluiceError, tries: int) -> float | None:
    """Return the seconds to wait before a request is sent again; None: it is not.

    The daemon's Retry-After is the least of it; where that is longer than MAX_WAIT, the error is the caller's.
    """
    match error:
        case errors.OverloadedError() | errors.UnavailableError() if error.retry_after is not None:
            wait = error.retry_after
        case errors.OverloadedError() | errors.UnavailableError() | errors.IncompleteError() | errors.TransportError():
            wait = min(_FIRST_WAIT * 2**tries, MAX_WAIT)
        case _:
            return None
    if isinstance(error, errors.DeadlineError) or wait > MAX_WAIT:
        return None
    return wait * random.uniform(1, 1.25)  # so that those who were refused together do not come back together
