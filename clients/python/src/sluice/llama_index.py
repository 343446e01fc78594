"""A LlamaIndex retriever: pip install 'sluice-client[llama-index]'."""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.callbacks import CallbackManager
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode

from sluice.client import AsyncClient, Client
from sluice.wire import Fusion, Scope, SearchResponse, SearchResult, Strategy

_SHOWN = ("title", "heading_path")  # to language models; the rest is for the program


class SluiceRetriever(BaseRetriever):
    """Passages of a collection that one principal may read: the one whose token the client has.

    A retriever is cheap: make one for each principal, by client.with_token(token), over one client.
    Without async_client the async calls run the client in a thread.
    """

    def __init__(
        self,
        client: Client,
        collection: str,
        *,
        async_client: AsyncClient | None = None,
        k: int = 10,
        strategy: Strategy | None = None,
        fusion: Fusion | None = None,
        scope: Scope | None = None,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        self._client = client
        self._async_client = async_client
        self._collection = collection
        self._options: dict[str, Any] = {"k": k, "strategy": strategy, "fusion": fusion, "scope": scope}

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(self._client.search(self._collection, query_bundle.query_str, **self._options))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query = query_bundle.query_str
        if self._async_client is None:
            return _nodes(await asyncio.to_thread(self._client.search, self._collection, query, **self._options))
        return _nodes(await self._async_client.search(self._collection, query, **self._options))


def _nodes(response: SearchResponse) -> list[NodeWithScore]:
    return [NodeWithScore(node=_node(r, response), score=r.score) for r in response.results]


def _node(result: SearchResult, response: SearchResponse) -> TextNode:
    metadata = result.metadata(response)
    hidden = [name for name in metadata if name not in _SHOWN]
    return TextNode(
        id_=result.citation,
        text=result.text,
        metadata=metadata,
        excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=hidden,
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=result.document)},
    )
