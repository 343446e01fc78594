"""What schemathesis has to be told: what JSON Schema does not say, and how streams are read."""

from __future__ import annotations

import json
import re
from typing import Any

import schemathesis


@schemathesis.hook
def before_load_schema(_: Any, document: dict[str, Any]) -> None:
    """Write out what the description says in words: in a request null is the same as absent."""
    schemas = document["components"]["schemas"]
    bodies = [
        content["schema"]
        for item in document["paths"].values()
        for operation in item.values()
        for content in operation.get("requestBody", {}).get("content", {}).values()
    ]
    seen: set[str] = set()
    while bodies:
        for name in re.findall(r"#/components/schemas/(\w+)", json.dumps(bodies.pop())):
            if name not in seen:
                seen.add(name)
                bodies.append(schemas[name])
    for schema in (schemas[name] for name in seen if "properties" in schemas[name]):
        for name in schema["properties"].keys() - set(schema.get("required", [])):
            schema["properties"][name] = {"anyOf": [schema["properties"][name], {"type": "null"}]}


@schemathesis.serializer("application/x-ndjson")
def write_line(_: Any, value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"


@schemathesis.deserializer("application/x-ndjson")
def read_line(_: Any, response: schemathesis.Response) -> Any:
    (line,) = response.content.splitlines()
    return json.loads(line)


@schemathesis.deserializer("text/event-stream")
def read_events(_: Any, response: schemathesis.Response) -> Any:
    events = response.content.decode().removesuffix("\n\n").split("\n\n")
    return [json.loads(event.removeprefix("data: ")) for event in events]


@schemathesis.check
def an_error_is_the_status_that_it_says(_: Any, response: schemathesis.Response, __: Any) -> None:
    if response.headers.get("content-type") == ["application/problem+json"]:
        problem = response.json()
        assert problem["status"] == response.status_code >= 400
        assert problem["detail"], "it says what to do"
