"""What goes wrong."""

from __future__ import annotations


class SluiceError(Exception):
    """Every error of this package."""


class TransportError(SluiceError):
    """No answer: the daemon is not there, or the connection broke."""


class DeadlineError(TransportError):
    """No answer in time."""


class AnswerError(SluiceError):
    """An answer that is not what the API describes, or larger than the client takes."""


class IncompleteError(SluiceError):
    """The results ended before the lines did, or a stream before its answer. Sending again what has none is harmless."""


class APIError(SluiceError):
    """An error answer (RFC 9457). Its text says what to do."""

    def __init__(
        self, status: int, title: str, detail: str = "", *, retry_after: float | None = None, request_id: str = ""
    ) -> None:
        super().__init__(f"{title}: {detail}" if detail else title)
        self.status = status
        self.title = title
        self.detail = detail
        self.retry_after = retry_after  # seconds, if the daemon said so
        self.request_id = request_id  # the daemon's log has more under it

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.status, self.title, self.detail, self.retry_after, self.request_id)


class AuthenticationError(APIError):
    """401: the token is missing or not valid."""


class ForbiddenError(APIError):
    """403: the role does not allow this."""


class NotFoundError(APIError):
    """404: it is not there, or may not be read."""


class ConflictError(APIError):
    """409: it is there with other settings, or a job is under way."""


class RequestError(APIError):
    """Any other 4xx: the request itself is at fault."""


class OverloadedError(APIError):
    """429: the daemon has too much to do; see retry_after."""


class ServerError(APIError):
    """5xx: the daemon is at fault."""


class UnavailableError(ServerError):
    """503: the daemon, or what it needs, is not there now; see retry_after."""


_BY_STATUS: dict[int, type[APIError]] = {
    401: AuthenticationError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    429: OverloadedError,
    503: UnavailableError,
}


def of_status(status: int) -> type[APIError]:
    """Return the class of an HTTP status, which is no success."""
    if status < 400:
        return APIError
    return _BY_STATUS.get(status, RequestError if status < 500 else ServerError)


def _rebuild(kind: type[APIError], status: int, title: str, detail: str, retry_after: float | None, request_id: str) -> APIError:
    return kind(status, title, detail, retry_after=retry_after, request_id=request_id)
