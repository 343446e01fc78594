"""The clients: the operations of sluice.calls, sent by httpx."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import itertools
import json
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

import httpx
import msgspec

from sluice import calls, wire
from sluice.calls import Batches, Call, Events
from sluice.errors import IncompleteError, SluiceError
from sluice.exchange import BROKEN_OFF, check, collect, pause, step, translated

T = TypeVar("T")
P = ParamSpec("P")
C = TypeVar("C", bound="_Settings")

_CONNECT_TIMEOUT = 5.0
_PAGE = 1000


class _Settings:
    """Who asks whom, and how patiently."""

    def __init__(self, url: str, token: str | None, demo_principal: str | None, timeout: float, retries: int) -> None:
        parsed = httpx.URL(url)
        if parsed.scheme not in ("http", "https") or not parsed.host or parsed.query or parsed.userinfo:
            raise ValueError(f"{url!r} is not the URL of a daemon, such as http://127.0.0.1:8080")
        self._url = url.rstrip("/")
        self._timeout = httpx.Timeout(timeout, connect=min(timeout, _CONNECT_TIMEOUT))
        self._retries = retries
        self._headers = _identity(token, demo_principal)

    def with_token(self: C, token: str) -> C:
        """Return a client of another principal that shares this one's connections."""
        other = copy.copy(self)
        other._headers = _identity(token, None)
        return other

    def with_impersonation(self: C, principal: wire.Principal) -> C:
        """Return an administrator's client that searches, lists and reads as another would; the audit log keeps both.

        Anything else is refused.
        """
        other = copy.copy(self)
        other._headers = self._headers | {"X-Sluice-Impersonate": json.dumps(msgspec.to_builtins(principal))}
        return other

    def _request(self, call: Call[Any]) -> dict[str, Any]:
        headers = self._headers | ({} if call.body is None else {"Content-Type": call.content_type})
        headers |= {} if call.accept is None else {"Accept": call.accept}
        return {
            "method": call.method,
            "url": self._url + call.path,
            "params": call.query or None,
            "content": call.body,
            "headers": headers,
        }

    def _pause(self, call: Call[Any], error: SluiceError, tries: int) -> float:
        """Return the seconds to wait, or raise the error."""
        wait = pause(error, tries) if call.resend and tries < self._retries else None
        if wait is None:
            raise error
        return wait

    def __repr__(self) -> str:  # the token is nobody's business
        return f"{type(self).__name__}({self._url!r})"


def _identity(token: str | None, demo_principal: str | None) -> dict[str, str]:
    for secret in (token, demo_principal):
        if secret is not None and not (secret.isascii() and secret.isprintable()):
            raise ValueError("a token is printable ASCII; is there a line end in it?")
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
    return headers | ({"X-Sluice-Principal": demo_principal} if demo_principal is not None else {})


def _no_cookies() -> CookieJar:
    """Return a jar that keeps nothing: clients of several principals share connections, and a proxy may set cookies."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=[]))


def _method(build: Callable[P, Call[T]]) -> Callable[Concatenate[Client, P], T]:
    @_named(build)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.send(build(*args, **kwargs))

    return method


def _async_method(build: Callable[P, Call[T]]) -> Callable[Concatenate[AsyncClient, P], Awaitable[T]]:
    @_named(build)
    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.send(build(*args, **kwargs))

    return method


def _named(build: Callable[..., Any]) -> Callable[[T], T]:
    """Give a method the name, the documentation and the parameters of its call, for help()."""
    signature = inspect.signature(build, eval_str=True)
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    (answer,) = signature.return_annotation.__args__

    def rename(method: T) -> T:
        functools.update_wrapper(method, build)  # type: ignore[arg-type]
        vars(method).pop("__wrapped__")
        method.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[itself, *signature.parameters.values()], return_annotation=answer
        )
        return method

    return rename


class Client(_Settings):
    """A client of one daemon, safe for many threads. Use it as a context manager, or close it.

    url: "http://127.0.0.1:8080". token: a JSON Web Token or an API key. timeout: seconds without a byte.
    retries: how often a request that was answered with 429 or 503, or not at all, is sent again, where
    that is harmless; 0 is never.
    """

    def __init__(
        self, url: str, *, token: str | None = None, demo_principal: str | None = None, timeout: float = 60.0, retries: int = 4
    ) -> None:
        super().__init__(url, token, demo_principal, timeout, retries)
        self._http = httpx.Client(timeout=self._timeout, cookies=_no_cookies())

    def send(self, call: Call[T]) -> T:
        """Send what sluice.calls made."""
        for tries in itertools.count():
            try:
                return call.read(self._exchange(call))
            except SluiceError as error:
                wait = self._pause(call, error, tries)
            time.sleep(wait)
        raise AssertionError("unreachable")

    def _exchange(self, call: Call[Any]) -> bytes:
        body = bytearray()
        with translated(), self._http.stream(**self._request(call)) as response:
            for part in response.iter_bytes():
                collect(body, part)
        check(response, bytes(body))
        return bytes(body)

    create_collection = _method(calls.create_collection)
    collection = _method(calls.collection)
    collections = _method(calls.collections)
    write = _method(calls.write)
    document = _method(calls.document)
    delete = _method(calls.delete)
    list_documents = _method(calls.list_documents)
    search = _method(calls.search)
    answer = _method(calls.answer)
    set_access = _method(calls.set_access)
    preview_access = _method(calls.preview_access)
    explain_access = _method(calls.explain_access)
    estimate_reindex = _method(calls.estimate_reindex)
    start_reindex = _method(calls.start_reindex)
    change_reindex = _method(calls.change_reindex)
    generations = _method(calls.generations)
    set_queries = _method(calls.set_queries)
    queries = _method(calls.queries)
    identity = _method(calls.identity)
    demo = _method(calls.demo)
    policies = _method(calls.policies)
    health = _method(calls.health)
    ready = _method(calls.ready)
    metrics = _method(calls.metrics)
    openapi = _method(calls.openapi)
    snapshot = _method(calls.snapshot)
    cache_size = _method(calls.cache_size)
    prune_cache = _method(calls.prune_cache)

    def documents(self, collection: str) -> Iterator[wire.DocumentInfo]:
        """Yield all documents that the principal may read, page after page."""
        after = ""
        while True:
            page = self.list_documents(collection, after=after, limit=_PAGE)
            yield from page.documents
            if not (after := page.next):
                return

    def ingest(self, collection: str, documents: Iterable[wire.Document]) -> Iterator[wire.WriteResult]:
        """Write any number of documents and yield each one's result, in their order.

        They are taken from the iterable as they are sent. A document that fails is a result, not an error.
        """
        return self._stream(calls.of(collection, "documents"), documents)

    def import_access(self, collection: str, lines: Iterable[wire.AccessLine]) -> Iterator[wire.WriteResult]:
        """Change the access rows of any number of documents; like ingest."""
        return self._stream(calls.of(collection, "access", "import"), lines)

    def _stream(self, to: str, messages: Iterable[wire.AccessLine]) -> Iterator[wire.WriteResult]:
        batches = Batches(to)
        for message in messages:
            for call in batches.add(message):
                yield from self.send(call)
        for call in batches.rest():
            yield from self.send(call)

    def watch_reindex(self, collection: str) -> Iterator[wire.Generations]:
        """Yield each state of a running job, until none runs."""
        return self._events(calls.watch_reindex(collection), _patient(self._timeout))

    def stream_answer(
        self,
        collection: str,
        question: str,
        *,
        history: Sequence[wire.Turn] | None = None,
        scope: wire.Scope | None = None,
    ) -> Iterator[wire.AnswerEvent]:
        """Yield an answer step by step: the queries, each sentence that stands, the answer.

        It is asked for again only as long as it has not begun. One that breaks off is a TransportError or an IncompleteError.
        """
        event = wire.AnswerEvent()
        for event in self._events(calls.stream_answer(collection, question, history=history, scope=scope), self._timeout):
            yield step(event)
        if event.answer is None:
            raise IncompleteError(BROKEN_OFF)

    def _events(self, call: Call[T], timeout: httpx.Timeout) -> Iterator[T]:
        """Yield the events of a stream, which is asked for again only as long as it has not begun."""
        events, begun = Events(call.read), False
        for tries in itertools.count():
            try:
                with translated(), self._http.stream(**self._request(call), timeout=timeout) as response:
                    if response.is_error:
                        check(response, response.read())
                    begun = True
                    for part in response.iter_bytes():
                        yield from events.feed(part)
                return
            except SluiceError as error:
                if begun:
                    raise
                wait = self._pause(call, error, tries)
            time.sleep(wait)

    def close(self) -> None:
        """Close the connections, also those of clients made by with_token."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class AsyncClient(_Settings):
    """The same for asyncio. Its connections belong to the event loop that it is first used in."""

    def __init__(
        self, url: str, *, token: str | None = None, demo_principal: str | None = None, timeout: float = 60.0, retries: int = 4
    ) -> None:
        super().__init__(url, token, demo_principal, timeout, retries)
        self._http = httpx.AsyncClient(timeout=self._timeout, cookies=_no_cookies())

    async def send(self, call: Call[T]) -> T:
        """Send what sluice.calls made."""
        for tries in itertools.count():
            try:
                return call.read(await self._exchange(call))
            except SluiceError as error:
                wait = self._pause(call, error, tries)
            await asyncio.sleep(wait)
        raise AssertionError("unreachable")

    async def _exchange(self, call: Call[Any]) -> bytes:
        body = bytearray()
        with translated():
            async with self._http.stream(**self._request(call)) as response:
                async for part in response.aiter_bytes():
                    collect(body, part)
        check(response, bytes(body))
        return bytes(body)

    create_collection = _async_method(calls.create_collection)
    collection = _async_method(calls.collection)
    collections = _async_method(calls.collections)
    write = _async_method(calls.write)
    document = _async_method(calls.document)
    delete = _async_method(calls.delete)
    list_documents = _async_method(calls.list_documents)
    search = _async_method(calls.search)
    answer = _async_method(calls.answer)
    set_access = _async_method(calls.set_access)
    preview_access = _async_method(calls.preview_access)
    explain_access = _async_method(calls.explain_access)
    estimate_reindex = _async_method(calls.estimate_reindex)
    start_reindex = _async_method(calls.start_reindex)
    change_reindex = _async_method(calls.change_reindex)
    generations = _async_method(calls.generations)
    set_queries = _async_method(calls.set_queries)
    queries = _async_method(calls.queries)
    identity = _async_method(calls.identity)
    demo = _async_method(calls.demo)
    policies = _async_method(calls.policies)
    health = _async_method(calls.health)
    ready = _async_method(calls.ready)
    metrics = _async_method(calls.metrics)
    openapi = _async_method(calls.openapi)
    snapshot = _async_method(calls.snapshot)
    cache_size = _async_method(calls.cache_size)
    prune_cache = _async_method(calls.prune_cache)

    async def documents(self, collection: str) -> AsyncIterator[wire.DocumentInfo]:
        """Yield all documents that the principal may read, page after page."""
        after = ""
        while True:
            page = await self.list_documents(collection, after=after, limit=_PAGE)
            for document in page.documents:
                yield document
            if not (after := page.next):
                return

    def ingest(
        self, collection: str, documents: Iterable[wire.Document] | AsyncIterable[wire.Document]
    ) -> AsyncIterator[wire.WriteResult]:
        """Write any number of documents and yield each one's result, in their order.

        They are taken from the iterable as they are sent. A document that fails is a result, not an error.
        """
        return self._stream(calls.of(collection, "documents"), documents)

    def import_access(
        self, collection: str, lines: Iterable[wire.AccessLine] | AsyncIterable[wire.AccessLine]
    ) -> AsyncIterator[wire.WriteResult]:
        """Change the access rows of any number of documents; like ingest."""
        return self._stream(calls.of(collection, "access", "import"), lines)

    async def _stream(
        self, to: str, messages: Iterable[wire.AccessLine] | AsyncIterable[wire.AccessLine]
    ) -> AsyncIterator[wire.WriteResult]:
        batches = Batches(to)
        async for message in _each(messages):
            for call in batches.add(message):
                for result in await self.send(call):
                    yield result
        for call in batches.rest():
            for result in await self.send(call):
                yield result

    def watch_reindex(self, collection: str) -> AsyncIterator[wire.Generations]:
        """Yield each state of a running job, until none runs."""
        return self._events(calls.watch_reindex(collection), _patient(self._timeout))

    async def stream_answer(
        self,
        collection: str,
        question: str,
        *,
        history: Sequence[wire.Turn] | None = None,
        scope: wire.Scope | None = None,
    ) -> AsyncIterator[wire.AnswerEvent]:
        """Yield an answer step by step: the queries, each sentence that stands, the answer.

        It is asked for again only as long as it has not begun. One that breaks off is a TransportError or an IncompleteError.
        """
        event = wire.AnswerEvent()
        async for event in self._events(calls.stream_answer(collection, question, history=history, scope=scope), self._timeout):
            yield step(event)
        if event.answer is None:
            raise IncompleteError(BROKEN_OFF)

    async def _events(self, call: Call[T], timeout: httpx.Timeout) -> AsyncIterator[T]:
        """Yield the events of a stream, which is asked for again only as long as it has not begun."""
        events, begun = Events(call.read), False
        for tries in itertools.count():
            try:
                with translated():
                    async with self._http.stream(**self._request(call), timeout=timeout) as response:
                        if response.is_error:
                            check(response, await response.aread())
                        begun = True
                        async for part in response.aiter_bytes():
                            for event in events.feed(part):
                                yield event
                return
            except SluiceError as error:
                if begun:
                    raise
                wait = self._pause(call, error, tries)
            await asyncio.sleep(wait)

    async def aclose(self) -> None:
        """Close the connections, also those of clients made by with_token."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()


async def _each(messages: Iterable[T] | AsyncIterable[T]) -> AsyncIterator[T]:
    if isinstance(messages, AsyncIterable):
        async for message in messages:
            yield message
        return
    for message in messages:
        yield message


def _patient(timeout: httpx.Timeout) -> httpx.Timeout:
    """Return the timeout of a stream that is silent while nothing changes."""
    return httpx.Timeout(connect=timeout.connect, write=timeout.write, pool=timeout.pool, read=None)
