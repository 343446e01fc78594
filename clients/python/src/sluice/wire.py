"""The types of the wire, as server/openapi.json has them.

A field that stands at its default is not sent. Of a document's access row,
UNSET leaves what is there and None takes it away. Fields of an answer that this
client does not know are newer than it is, and ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

Strategy = Literal["sparse", "dense", "late", "hybrid", "hybrid-late", "hybrid-rerank", "auto"]
Fusion = Literal["rrf", "score"]
ReindexAction = Literal["pause", "resume", "cancel", "rollback", "drop"]

Vector = Sequence[float]
Matrix = Sequence[Vector]


class Message(Struct, omit_defaults=True):
    """What all of them share."""


class OwnVectors(Message, kw_only=True):
    """Dimensions of the vectors that documents bring; None: none of that kind."""

    dimensions: int | None = None  # of one vector a passage
    multi_dimensions: int | None = None  # of each of a passage's token or patch vectors


class CollectionSettings(Message, kw_only=True):
    """How a collection is built; fixed at its creation."""

    analyzer: str | None = None  # default "english"
    token_codes: bool | None = None  # keep token codes for late interaction; default True
    chunker: str | None = None  # default: that of each document's format
    code_bits: int | None = None  # of a token code's dimension: 1 or 8
    own_vectors: OwnVectors | None = None  # documents bring their vectors


class Collection(Message):
    """A collection."""

    name: str
    analyzer: str
    token_codes: bool
    model: str  # "" where documents bring their vectors
    dimensions: int  # of a passage's vector
    created: datetime
    chunker: str | None = None
    code_bits: int | None = None
    own_vectors: OwnVectors | None = None


class Passage(Message, kw_only=True):
    """A piece of a document with the vectors that its writer made."""

    text: str | None = None
    headings: Sequence[str] | None = None
    vector: Vector | None = None
    vectors: Matrix | None = None


class AccessPatch(Message, kw_only=True):
    """A change of who may read a document, and where and when it applies.

    Readers are "user:…", "group:…" and "public"; [] admits nobody, None leaves it to the policies.
    """

    readers: Sequence[str] | UnsetType | None = UNSET
    attributes: Mapping[str, Any] | UnsetType | None = UNSET
    regions: Sequence[str] | UnsetType | None = UNSET
    valid_from: datetime | UnsetType | None = UNSET
    valid_until: datetime | UnsetType | None = UNSET


class AccessLine(AccessPatch, kw_only=True):
    """The same of the document with this key, among many."""

    key: str


class Document(AccessLine, kw_only=True):
    """A document to write: text, the bytes of a format that is no text, or passages with own vectors."""

    title: str | None = None
    format: str | None = None  # markdown, html, text, docling, pdf, docx, pptx or xlsx
    text: str | None = None
    data: bytes | None = None
    passages: Sequence[Passage] | None = None


class Problem(Message):
    """An error (RFC 9457)."""

    type: str = "about:blank"
    title: str = ""
    status: int = 0
    detail: str = ""  # says what to do


class WriteResult(Message):
    """What became of one document."""

    status: str  # "created", "updated", "unchanged", "access_updated" or "failed"
    line: int = 0  # 1-based, of what was streamed
    key: str = ""
    version: int = 0
    chunks: int = 0
    truncated_chunks: int = 0  # whose end the model did not see
    error: Problem | None = None


class DocumentInfo(Message):
    """A document; its text only where one document was asked for."""

    key: str
    version: int
    title: str
    format: str
    chunker: str
    chunks: int
    updated: datetime
    readers: list[str] | None = None  # for writers and admins only
    attributes: dict[str, Any] | None = None
    regions: list[str] | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    text: str | None = None


class Listing(Message):
    """A page of documents, and the cursor of the next."""

    documents: list[DocumentInfo]
    next: str = ""


class Scope(Message, kw_only=True):
    """Where and when; default: the principal's own region, now."""

    region: str | None = None
    any_region: bool = False
    as_of: datetime | None = None
    any_time: bool = False


class Ranking(Message, kw_only=True):
    """Depths and weights of a search's plan; 0: the daemon's choice."""

    dense_depth: int = 0
    lexical_depth: int = 0
    rrf_constant: int = 0
    pool_depth: int = 0
    dense_weight: float = 0
    lexical_weight: float = 0
    late_lexical_weight: float = 0


class SearchRequest(Message, kw_only=True):
    """A query, vectors of it, or both."""

    query: str | None = None
    vector: Vector | None = None
    vectors: Matrix | None = None
    k: int | None = None  # default 10, at most 100
    strategy: Strategy | None = None
    fusion: Fusion | None = None
    ranking: Ranking | None = None
    scope: Scope | None = None
    explain: bool = False


class LegExplain(Message):
    """A result's place in one leg; ranks begin at 1."""

    rank: int
    score: float


class Explain(Message):
    """A result's place in each leg that found it."""

    legs: dict[str, LegExplain]


class SearchResult(Message):
    """A passage: the bytes [start, end) of the document's normalised text."""

    document: str
    version: int
    title: str
    start: int
    end: int
    headings: list[str]
    text: str
    score: float
    explain: Explain | None = None

    @property
    def heading_path(self) -> str:
        """The headings it stands under, outermost first."""
        return " > ".join(self.headings)

    @property
    def citation(self) -> str:
        """Names the passage for good: a document's version never changes."""
        return f"{self.document}@{self.version}:{self.start}-{self.end}"

    def metadata(self, response: SearchResponse) -> dict[str, Any]:
        """Return what a retriever says of the passage besides its text."""
        return {
            "document": self.document,
            "version": self.version,
            "title": self.title,
            "headings": self.headings,
            "heading_path": self.heading_path,
            "start": self.start,
            "end": self.end,
            "score": self.score,
            "citation": self.citation,
            "generation": response.generation,
            "degraded": response.degraded,
        }


class Counts(Message):
    """Documents that the principal may read, and those of them that do not apply."""

    visible: int
    out_of_scope: int


class SearchResponse(Message):
    """Passages, best first. Degraded names the stages that were skipped."""

    results: list[SearchResult]
    strategy: str
    plan: str
    counts: Counts
    degraded: list[str]
    generation: int
    ranking: Ranking | None = None  # with explain: what the plan used
    complexity: float | None = None  # with explain and "auto": what it chose by


class Principal(Message):
    """Somebody of the caller's tenant; without groups and attributes as the configuration has it."""

    subject: str
    groups: Sequence[str] | None = None
    attributes: Mapping[str, Any] | None = None


class Turn(Message):
    """An earlier question of the conversation, and what was answered."""

    question: str
    answer: str | None = None


class AnswerRequest(Message):
    """A question, and the conversation before it, oldest first."""

    question: str
    history: Sequence[Turn] | None = None
    scope: Scope | None = None


class AnswerSentence(Message):
    """A sentence, and the ids of the passages that it cites."""

    text: str
    citations: list[str]


class AnswerPassage(Message):
    """The bytes [start, end) of the document's normalised text."""

    id: str
    document: str
    version: int
    title: str
    start: int
    end: int
    headings: list[str]
    text: str


class AnswerUsage(Message):
    """Of the chat model."""

    calls: int
    context_tokens: int  # of the passages that it was shown, as the daemon counts them
    prompt_tokens: int
    completion_tokens: int
    cost: float  # in the currency of the configured prices


class Answer(Message):
    """Sentences that cite passages; without a chat model the passages alone."""

    outcome: str  # "answered", "no_answer" or "evidence"
    sentences: list[AnswerSentence]
    passages: list[AnswerPassage]
    queries: list[str]
    dropped: dict[str, int]  # sentences that did not stand, by why
    degraded: list[str]
    counts: Counts
    usage: AnswerUsage
    reason: str = ""  # of no_answer
    model: str = ""


class AnswerEvent(Message):
    """A step of a streamed answer; one field is set: queries, then each sentence that stands, then the answer.

    A problem is raised as the error that it is.
    """

    queries: list[str] | None = None
    sentence: AnswerSentence | None = None
    answer: Answer | None = None
    problem: Problem | None = None


class Identity(Message):
    """Who the caller is."""

    tenant: str
    subject: str
    groups: list[str]
    attributes: dict[str, Any]
    role: str  # "read", "write" or "admin"


class DemoPrincipal(Message):
    """Somebody whom a visitor of a demo can be."""

    name: str
    tenant: str
    role: str


class Demo(Message):
    """All of them."""

    principals: list[DemoPrincipal]


class Collections(Message):
    """The collections of the caller's tenant, by name."""

    collections: list[Collection]


class PolicyFiles(Message):
    """Policies by file name, and a Cedar schema."""

    files: Mapping[str, str]
    schema: str = ""


class AccessPreviewRequest(Message, kw_only=True):
    """What is supposed, and of whom; without principals of all readers that documents name."""

    changes: Sequence[AccessLine] | None = None
    policies: PolicyFiles | None = None
    principals: Sequence[Principal] | None = None


class AccessDifference(Message):
    """How many documents a principal gains and loses, and keys of 20 of each."""

    principal: str
    gains: int
    loses: int
    gained: list[str]
    lost: list[str]


class AccessPreview(Message):
    """Who would gain and lose what. Nothing was changed."""

    compared: int
    left_out: int
    changed: int
    gained: int
    lost: int
    differences: list[AccessDifference]  # the 100 largest
    unfit: list[str]  # principals who do not fit the policies and read nothing
    failed: list[WriteResult]  # changes that an import would refuse
    failures: int


class AccessQuestion(Message):
    """Whether the principal reads the document, and why."""

    principal: Principal
    document: str


class ReadersVerdict(Message):
    """What the reader list says."""

    admit: bool
    declared: bool
    by: list[str]


class PoliciesVerdict(Message):
    """What the policies say; by names those that decide."""

    permit: bool
    forbid: bool
    built_in: bool
    by: list[str]
    errors: list[str]
    attributes: dict[str, Any]


class AccessExplanation(Message):
    """The principal reads the document if readers and policies both say so."""

    principal: Principal
    configured: bool
    document: str
    reads: bool
    readers: ReadersVerdict
    policies: PoliciesVerdict


class ReindexRequest(Message):
    """The chunker, and by how much relevance may fall (default 0.02)."""

    chunker: str
    bound: float | None = None


class ReindexChange(Message):
    """Another bound, for resume alone."""

    bound: float | None = None


class ReindexEstimate(Message):
    """What a reindex will take."""

    chunker: str
    documents: int
    chunks: int
    new: int  # chunks to embed
    reused: int
    tokens: int  # of the new
    seconds: float
    bytes: int


class ReindexGate(Message):
    """A check that a generation must pass before it serves."""

    name: str
    passed: bool
    detail: str


class ReindexJob(Message):
    """The job that makes a generation, or made it."""

    state: str  # "running", "paused", "failed", "refused" or "switched"
    started: datetime
    estimate: ReindexEstimate
    bound: float
    gates: list[ReindexGate]
    embedded: int
    reused: int
    reason: str = ""
    ended: datetime | None = None


class Generation(Message):
    """One complete build of a collection."""

    id: int
    role: str  # "serving", "building" or "previous"
    created: datetime
    chunker: str | None = None
    job: ReindexJob | None = None


class ReindexProgress(Message):
    """How far a running job is."""

    documents: int
    of: int
    embedded: int
    reused: int
    rate: float  # documents a second
    seconds_left: float  # 0: not known yet


class Generations(Message):
    """A collection's generations, the serving one first, and the job under way."""

    generations: list[Generation]
    progress: ReindexProgress | None = None


class JudgedQuery(Message):
    """A query with the documents that answer it."""

    query: str
    relevant: Sequence[str]
    principal: Principal


class QuerySet(Message):
    """What principals should find."""

    queries: Sequence[JudgedQuery]


class Status(Message):
    """Of the daemon."""

    status: str


class Snapshot(Message):
    """A snapshot of the daemon's data directory."""

    name: str
    made: datetime
    epoch: int  # every change up to it is in the snapshot
    version: str  # of the program
    policies: str = ""


class CacheSize(Message):
    """How much an embedding cache holds, or how much was removed from it."""

    entries: int
    bytes: int
