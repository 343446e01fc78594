"""Streamed answers of a real daemon, whose chat model is scripted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from conftest import HANDBOOK, Daemon, Either

from sluice import AnswerEvent, NotFoundError, RequestError, Turn, errors

QUESTION = "How many days of annual leave are there?"
SAYS = "Everybody has thirty days of annual leave."


class _Model(BaseHTTPRequestHandler):
    """Says a sentence of the passage that has it, and one that none has."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps({"choices": [{"message": {"role": "assistant", "content": json.dumps(self._reply(request))}}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _reply(self, request: Any) -> dict[str, Any]:
        asked = json.loads(request["messages"][-1]["content"])
        if "conversation" in asked:
            return {"query": QUESTION}
        of = [p["id"] for p in asked["passages"] if SAYS in p["text"]]
        return {"sentences": [{"text": text, "citations": of} for text in (SAYS, "Everybody has forty days.") if of]}

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def answering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Model) as model:
        thread = Thread(target=model.serve_forever)
        thread.start()
        settings = {"base_url": f"http://127.0.0.1:{model.server_port}/v1", "model": "scripted"}
        with Daemon(tmp_path_factory.mktemp("answering"), answer=settings) as one:
            with one.client("root") as root:
                root.create_collection("handbook")
                assert [r.status for r in root.ingest("handbook", HANDBOOK)] == ["created"] * 3
            yield one
        model.shutdown()
        thread.join()


@pytest.fixture(params=["sync", "async"])
async def ann(answering: Daemon, request: pytest.FixtureRequest) -> Any:
    if request.param == "sync":
        with answering.client("ann") as client:
            yield Either(client)
        return
    async with answering.async_client("ann") as async_client:
        yield Either(async_client)


async def test_an_answer_comes_step_by_step(ann: Either) -> None:
    steps: list[AnswerEvent] = await ann("stream_answer", "handbook", QUESTION)
    queries, *sentences, last = steps
    assert queries == AnswerEvent(queries=[QUESTION])
    assert [s.sentence.text for s in sentences if s.sentence] == [SAYS]
    answer = await ann("answer", "handbook", QUESTION)
    assert last == AnswerEvent(answer=answer)
    assert answer.outcome == "answered"
    assert sum(answer.dropped.values()) == 1
    assert answer.usage.context_tokens > 0
    assert {p.document for p in answer.passages} == {"leave.md"}


async def test_a_follow_up_is_asked_with_its_history(ann: Either) -> None:
    steps = await ann("stream_answer", "handbook", "And how many of those?", history=[Turn("What of leave?", "There is some.")])
    assert steps[0].queries == [QUESTION, "And how many of those?"]
    assert steps[-1].answer.outcome == "answered"


async def test_a_stream_shows_what_the_principal_may_read(answering: Daemon, ann: Either) -> None:
    steps = await ann.as_token(answering.keys["bob"])("stream_answer", "handbook", QUESTION)
    assert [s.sentence for s in steps if s.sentence] == []
    assert steps[-1].answer.outcome == "no_answer"


async def test_streams_that_are_refused(ann: Either) -> None:
    with pytest.raises(NotFoundError):
        await ann("stream_answer", "nowhere", QUESTION)
    with pytest.raises(RequestError, match="question"):
        await ann("stream_answer", "handbook", "")
    with pytest.raises(errors.AuthenticationError):
        await ann.as_token("sluice_" + "x" * 43)("stream_answer", "handbook", QUESTION)


async def test_a_stream_may_be_left(answering: Daemon) -> None:
    with answering.client("ann") as client:
        for step in client.stream_answer("handbook", QUESTION):
            assert step.queries
            break
    async with answering.async_client("ann") as async_client:
        async for step in async_client.stream_answer("handbook", QUESTION):
            assert step.queries
            break
        assert (await async_client.answer("handbook", QUESTION)).outcome == "answered"
