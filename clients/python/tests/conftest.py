"""A real daemon with its real model, and clients of both kinds."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import secrets
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from sluice import AsyncClient, Client, CollectionSettings, Document, OwnVectors

PROGRAM = os.environ.get("SLUICE_BIN", str(Path(__file__).parents[3] / "bin" / "sluice"))
PATIENCE = 120.0  # for what takes a second on a machine that is not busy

# Name: groups, roles.
PEOPLE: dict[str, tuple[list[str], list[str]]] = {
    "root": (["staff"], ["admin"]),
    "writer": (["staff"], ["write"]),
    "ann": (["staff"], ["read"]),
    "bob": ([], ["read"]),
}
HANDBOOK = [
    Document(
        key="leave.md",
        format="markdown",
        readers=["group:staff"],
        text="# Leave\n\n## Annual leave\n\nEverybody has thirty days of annual leave.\n\n## Parental leave\n\nSixteen weeks.",
    ),
    Document(key="travel.md", format="markdown", readers=["public"], text="# Travel\n\n## Trains\n\nAnnual cards are paid for."),
    Document(key="salaries.md", format="markdown", readers=["user:root"], text="# Salaries\n\nAnnual salaries are secret."),
]


class Daemon:
    """A process of the program under test, on a directory of its own."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        self.directory = directory
        self.keys = {name: "sluice_" + secrets.token_urlsafe(32) for name in PEOPLE}
        keys = [
            {
                "name": name,
                "hash": "sha256:" + hashlib.sha256(self.keys[name].encode()).hexdigest(),
                "tenant": "acme",
                "subject": name,
                "groups": groups,
                "roles": roles,
            }
            for name, (groups, roles) in PEOPLE.items()
        ]
        self.settings = {
            "listen": "127.0.0.1:0",
            "admin_listen": "127.0.0.1:0",
            "data": str(directory / "data"),
            "auth": {"api_keys": keys},
            **settings,
        }

    def start(self) -> Daemon:
        """Start it, on the address that it had before, if it had one."""
        file = self.directory / "sluice.yaml"
        file.write_text(json.dumps(self.settings))  # which is YAML
        self.log = self.directory / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen([PROGRAM, "serve", "--config", str(file)], stderr=log)
        text = self._wait_for("msg=listening url=")
        self.url = re.findall(r"msg=listening url=(\S+)", text)[0]
        self.admin_url = re.findall(r'msg="listening for administrators" url=(\S+)', text)[0]
        self.settings["listen"] = self.url.removeprefix("http://")
        return self

    def _wait_for(self, text: str) -> str:
        while text not in (log := self.log.read_text()):
            try:
                self.process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
            pytest.fail(f"the daemon ended:\n{log}")
        return log

    def kill(self) -> None:
        """Kill it as a crash does."""
        self.process.kill()
        self.process.wait(PATIENCE)

    def stop(self) -> None:
        """End it as an operator does."""
        self.process.terminate()
        assert self.process.wait(PATIENCE) == 0, self.log.read_text()

    def __enter__(self) -> Daemon:
        return self.start()

    def __exit__(self, kind: object, *_: object) -> None:
        self.kill() if kind else self.stop()

    def client(self, name: str, **options: Any) -> Client:
        return Client(self.url, token=self.keys[name], **options)

    def async_client(self, name: str, **options: Any) -> AsyncClient:
        return AsyncClient(self.url, token=self.keys[name], **options)


class Either:
    """A client of either kind: every call is awaited, every stream is a list."""

    def __init__(self, client: Client | AsyncClient) -> None:
        self.client = client

    def as_token(self, token: str) -> Either:
        return Either(self.client.with_token(token))

    async def __call__(self, name: str, *arguments: Any, **options: Any) -> Any:
        method = getattr(self.client, name)
        if isinstance(self.client, Client):
            return await asyncio.to_thread(lambda: _whole(method(*arguments, **options)))
        answer = method(*arguments, **options)
        if isinstance(answer, AsyncIterator):
            return [one async for one in answer]
        return await answer


def _whole(answer: Any) -> Any:
    return list(answer) if isinstance(answer, Iterator) else answer


@pytest.fixture(scope="session")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("daemon")) as one:
        with one.client("root") as root:
            root.create_collection("handbook")
            root.create_collection("vectors", CollectionSettings(own_vectors=OwnVectors(dimensions=2)))
            assert [r.status for r in root.ingest("handbook", HANDBOOK)] == ["created"] * 3
        yield one


@pytest.fixture(params=["sync", "async"])
async def root(daemon: Daemon, request: pytest.FixtureRequest) -> AsyncIterator[Either]:
    """An administrator's client, of each kind in turn."""
    if request.param == "sync":
        with daemon.client("root") as client:
            yield Either(client)
        return
    async with daemon.async_client("root") as async_client:
        yield Either(async_client)


@pytest.fixture
def new_collection(daemon: Daemon) -> str:
    """A collection of documents with vectors of their own: nothing is embedded."""
    name = "c" + secrets.token_hex(8)
    with daemon.client("root") as client:
        client.create_collection(name, CollectionSettings(own_vectors=OwnVectors(dimensions=2)))
    return name


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Answer requests by a function in place of a daemon, and never wait."""

    async def at_once(_: float) -> None: ...

    def connect(handler: Any) -> tuple[Client, AsyncClient]:
        client, async_client = Client("http://scripted"), AsyncClient("http://scripted")
        client._http = httpx.Client(transport=httpx.MockTransport(handler))
        async_client._http = httpx.AsyncClient(transport=httpx.MockTransport(handler))
        return client, async_client

    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr("asyncio.sleep", at_once)
    return connect
