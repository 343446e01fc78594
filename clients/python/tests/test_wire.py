"""The package against server/openapi.json."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sluice import AsyncClient, Client, calls, wire

OPENAPI = json.loads((Path(__file__).parents[3] / "server" / "openapi.json").read_text())
SCHEMAS: dict[str, Any] = OPENAPI["components"]["schemas"]
# Of the admin listener, which has no description.
ADMIN = {"Snapshot", "CacheSize"}
# What has clients of its own: those of OpenAI, text-embeddings-inference, Jina and Cohere.
DIALECTS = re.compile(r"/(v1/embeddings|v[12]/rerank|embed|embed_all|similarity|rerank|predict|tokenize|decode|info)?")
CONSOLE = re.compile(r"/console(/.*)?")
PROMPT = {"collection": "c", "key": "k", "action": "pause"}

MESSAGES = [m for m in vars(wire).values() if isinstance(m, type) and issubclass(m, wire.Message) and m is not wire.Message]


@pytest.mark.parametrize("message", [m for m in MESSAGES if m.__name__ not in ADMIN], ids=lambda m: m.__name__)
def test_messages_are_the_schemas(message: type[msgspec.Struct]) -> None:
    schema = SCHEMAS[message.__name__]
    fields = {f.encode_name: f for f in msgspec.structs.fields(message)}
    assert fields.keys() == schema["properties"].keys()
    for name, field in fields.items():
        if name in schema.get("required", []) and message is not wire.Problem:  # which a proxy may answer with less
            assert field.required, f"{message.__name__}.{name} always comes"
        elif field.required:
            pytest.fail(f"{message.__name__}.{name} may be absent")


def arguments(build: Any) -> dict[str, Any]:
    """Return something for every parameter that needs a value."""
    made: dict[str, Any] = {
        "patch": wire.AccessPatch(), "document": wire.Document(key="k"), "supposed": wire.AccessPreviewRequest(),
        "principal": wire.Principal("ann"), "queries": wire.QuerySet([]), "name": "c", "collection": "c", "key": "k",
        "action": "pause", "chunker": "structure/1", "question": "q",
    }  # fmt: skip
    needed = [p.name for p in inspect.signature(build).parameters.values() if p.default is p.empty]
    if build is calls.explain_access:
        made["document"] = "k"
    return {name: made[name] for name in needed}


def described() -> set[str]:
    fill = {f"{{{name}}}": value for name, value in PROMPT.items()}
    return {
        f"{method.upper()} " + re.sub(r"{\w+}", lambda m: fill[m[0]], path)
        for path, item in OPENAPI["paths"].items()
        for method in item
        if not DIALECTS.fullmatch(path) and not CONSOLE.fullmatch(path)
    }


def test_there_is_a_call_for_every_operation() -> None:
    builders = [f for f in vars(calls).values() if inspect.isfunction(f) and "Call[" in str(f.__annotations__.get("return"))]
    builders = [
        f for f in builders if not f.__name__.startswith("_") and f not in (calls.snapshot, calls.cache_size, calls.prune_cache)
    ]
    made = [f(**arguments(f)) for f in builders]
    streamed = next(iter(calls.Batches(calls.of("c", "access", "import")).add(wire.AccessLine(key="k"))), None)
    assert streamed is None
    have = {f"{c.method} {c.path}" for c in made} | {"POST /v1/collections/c/access/import"}
    assert have == described()
    for builder in builders:
        for kind in (Client, AsyncClient):
            assert hasattr(kind, builder.__name__), builder.__name__


def test_what_is_at_its_default_is_not_sent() -> None:
    assert msgspec.json.encode(wire.Document(key="k", text="")) == b'{"key":"k","text":""}'
    assert msgspec.json.encode(wire.AccessPatch(readers=None)) == b'{"readers":null}'
    assert msgspec.json.encode(wire.AccessPatch(readers=[])) == b'{"readers":[]}'
    assert msgspec.json.encode(wire.SearchRequest(query="q", explain=True)) == b'{"query":"q","explain":true}'


def test_what_is_newer_than_the_client_is_ignored() -> None:
    answer = calls.reader(wire.Counts)(b'{"visible": 1, "out_of_scope": 2, "hidden": 3}')
    assert answer == wire.Counts(visible=1, out_of_scope=2)
