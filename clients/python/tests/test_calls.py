"""What needs no daemon: how requests are made, cut and sent again, how answers are read."""

from __future__ import annotations

import pickle
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import httpx
import pytest

import sluice
from sluice import AccessLine, AsyncClient, Client, Document, calls, errors, exchange, wire

Scripted = Callable[..., tuple[Client, AsyncClient]]


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("a/b ?#%2F;ü", "a%2Fb%20%3F%23%252F%3B%C3%BC"),
        ("..", "%2E%2E"),
        (".", "%2E"),
        ("漢字 🚢", "%E6%BC%A2%E5%AD%97%20%F0%9F%9A%A2"),
    ],
)
def test_paths_are_escaped_and_stay_so(key: str, path: str, scripted: Scripted) -> None:
    sent: list[bytes] = []

    def handler(request: httpx.Request) -> httpx.Response:
        sent.append(request.url.raw_path)
        return httpx.Response(204)

    client, _ = scripted(handler)
    client.delete("c", key)
    assert sent == [f"/v1/collections/c/documents/{path}".encode()]


def test_urls_that_are_none() -> None:
    for url in ("", "127.0.0.1:8080", "/x", "ftp://x", "http://", "http://x/?y=z", "http://user:secret@x"):
        with pytest.raises(ValueError, match="not the URL of a daemon"):
            Client(url)


def test_a_token_is_told_to_nobody() -> None:
    with pytest.raises(ValueError, match="line end") as caught:
        Client("http://x", token="secret\n")
    client = Client("http://x", token="secret")
    for text in (str(caught.value), repr(client), str(client), repr(client.with_token("secret"))):
        assert "secret" not in text
    assert client.with_token("other")._headers == {"Authorization": "Bearer other"}
    assert client._headers == {"Authorization": "Bearer secret"}
    assert Client("http://x", demo_principal="ann")._headers == {"X-Sluice-Principal": "ann"}


def test_no_token_follows_a_redirect(scripted: Scripted) -> None:
    client, _ = scripted(lambda _: httpx.Response(307, headers={"Location": "http://elsewhere/"}))
    with pytest.raises(errors.APIError) as caught:
        client.health()
    assert caught.value.status == 307


PROBLEM = {"type": "about:blank", "title": "No", "status": 200, "detail": "do this"}


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.RequestError),
        (401, errors.AuthenticationError),
        (403, errors.ForbiddenError),
        (404, errors.NotFoundError),
        (409, errors.ConflictError),
        (413, errors.RequestError),
        (429, errors.OverloadedError),
        (500, errors.ServerError),
        (503, errors.UnavailableError),
        (507, errors.ServerError),
    ],
)
def test_problems_are_typed(status: int, kind: type[errors.APIError], scripted: Scripted) -> None:
    client, _ = scripted(lambda _: httpx.Response(status, json=PROBLEM, headers={"X-Request-Id": "r1", "Retry-After": "7"}))
    client._retries = 0
    with pytest.raises(errors.APIError) as caught:
        client.search("c", "q")
    error = caught.value
    assert type(error) is kind
    assert (error.status, error.title, error.detail, error.retry_after, error.request_id) == (status, "No", "do this", 7, "r1")
    assert str(error) == "No: do this"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), vars(again)) == (kind, vars(error))


@pytest.mark.parametrize("body", [b"<html>", b"", b"[]", b'{"title": 3}'])
def test_errors_of_something_in_between(body: bytes, scripted: Scripted) -> None:
    client, _ = scripted(lambda _: httpx.Response(502, content=body))
    with pytest.raises(errors.ServerError, match=r"^Bad Gateway$"):
        client.health()


def test_answers_that_are_none(scripted: Scripted) -> None:
    for body in (b"", b"{", b"{}", b"[]", b'{"visible": "1"}'):
        client, _ = scripted(lambda _, body=body: httpx.Response(200, content=body))
        with pytest.raises(errors.AnswerError):
            client.search("c", "q")


async def test_answers_are_bounded(scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "MAX_ANSWER", 10)
    client, async_client = scripted(lambda _: httpx.Response(200, content=b"x" * 11))
    with pytest.raises(errors.AnswerError, match="larger than 10 bytes"):
        client.metrics()
    with pytest.raises(errors.AnswerError, match="larger than 10 bytes"):
        await async_client.metrics()


Ask = Callable[[Any], Any]


@pytest.mark.parametrize(
    ("status", "ask", "sent"),
    [
        (429, lambda c: c.search("c", "q"), 5),
        (503, lambda c: c.search("c", "q"), 5),
        (503, lambda c: c.write("c", Document(key="k")), 5),
        (503, lambda c: c.set_access("c", "k", wire.AccessPatch()), 5),
        (500, lambda c: c.search("c", "q"), 1),
        (504, lambda c: c.search("c", "q"), 1),
        (404, lambda c: c.search("c", "q"), 1),
        (503, lambda c: c.start_reindex("c", "structure/1"), 1),
        (429, lambda c: c.change_reindex("c", "rollback"), 1),
        (503, lambda c: c.snapshot("s"), 1),
        (503, lambda c: c.ready(), 1),
    ],
)
async def test_what_is_sent_again(status: int, ask: Ask, sent: int, scripted: Scripted) -> None:
    bodies: list[bytes] = []

    def handler(request: httpx.Request) -> httpx.Response:
        bodies.append(request.content)
        return httpx.Response(status, json=PROBLEM)

    client, async_client = scripted(handler)
    with pytest.raises(errors.APIError):
        ask(client)
    assert bodies == [bodies[0]] * sent
    with pytest.raises(errors.APIError):
        await ask(async_client)
    assert bodies == [bodies[0]] * 2 * sent


async def test_a_lost_connection_is_made_again(scripted: Scripted) -> None:
    tries: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        tries.append(request.url.path)
        if len(tries) % 2:
            raise httpx.RemoteProtocolError("gone")
        return httpx.Response(200, json={"generations": []})

    client, async_client = scripted(handler)
    assert client.generations("c") == await async_client.generations("c")
    assert len(tries) == 4
    with pytest.raises(errors.TransportError):
        client.start_reindex("c", "structure/1")
    assert len(tries) == 5


def test_waits() -> None:
    def between(error: errors.SluiceError, tries: int, least: float, most: float) -> None:
        wait = exchange.pause(error, tries)
        assert wait is not None
        assert least <= wait <= most

    between(errors.OverloadedError(429, "No", retry_after=3), 0, 3, 3.75)
    between(errors.OverloadedError(429, "No", retry_after=30), 3, 30, 37.5)
    between(errors.UnavailableError(503, "No"), 2, 2, 2.5)
    between(errors.UnavailableError(503, "No"), 30, 30, 37.5)
    between(errors.TransportError(), 0, 0.5, 0.625)
    assert exchange.pause(errors.OverloadedError(429, "No", retry_after=31), 0) is None
    assert exchange.pause(errors.DeadlineError(), 0) is None
    assert exchange.pause(errors.ServerError(500, "No", retry_after=1), 0) is None
    for text in ("", "-1", "soon", "1.5", "²"):
        assert exchange._retry_after(text) is None


def _cut(lines: Sequence[AccessLine]) -> list[calls.Call[list[wire.WriteResult]]]:
    batches = calls.Batches("/to")
    made = [call for line in lines for call in batches.add(line)]
    return made + list(batches.rest())


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 2500])
def test_batches_are_all_lines_in_their_order(count: int) -> None:
    made = _cut([AccessLine(key=f"k{i}") for i in range(count)])
    bodies = [call.body or b"" for call in made]
    assert b"".join(bodies).splitlines() == [f'{{"key":"k{i}"}}'.encode() for i in range(count)]
    assert all(len(body.splitlines()) <= 1000 for body in bodies)
    numbers = []
    for call, body in zip(made, bodies, strict=True):
        lines = range(1, len(body.splitlines()) + 1)
        answer = b"".join(b'{"line":%d,"status":"created"}\n' % n for n in lines)
        numbers += [result.line for result in call.read(answer)]
        with pytest.raises(sluice.IncompleteError):
            call.read(answer[:-1].rpartition(b"\n")[0])
    assert numbers == list(range(1, count + 1))


def test_a_batch_is_bounded_but_for_a_single_line() -> None:
    made = _cut([Document(key=f"k{i}", text="x" * 400_000) for i in range(4)] + [Document(key="large", text="x" * 3_000_000)])
    assert [len((call.body or b"").splitlines()) for call in made] == [2, 2, 1]


async def test_a_batch_whose_results_broke_off_is_sent_again(scripted: Scripted) -> None:
    sent: list[bytes] = []

    def handler(request: httpx.Request) -> httpx.Response:
        sent.append(request.content)
        lines = len(request.content.splitlines()) - len(sent) % 2
        return httpx.Response(200, content=b"".join(b'{"line":%d,"status":"created"}\n' % (n + 1) for n in range(lines)))

    client, async_client = scripted(handler)
    documents = [Document(key="a"), Document(key="b")]
    assert [r.line for r in client.ingest("c", documents)] == [1, 2]
    assert [r.line async for r in async_client.ingest("c", documents)] == [1, 2]
    assert sent == [sent[0]] * 4


EVENTS = (
    b': hello\r\n\ndata: {"generations":[]}\n\nevent: x\n'
    b'data: {"generations":[{"id":1,"role":"serving","created":"2026-01-02T03:04:05.123456789Z"}]}\n\n'
)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_are_read_however_they_are_cut(size: int) -> None:
    call = calls.watch_reindex("c")
    reader = calls.Events(call.read)
    seen = [e for at in range(0, len(EVENTS), size) for e in reader.feed(EVENTS[at : at + size])]
    assert [len(g.generations) for g in seen] == [0, 1]


async def test_a_watch_may_be_silent_for_long(scripted: Scripted) -> None:
    timeouts: list[dict[str, float | None]] = []

    def handler(request: httpx.Request) -> httpx.Response:
        timeouts.append(request.extensions["timeout"])
        return httpx.Response(200, content=EVENTS)

    client, async_client = scripted(handler)
    assert len(list(client.watch_reindex("c"))) == len([g async for g in async_client.watch_reindex("c")]) == 2
    assert [t["read"] for t in timeouts] == [None, None]
    assert all(t["connect"] for t in timeouts)


def test_events_are_bounded() -> None:
    with pytest.raises(errors.AnswerError):
        list(calls.Events(bytes).feed(b"x" * (calls.Events.LARGEST + 1)))


ANSWER = (
    b'{"outcome":"answered","sentences":[{"text":"It is so.","citations":["S1"]}],"passages":[],"queries":["q"],"dropped":{},'
    b'"degraded":[],"counts":{"visible":1,"out_of_scope":0},'
    b'"usage":{"calls":1,"context_tokens":5,"prompt_tokens":2,"completion_tokens":1,"cost":0}}'
)
STEPS = [
    b'data: {"queries":["q"]}\n\n',
    b'data: {"sentence":{"text":"It is so.","citations":["S1"]}}\n\n',
    b'data: {"answer":' + ANSWER + b"}\n\n",
]


class Parts(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body that comes in parts, and breaks off where a part is an error."""

    def __init__(self, *parts: bytes | Exception) -> None:
        self._parts = parts

    def __iter__(self) -> Iterator[bytes]:
        for part in self._parts:
            if isinstance(part, Exception):
                raise part
            yield part

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self:
            yield part


async def _streams(clients: tuple[Client, AsyncClient]) -> list[tuple[list[wire.AnswerEvent], Exception | None]]:
    """Return what both clients get of a streamed answer, and what ended it."""
    client, async_client = clients
    got: list[tuple[list[wire.AnswerEvent], Exception | None]] = []
    events: list[wire.AnswerEvent] = []
    try:
        for event in client.stream_answer("c", "q"):
            events.append(event)
        got.append((events, None))
    except errors.SluiceError as error:
        got.append((events, error))
    events = []
    try:
        async for event in async_client.stream_answer("c", "q"):
            events.append(event)
        got.append((events, None))
    except errors.SluiceError as error:
        got.append((events, error))
    return got


async def test_an_answer_that_has_not_begun_is_asked_for_again(scripted: Scripted) -> None:
    tries: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        tries.append(request.headers["Accept"])
        match len(tries) % 3:
            case 1:
                return httpx.Response(429, json=PROBLEM, headers={"Retry-After": "1"})
            case 2:
                raise httpx.ConnectError("gone")
        return httpx.Response(200, stream=Parts(*STEPS))

    for events, error in await _streams(scripted(handler)):
        assert error is None
        assert [e.queries for e in events] == [["q"], None, None]
        assert events[1].sentence == wire.AnswerSentence("It is so.", ["S1"])
        assert events[2].answer is not None
        assert events[2].answer.usage.context_tokens == 5
    assert tries == ["text/event-stream"] * 6


@pytest.mark.parametrize(
    ("parts", "steps", "kind"),
    [
        ([], 0, errors.IncompleteError),
        ([*STEPS[:2], httpx.ReadError("broken")], 2, errors.TransportError),
        ([httpx.RemoteProtocolError("broken")], 0, errors.TransportError),
        ([httpx.ReadTimeout("slow")], 0, errors.DeadlineError),
        (STEPS[:2], 2, errors.IncompleteError),
        ([STEPS[0], STEPS[2][:40]], 1, errors.IncompleteError),
        ([STEPS[0], b"data: {\n\n"], 1, errors.AnswerError),
        ([STEPS[0], b'data: {"problem":{"type":"about:blank","title":"No","status":503}}\n\n'], 1, errors.UnavailableError),
    ],
)
async def test_an_answer_that_has_begun_is_not_repeated(
    parts: list[bytes | Exception], steps: int, kind: type[Exception], scripted: Scripted
) -> None:
    tries: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        tries.append(request.url.path)
        return httpx.Response(200, stream=Parts(*parts))

    for events, error in await _streams(scripted(handler)):
        assert len(events) == steps
        assert type(error) is kind
    assert len(tries) == 2, "once by each client"


async def test_a_refused_answer_is_no_stream(scripted: Scripted) -> None:
    for events, error in await _streams(scripted(lambda _: httpx.Response(404, json=PROBLEM))):
        assert events == []
        assert type(error) is errors.NotFoundError
