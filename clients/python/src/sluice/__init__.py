"""The Python client of Sluice: authorized retrieval over your documents.

from sluice import Client

with Client("http://127.0.0.1:8080", token=token) as client:
    for result in client.search("handbook", "how long is leave?").results:
        print(result.citation, result.heading_path, result.text)
"""

from msgspec import UNSET

from sluice.client import AsyncClient, Client
from sluice.errors import (
    AnswerError,
    APIError,
    AuthenticationError,
    ConflictError,
    DeadlineError,
    ForbiddenError,
    IncompleteError,
    NotFoundError,
    OverloadedError,
    RequestError,
    ServerError,
    SluiceError,
    TransportError,
    UnavailableError,
)
from sluice.wire import (
    AccessLine,
    AccessPatch,
    AccessPreviewRequest,
    Answer,
    AnswerEvent,
    CollectionSettings,
    Document,
    JudgedQuery,
    OwnVectors,
    Passage,
    PolicyFiles,
    Principal,
    QuerySet,
    Ranking,
    Scope,
    SearchResponse,
    SearchResult,
    Turn,
    WriteResult,
)

__all__ = [
    "UNSET",
    "APIError",
    "AccessLine",
    "AccessPatch",
    "AccessPreviewRequest",
    "Answer",
    "AnswerError",
    "AnswerEvent",
    "AsyncClient",
    "AuthenticationError",
    "Client",
    "CollectionSettings",
    "ConflictError",
    "DeadlineError",
    "Document",
    "ForbiddenError",
    "IncompleteError",
    "JudgedQuery",
    "NotFoundError",
    "OverloadedError",
    "OwnVectors",
    "Passage",
    "PolicyFiles",
    "Principal",
    "QuerySet",
    "Ranking",
    "RequestError",
    "Scope",
    "SearchResponse",
    "SearchResult",
    "ServerError",
    "SluiceError",
    "TransportError",
    "Turn",
    "UnavailableError",
    "WriteResult",
]
