"""A LangChain retriever: pip install 'sluice-client[langchain]'."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field

from sluice.client import AsyncClient, Client
from sluice.wire import Fusion, Scope, SearchResponse, Strategy


class SluiceRetriever(BaseRetriever):
    """Passages of a collection that one principal may read: the one whose token the client has.

    A retriever is cheap: make one for each principal, by client.with_token(token), over one client.
    Without async_client the async calls run the client in a thread.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    client: Client = Field(exclude=True)
    async_client: AsyncClient | None = Field(default=None, exclude=True)
    collection: str
    k: int = 10
    strategy: Strategy | None = None
    fusion: Fusion | None = None
    scope: Scope | None = None

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return _documents(self.client.search(self.collection, query, **self._options()))

    async def _aget_relevant_documents(self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun) -> list[Document]:
        if self.async_client is None:
            return _documents(await asyncio.to_thread(self.client.search, self.collection, query, **self._options()))
        return _documents(await self.async_client.search(self.collection, query, **self._options()))

    def _options(self) -> dict[str, Any]:
        return {"k": self.k, "strategy": self.strategy, "fusion": self.fusion, "scope": self.scope}


def _documents(response: SearchResponse) -> list[Document]:
    return [Document(id=r.citation, page_content=r.text, metadata=r.metadata(response)) for r in response.results]
