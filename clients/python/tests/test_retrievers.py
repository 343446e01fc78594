"""The retrievers, with the libraries that they are for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from conftest import Daemon
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode, NodeWithScore

from sluice import Client, NotFoundError, TransportError
from sluice.langchain import SluiceRetriever as LangChainRetriever
from sluice.llama_index import SluiceRetriever as LlamaIndexRetriever

QUESTION = "How many days of annual leave are there?"


@pytest.fixture
def client(daemon: Daemon) -> Iterator[Client]:
    with Client(daemon.url) as one:
        yield one


def check_metadata(metadata: dict[str, object], text: str) -> None:
    assert metadata["document"] == "leave.md"
    assert str(metadata["heading_path"]).endswith("Leave > Annual leave")
    assert metadata["headings"] == str(metadata["heading_path"]).split(" > ")
    assert metadata["citation"] == f"leave.md@{metadata['version']}:{metadata['start']}-{metadata['end']}"
    assert metadata["degraded"] == []
    assert isinstance(metadata["score"], float)
    assert "thirty days" in text


def found(documents: list[Document]) -> set[str]:
    return {d.metadata["document"] for d in documents}


async def test_langchain(daemon: Daemon, client: Client) -> None:
    ann = LangChainRetriever(client=client.with_token(daemon.keys["ann"]), collection="handbook", k=3)
    bob = LangChainRetriever(client=client.with_token(daemon.keys["bob"]), collection="handbook", k=3)
    documents = ann.invoke(QUESTION)
    check_metadata(documents[0].metadata, documents[0].page_content)
    assert documents[0].id == documents[0].metadata["citation"]
    assert found(documents) == {"leave.md", "travel.md"}
    assert found(bob.invoke(QUESTION)) == {"travel.md"}
    assert await ann.ainvoke(QUESTION) == documents
    async with daemon.async_client("ann") as async_client:
        both = LangChainRetriever(client=ann.client, async_client=async_client, collection="handbook", k=3)
        assert await asyncio.gather(*(both.ainvoke(QUESTION) for _ in range(5))) == [documents] * 5
        assert await both.abatch([QUESTION, QUESTION]) == [documents] * 2
    sparse = LangChainRetriever(client=ann.client, collection="handbook", k=1, strategy="sparse", fusion=None)
    assert [d.metadata["document"] for d in sparse.invoke("trains")] == ["travel.md"]


def test_langchain_in_a_chain(daemon: Daemon, client: Client) -> None:
    retriever = LangChainRetriever(client=client.with_token(daemon.keys["ann"]), collection="handbook", k=1)
    seen: list[str] = []

    def joined(documents: list[Document]) -> str:
        seen.extend(d.page_content for d in documents)
        return "\n".join(d.page_content for d in documents)

    prompt = ChatPromptTemplate.from_template("{context}\n\n{question}")
    model = FakeListChatModel(responses=["thirty"])
    chain = {"context": retriever | joined, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()
    assert chain.invoke(QUESTION) == "thirty"
    assert "thirty days" in seen[0]


def test_no_token_leaves_a_retriever(daemon: Daemon, client: Client) -> None:
    secret = daemon.keys["ann"]
    chain = LangChainRetriever(client=client.with_token(secret), collection="handbook")
    index = LlamaIndexRetriever(client.with_token(secret), "handbook")
    for text in (repr(chain), chain.model_dump_json(), str(chain.to_json()), repr(index)):
        assert secret not in text


async def test_llama_index(daemon: Daemon, client: Client) -> None:
    ann = LlamaIndexRetriever(client.with_token(daemon.keys["ann"]), "handbook", k=3)
    bob = LlamaIndexRetriever(client.with_token(daemon.keys["bob"]), "handbook", k=3)
    nodes = ann.retrieve(QUESTION)
    first = nodes[0]
    check_metadata(first.node.metadata, first.text)
    assert (first.score, first.node.node_id) == (first.node.metadata["score"], first.node.metadata["citation"])
    assert first.node.source_node is not None
    assert first.node.source_node.node_id == "leave.md"
    shown = first.node.get_content(MetadataMode.LLM)
    assert "heading_path: " in shown
    assert "citation" not in shown

    def keys(nodes: list[NodeWithScore]) -> set[str]:
        return {n.node.metadata["document"] for n in nodes}

    assert (keys(nodes), keys(bob.retrieve(QUESTION))) == ({"leave.md", "travel.md"}, {"travel.md"})
    assert await ann.aretrieve(QUESTION) == nodes
    async with daemon.async_client("ann") as async_client:
        both = LlamaIndexRetriever(client.with_token(daemon.keys["ann"]), "handbook", async_client=async_client, k=3)
        assert await both.aretrieve(QUESTION) == nodes


def test_llama_index_in_a_query_engine(daemon: Daemon, client: Client) -> None:
    retriever = LlamaIndexRetriever(client.with_token(daemon.keys["ann"]), "handbook", k=2)
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
    answer = engine.query(QUESTION)
    assert "thirty days" in str(answer)
    assert answer.source_nodes[0].node.metadata["document"] == "leave.md"


async def test_what_fails_is_raised(daemon: Daemon, client: Client) -> None:
    ann = client.with_token(daemon.keys["ann"])
    chain, index = LangChainRetriever(client=ann, collection="nowhere"), LlamaIndexRetriever(ann, "nowhere")
    for ask in (chain.invoke, index.retrieve):
        with pytest.raises(NotFoundError):
            ask(QUESTION)
    for ask_async in (chain.ainvoke, index.aretrieve):
        with pytest.raises(NotFoundError):
            await ask_async(QUESTION)
    with Client("http://127.0.0.1:1", retries=0) as gone, pytest.raises(TransportError):
        LangChainRetriever(client=gone, collection="handbook").invoke(QUESTION)
