"""Daemons that are overloaded, gone or silent, and callers that lose patience."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest
from conftest import Daemon, Either

from sluice import AsyncClient, Client, CollectionSettings, DeadlineError, Document, OverloadedError, TransportError, exchange
from sluice.wire import OwnVectors

Kind = type[Client] | type[AsyncClient]


@pytest.fixture
def own_daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon that works on one request at a time, for one test alone."""
    with Daemon(tmp_path, limits={"concurrent_requests": 1}) as daemon:
        with daemon.client("root") as client:
            client.create_collection("c", CollectionSettings(own_vectors=OwnVectors(dimensions=2)))
        yield daemon


@pytest.mark.parametrize("kind", [Client, AsyncClient])
async def test_an_overloaded_daemon(kind: Kind, own_daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    holder = _hold_the_only_slot(own_daemon)
    impatient = Either(kind(own_daemon.url, token=own_daemon.keys["root"], retries=0))
    with pytest.raises(OverloadedError, match="send it again later") as caught:
        await impatient("generations", "c")
    assert caught.value.retry_after == 1

    waits = []

    def pause(error: Exception, tries: int) -> float:
        waits.append(error)
        holder.close()  # the daemon has a slot again when it has noticed
        return 0.05

    monkeypatch.setattr("sluice.client.pause", pause)
    patient = Either(kind(own_daemon.url, token=own_daemon.keys["root"], retries=1000))
    assert len((await patient("generations", "c")).generations) == 1
    assert waits
    assert all(isinstance(error, OverloadedError) for error in waits)
    await impatient("close" if kind is Client else "aclose")
    await patient("close" if kind is Client else "aclose")


class _Proxy(BaseHTTPRequestHandler):
    """Sets a cookie with each answer, and keeps those that it gets."""

    protocol_version = "HTTP/1.1"
    got: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        self.got.append(self.headers["Cookie"])
        body = b'{"collections":[]}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Set-Cookie", "session=of-the-first; Path=/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize("kind", [Client, AsyncClient])
async def test_cookies_of_one_principal_are_not_sent_for_another(kind: Kind) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Proxy) as proxy:
        thread = Thread(target=proxy.serve_forever)
        thread.start()
        _Proxy.got.clear()
        one = Either(kind(f"http://127.0.0.1:{proxy.server_port}", token="one"))
        for client in (one, one, one.as_token("two")):
            assert (await client("collections")).collections == []
        await one("close" if kind is Client else "aclose")
        proxy.shutdown()
        thread.join()
    assert _Proxy.got == [None] * 3


def _hold_the_only_slot(daemon: Daemon) -> socket.socket:
    """Begin to stream documents, and do not go on: the request is under way when its header has come."""
    host, port = daemon.url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=60)
    head = (
        f"POST /v1/collections/c/documents HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {daemon.keys['root']}\r\n"
        "Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    connection.sendall(head.encode())
    assert connection.recv(12) == b"HTTP/1.1 200"
    return connection


@pytest.mark.parametrize("kind", [Client, AsyncClient])
async def test_a_daemon_that_goes_and_comes_back(kind: Kind, own_daemon: Daemon) -> None:
    impatient = Either(kind(own_daemon.url, token=own_daemon.keys["root"], retries=0))
    await impatient("generations", "c")
    own_daemon.kill()
    for call in (("generations", "c"), ("ingest", "c", [Document(key="k")]), ("watch_reindex", "c")):
        with pytest.raises(TransportError, match="no answer"):
            await impatient(*call)

    patient = Either(kind(own_daemon.url, token=own_daemon.keys["root"], retries=30))
    asked = asyncio.create_task(patient("collection", "c"))
    await asyncio.to_thread(own_daemon.start)
    assert (await asked).name == "c"
    await impatient("close" if kind is Client else "aclose")
    await patient("close" if kind is Client else "aclose")


@asynccontextmanager
async def _silent() -> AsyncIterator[tuple[str, asyncio.Queue[str]]]:
    """A server that takes requests and answers none; it says when one came and when its caller went."""
    heard: asyncio.Queue[str] = asyncio.Queue()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        heard.put_nowait("came")
        while await reader.read(1 << 16):
            pass
        heard.put_nowait("went")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield "http://{}:{}".format(*server.sockets[0].getsockname()), heard


async def test_a_cancelled_search_lets_go_of_its_connection() -> None:
    async with _silent() as (url, heard), AsyncClient(url) as client:
        asked = asyncio.ensure_future(client.search("c", "q"))
        assert await heard.get() == "came"
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert await heard.get() == "went"


async def test_a_cancelled_wait_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "_FIRST_WAIT", 3600.0)
    monkeypatch.setattr(exchange, "MAX_WAIT", 3600.0)
    waits = asyncio.Event()
    sleep = asyncio.sleep

    async def told(seconds: float) -> None:
        waits.set()
        await sleep(seconds)

    monkeypatch.setattr("sluice.client.asyncio.sleep", told)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        async with AsyncClient("http://{}:{}".format(*nobody.getsockname())) as client:
            asked = asyncio.ensure_future(client.search("c", "q"))
            await waits.wait()
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked


@pytest.mark.parametrize("kind", [Client, AsyncClient])
async def test_a_silent_daemon(kind: Kind) -> None:
    async with _silent() as (url, heard):
        client = Either(kind(url, timeout=0.2))
        with pytest.raises(DeadlineError, match="no answer in time"):
            await client("search", "c", "q")
        assert [await heard.get(), await heard.get()] == ["came", "went"]
        assert heard.empty(), "it was not asked again"
        await client("close" if kind is Client else "aclose")


def test_many_threads_share_a_client(daemon: Daemon) -> None:
    with daemon.client("root") as root, ThreadPoolExecutor(8) as pool:
        clients = [root.with_token(daemon.keys[name]) for name in ("root", "ann", "bob")]
        answers = pool.map(lambda c: c.search("handbook", "annual").counts.visible, clients * 16)
        assert list(answers) == [3, 2, 1] * 16
