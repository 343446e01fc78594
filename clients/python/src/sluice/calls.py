"""Every operation as a value: what is sent, and how the answer is read. Nothing here does I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

from sluice import wire
from sluice.errors import AnswerError, IncompleteError

T = TypeVar("T")

_JSON = "application/json"
_NDJSON = "application/x-ndjson"
_EVENTS = "text/event-stream"

# Of one request of a stream: so much that the daemon never waits for its next,
# and so little that it never waits for its results to be read.
_LINES = 1000
_BYTES = 1 << 20


@dataclass(frozen=True)
class Call(Generic[T]):
    """One request, and how its answer is read.

    Resend says that the daemon may get it twice without harm.
    """

    method: str
    path: str
    read: Callable[[bytes], T]
    body: bytes | None = None
    content_type: str = _JSON
    query: Mapping[str, str] = field(default_factory=dict)
    resend: bool = True
    accept: str | None = None


def path(*segments: str) -> str:
    """Join segments, each escaped; '.' and '..' too, which URL libraries would take for steps."""
    return "".join("/" + (quote(s, safe="") if s.strip(".") else s.replace(".", "%2E")) for s in segments)


def of(*more: str) -> str:
    """Return the path below the collections."""
    return path("v1", "collections", *more)


def reader(kind: type[T]) -> Callable[[bytes], T]:
    """Return the decoder of an answer."""
    decoder = msgspec.json.Decoder(kind)

    def read(body: bytes) -> T:
        try:
            return decoder.decode(body)
        except msgspec.MsgspecError as error:
            raise AnswerError(f"the answer is no {getattr(kind, '__name__', kind)}: {error}") from error

    return read


def _nothing(_: bytes) -> None: ...


_collection = reader(wire.Collection)
_all_collections = reader(wire.Collections)
_identity = reader(wire.Identity)
_demo = reader(wire.Demo)
_policies = reader(wire.PolicyFiles)
_write_result = reader(wire.WriteResult)
_document = reader(wire.DocumentInfo)
_listing = reader(wire.Listing)
_search = reader(wire.SearchResponse)
_answer = reader(wire.Answer)
_answer_event = reader(wire.AnswerEvent)
_preview = reader(wire.AccessPreview)
_explanation = reader(wire.AccessExplanation)
_estimate = reader(wire.ReindexEstimate)
_generations = reader(wire.Generations)
_queries = reader(wire.QuerySet)
_snapshot = reader(wire.Snapshot)
_cache = reader(wire.CacheSize)
_object = reader(dict[str, Any])


def _post(to: str, body: wire.Message, read: Callable[[bytes], T], *, resend: bool = True) -> Call[T]:
    return Call("POST", to, read, msgspec.json.encode(body), resend=resend)


def create_collection(name: str, settings: wire.CollectionSettings | None = None) -> Call[wire.Collection]:
    """Create a collection, or find it there with the same settings."""
    return Call("PUT", of(name), _collection, msgspec.json.encode(settings or wire.CollectionSettings()))


def collection(name: str) -> Call[wire.Collection]:
    """Describe a collection."""
    return Call("GET", of(name), _collection)


def collections() -> Call[wire.Collections]:
    """Describe the collections of the caller's tenant."""
    return Call("GET", of(), _all_collections)


def write(collection: str, document: wire.Document) -> Call[wire.WriteResult]:
    """Write one document."""
    return _post(of(collection, "documents"), document, _write_result)


def document(collection: str, key: str) -> Call[wire.DocumentInfo]:
    """Read one document with its text."""
    return Call("GET", of(collection, "documents", key), _document)


def delete(collection: str, key: str) -> Call[None]:
    """Delete a document."""
    return Call("DELETE", of(collection, "documents", key), _nothing)


def list_documents(collection: str, *, after: str = "", limit: int = 100) -> Call[wire.Listing]:
    """Return a page of at most 1,000 documents that the principal may read; after is an earlier page's next."""
    query = {"limit": str(limit)} | ({"after": after} if after else {})
    return Call("GET", of(collection, "documents"), _listing, query=query)


def search(
    collection: str,
    query: str | None = None,
    *,
    k: int | None = None,
    strategy: wire.Strategy | None = None,
    fusion: wire.Fusion | None = None,
    ranking: wire.Ranking | None = None,
    scope: wire.Scope | None = None,
    vector: wire.Vector | None = None,
    vectors: wire.Matrix | None = None,
    explain: bool = False,
) -> Call[wire.SearchResponse]:
    """Search what the principal may read, by a query, vectors of it, or both."""
    request = wire.SearchRequest(
        query=query,
        k=k,
        strategy=strategy,
        fusion=fusion,
        ranking=ranking,
        scope=scope,
        vector=vector,
        vectors=vectors,
        explain=explain,
    )
    return _post(of(collection, "search"), request, _search)


def answer(
    collection: str, question: str, *, history: Sequence[wire.Turn] | None = None, scope: wire.Scope | None = None
) -> Call[wire.Answer]:
    """Answer a question from what the principal may read, with citations."""
    return _post(of(collection, "answer"), wire.AnswerRequest(question, history, scope), _answer)


def stream_answer(
    collection: str, question: str, *, history: Sequence[wire.Turn] | None = None, scope: wire.Scope | None = None
) -> Call[wire.AnswerEvent]:
    """Ask for an answer step by step; it comes as events."""
    request = wire.AnswerRequest(question, history, scope)
    return Call("POST", of(collection, "answer"), _answer_event, msgspec.json.encode(request), accept=_EVENTS)


def set_access(collection: str, key: str, patch: wire.AccessPatch) -> Call[wire.WriteResult]:
    """Change who may read a document, and where and when it applies. In force when this returns."""
    return Call("PATCH", of(collection, "documents", key, "access"), _write_result, msgspec.json.encode(patch))


def preview_access(collection: str, supposed: wire.AccessPreviewRequest) -> Call[wire.AccessPreview]:
    """Say who would gain and who would lose what."""
    return _post(of(collection, "access", "preview"), supposed, _preview)


def explain_access(collection: str, principal: wire.Principal, document: str) -> Call[wire.AccessExplanation]:
    """Say what decides whether a principal reads a document."""
    return _post(of(collection, "access", "explain"), wire.AccessQuestion(principal=principal, document=document), _explanation)


def estimate_reindex(collection: str, chunker: str, *, bound: float | None = None) -> Call[wire.ReindexEstimate]:
    """Say what a reindex would take. Nothing is changed."""
    return _post(of(collection, "reindex", "estimate"), wire.ReindexRequest(chunker=chunker, bound=bound), _estimate)


def start_reindex(collection: str, chunker: str, *, bound: float | None = None) -> Call[wire.Generations]:
    """Start a job that builds the collection by another chunker and switches to it."""
    return _post(of(collection, "reindex"), wire.ReindexRequest(chunker=chunker, bound=bound), _generations, resend=False)


def change_reindex(collection: str, action: wire.ReindexAction, *, bound: float | None = None) -> Call[wire.Generations]:
    """Pause, resume or cancel the job, roll back to the previous generation, or drop it. A bound is for resume."""
    return _post(of(collection, "reindex", action), wire.ReindexChange(bound=bound), _generations, resend=False)


def generations(collection: str) -> Call[wire.Generations]:
    """Return the collection's generations and the job under way."""
    return Call("GET", of(collection, "reindex"), _generations)


def watch_reindex(collection: str) -> Call[wire.Generations]:
    """Ask for the states of a job; they come as events."""
    return Call("GET", of(collection, "reindex", "events"), _generations, accept=_EVENTS)


def set_queries(collection: str, queries: wire.QuerySet) -> Call[None]:
    """Replace the collection's query set, by which a reindex is judged."""
    return Call("PUT", of(collection, "queries"), _nothing, msgspec.json.encode(queries))


def queries(collection: str) -> Call[wire.QuerySet]:
    """Return the collection's query set."""
    return Call("GET", of(collection, "queries"), _queries)


def identity() -> Call[wire.Identity]:
    """Say who the caller is."""
    return Call("GET", path("v1", "identity"), _identity)


def demo() -> Call[wire.Demo]:
    """Say whom a visitor of a demo can be; elsewhere it is not found."""
    return Call("GET", path("v1", "demo"), _demo)


def policies() -> Call[wire.PolicyFiles]:
    """Return the policies in force."""
    return Call("GET", path("v1", "policies"), _policies)


def health() -> Call[None]:
    """Ask whether the process answers."""
    return Call("GET", path("healthz"), _nothing)


def ready() -> Call[None]:
    """Ask, once, whether requests would be served now."""
    return Call("GET", path("readyz"), _nothing, resend=False)


def metrics() -> Call[str]:
    """Return the metrics in Prometheus' text format."""
    return Call("GET", path("metrics"), bytes.decode)


def openapi() -> Call[dict[str, Any]]:
    """Return the API's description."""
    return Call("GET", path("openapi.json"), _object)


def snapshot(name: str) -> Call[wire.Snapshot]:
    """Make a snapshot in the daemon's data directory. For the admin listener's URL."""
    return Call("PUT", path("snapshots", name), _snapshot, resend=False)


def cache_size() -> Call[wire.CacheSize]:
    """Return the size of the embedding cache. For the admin listener's URL."""
    return Call("GET", path("cache"), _cache)


def prune_cache(age: timedelta) -> Call[wire.CacheSize]:
    """Remove embeddings that were kept longer ago than an age. For the admin listener's URL."""
    return Call("DELETE", path("cache"), _cache, query={"age": f"{age.total_seconds():.0f}s"})


class Batches:
    """Cuts lines of NDJSON into calls, in order; each answers with a result a line.

    To write a document or an access row twice is harmless, so a call whose answer broke off is sent again whole.
    """

    def __init__(self, to: str) -> None:
        self._to = to
        self._lines: list[bytes] = []
        self._bytes = 0
        self._before = 0

    def add(self, message: wire.AccessLine) -> Iterator[Call[list[wire.WriteResult]]]:
        """Take a line, and yield the call that had no room for it, if it is one too many."""
        line = msgspec.json.encode(message)
        if self._lines and (len(self._lines) == _LINES or self._bytes + len(line) > _BYTES):
            yield from self.rest()
        self._lines.append(line)
        self._bytes += len(line)

    def rest(self) -> Iterator[Call[list[wire.WriteResult]]]:
        """Yield the call of what is left, if anything is."""
        if not self._lines:
            return
        body, read = b"\n".join(self._lines) + b"\n", _results(len(self._lines), self._before)
        self._before += len(self._lines)
        self._lines, self._bytes = [], 0
        yield Call("POST", self._to, read, body, _NDJSON)


def _results(lines: int, before: int) -> Callable[[bytes], list[wire.WriteResult]]:
    def read(body: bytes) -> list[wire.WriteResult]:
        results = [_write_result(line) for line in body.splitlines()]
        if len(results) < lines:
            raise IncompleteError(f"{len(results)} of {lines} lines have a result")
        return [msgspec.structs.replace(r, line=r.line + before) for r in results]

    return read


class Events(Generic[T]):
    """Reads server-sent events as they arrive, each by read."""

    LARGEST = 1 << 20

    def __init__(self, read: Callable[[bytes], T]) -> None:
        self._read = read
        self._rest = b""

    def feed(self, part: bytes) -> Iterator[T]:
        """Take bytes and yield the events that they complete."""
        *lines, self._rest = (self._rest + part).split(b"\n")
        if len(self._rest) > self.LARGEST:
            raise AnswerError(f"an event is larger than {self.LARGEST} bytes")
        yield from (self._read(line[6:]) for line in lines if line.startswith(b"data: "))
