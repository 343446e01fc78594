"""Both clients against the real daemon."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from conftest import Daemon, Either

from sluice import (
    AccessLine,
    AccessPatch,
    AccessPreviewRequest,
    CollectionSettings,
    ConflictError,
    Document,
    ForbiddenError,
    JudgedQuery,
    NotFoundError,
    Passage,
    Principal,
    QuerySet,
    Ranking,
    RequestError,
    Scope,
    errors,
)


def keys(response: Any) -> set[str]:
    return {r.document for r in response.results}


async def test_searches_show_what_the_principal_may_read(daemon: Daemon, root: Either) -> None:
    seen = {}
    for name in ("root", "ann", "bob"):
        answer = await root.as_token(daemon.keys[name])("search", "handbook", "annual", k=100)
        assert answer.degraded == []
        assert answer.counts.visible == len(keys(answer))
        seen[name] = keys(answer)
    assert seen == {
        "root": {"leave.md", "travel.md", "salaries.md"},
        "ann": {"leave.md", "travel.md"},
        "bob": {"travel.md"},
    }


async def test_a_result_names_its_place(daemon: Daemon, root: Either) -> None:
    answer = await root(
        "search",
        "handbook",
        "thirty days of annual leave",
        k=1,
        strategy="hybrid",
        fusion="rrf",
        ranking=Ranking(rrf_constant=7),
        explain=True,
    )
    (result,) = answer.results
    assert answer.ranking.rrf_constant == 7
    document = await root("document", "handbook", "leave.md")
    assert (answer.strategy, result.document, result.version) == ("hybrid", "leave.md", document.version)
    assert result.headings[-1] == "Annual leave"
    assert result.heading_path.endswith("Leave > Annual leave")
    assert document.text.encode()[result.start : result.end].decode() == result.text
    assert result.citation == f"leave.md@{result.version}:{result.start}-{result.end}"
    assert set(result.explain.legs) == {"dense", "lexical"}
    assert result.explain.legs["lexical"].rank == 1


async def test_without_a_chat_model_an_answer_is_its_evidence(daemon: Daemon, root: Either) -> None:
    answer = await root.as_token(daemon.keys["ann"])("answer", "handbook", "How many days of annual leave are there?")
    assert (answer.outcome, answer.sentences, answer.usage.calls) == ("evidence", [], 0)
    assert "thirty days" in answer.passages[0].text
    assert {p.document for p in answer.passages} == {"leave.md", "travel.md"}


async def test_unicode(daemon: Daemon, root: Either) -> None:
    key, text = "ключ/漢字 ?#%2F;ü 🚢", "# Größe 🚢\n\nDas Schiff heißt 漢字 und ist 30 m lang. \U0001f469‍\U0001f680"
    await root("create_collection", "unicode", CollectionSettings(analyzer="german"))
    await root("write", "unicode", Document(key=key, title="„Titel“ 漢", format="markdown", text=text, attributes={"größe": "ß"}))
    document = await root("document", "unicode", key)
    assert (document.key, document.title, document.attributes) == (key, "„Titel“ 漢", {"größe": "ß"})
    (result, *_) = (await root("search", "unicode", "Wie heißt das Schiff? 漢字")).results
    assert (result.document, result.headings[-1]) == (key, "Größe 🚢")
    assert document.text.encode()[result.start : result.end].decode() == result.text
    await root("delete", "unicode", key)
    with pytest.raises(NotFoundError):
        await root("document", "unicode", key)


async def test_who_may_do_what(daemon: Daemon, root: Either) -> None:
    stranger, reader = root.as_token("sluice_" + "x" * 43), root.as_token(daemon.keys["bob"])
    for call in (("search", "handbook", "q"), ("ingest", "handbook", [Document(key="k")]), ("watch_reindex", "handbook")):
        with pytest.raises(errors.AuthenticationError, match="send a valid token") as caught:
            await stranger(*call)
        assert caught.value.request_id
    for call in (("create_collection", "mine"), ("ingest", "handbook", [Document(key="k")]), ("watch_reindex", "handbook")):
        with pytest.raises(ForbiddenError, match="your role does not allow this"):
            await reader(*call)
    with pytest.raises(NotFoundError, match="or you may not read it") as forbidden:
        await reader("document", "handbook", "leave.md")
    with pytest.raises(NotFoundError) as missing:
        await reader("document", "handbook", "nowhere.md")
    assert str(forbidden.value) == str(missing.value)


async def test_impersonation(root: Either) -> None:
    bob = Either(root.client.with_impersonation(Principal("bob", groups=["größe"])))
    assert keys(await bob("search", "handbook", "annual")) == {"travel.md"}
    assert [d.key for d in await bob("documents", "handbook")] == ["travel.md"]
    with pytest.raises(RequestError, match="X-Sluice-Impersonate"):
        await bob("write", "handbook", Document(key="k", format="text", text="t"))


async def test_requests_at_fault(root: Either) -> None:
    with pytest.raises(RequestError, match="k: ") as caught:
        await root("search", "handbook", "q", k=101)
    assert caught.value.status == 400
    with pytest.raises(ConflictError, match="settings are fixed at creation"):
        await root("create_collection", "handbook", CollectionSettings(analyzer="german"))
    for key in ("..", "."):
        with pytest.raises(RequestError, match="not normalised"):
            await root("delete", "handbook", key)


async def test_documents_are_listed_page_by_page(root: Either, new_collection: str) -> None:
    documents = [Document(key=f"k{i:04}", passages=[Passage(vector=[1, i])]) for i in range(1005)]
    results = await root("ingest", new_collection, documents)
    assert [(r.line, r.key, r.status) for r in results] == [(i + 1, d.key, "created") for i, d in enumerate(documents)]
    listed = await root("documents", new_collection)
    assert sorted(d.key for d in listed) == [d.key for d in documents]
    page = await root("list_documents", new_collection, limit=10)
    assert len(page.documents) == 10
    assert (await root("list_documents", new_collection, after=page.next, limit=1000)).documents[0].key == listed[10].key


async def test_a_bad_line_fails_alone(root: Either, new_collection: str) -> None:
    good = [Document(key=f"k{i}", passages=[Passage(vector=[1, i])]) for i in range(1200)]
    good[1100] = Document(key="bad", passages=[Passage(vector=[1, 2, 3])])
    results = await root("ingest", new_collection, good)
    (failed,) = [r for r in results if r.status != "created"]
    assert (failed.line, failed.key, failed.status, failed.error.status) == (1101, "bad", "failed", 400)
    assert [r.status for r in await root("ingest", new_collection, good[:3])] == ["unchanged"] * 3
    assert await root("ingest", new_collection, []) == []


async def test_what_is_ingested_is_taken_as_it_is_sent(daemon: Daemon, new_collection: str) -> None:
    taken = 0

    def documents() -> Iterator[Document]:
        nonlocal taken
        for i in range(5000):
            taken += 1
            yield Document(key=f"k{i}", passages=[Passage(vector=[1, i])])

    async def later() -> AsyncIterator[Document]:
        for document in documents():
            yield document

    with daemon.client("root") as client:
        assert next(client.ingest(new_collection, documents())).status == "created"
    assert taken == 1001
    async with daemon.async_client("root") as async_client:
        assert (await anext(async_client.ingest(new_collection, later()))).status == "unchanged"
    assert taken == 2002


async def test_huge_results(root: Either, new_collection: str) -> None:
    passages = [Passage(text=f"passage {i} " + "ü" * 250_000, vector=[1, i]) for i in range(20)]
    await root("write", new_collection, Document(key="huge", passages=passages))
    document = await root("document", new_collection, "huge")
    assert len(document.text.encode()) > 8_000_000
    answer = await root("search", new_collection, vector=[1, 0], k=20)
    assert {r.text for r in answer.results} == {p.text for p in passages}


async def test_access(daemon: Daemon, root: Either, new_collection: str) -> None:
    ann = root.as_token(daemon.keys["ann"])
    await root(
        "write", new_collection, Document(key="a", passages=[Passage(text="harbour", vector=[1, 0])], readers=["user:ann"])
    )
    await root("write", new_collection, Document(key="b", passages=[Passage(text="harbour", vector=[1, 1])], readers=[]))
    assert keys(await ann("search", new_collection, "harbour")) == {"a"}
    supposed = AccessPreviewRequest(changes=[AccessLine(key="b", readers=["group:staff"])], principals=[Principal("ann")])
    preview = await root("preview_access", new_collection, supposed)
    assert (preview.gained, preview.lost, preview.differences[0].gained) == (1, 0, ["b"])
    why = await root("explain_access", new_collection, Principal("ann"), "b")
    assert (why.reads, why.readers.declared, why.configured) == (False, True, True)
    results = await root("import_access", new_collection, [AccessLine(key="b", readers=["group:staff"]), AccessLine(key="none")])
    assert [(r.line, r.status) for r in results] == [(1, "access_updated"), (2, "failed")]
    assert keys(await ann("search", new_collection, "harbour")) == {"a", "b"}
    await root("set_access", new_collection, "a", AccessPatch(readers=[]))
    assert keys(await ann("search", new_collection, "harbour")) == {"b"}
    assert (await root("set_access", new_collection, "a", AccessPatch(readers=None))).status == "access_updated"
    assert keys(await ann("search", new_collection, "harbour")) == {"a", "b"}


async def test_scopes(root: Either, new_collection: str) -> None:
    now = datetime.now(timezone.utc)
    await root(
        "write",
        new_collection,
        Document(key="old", passages=[Passage(text="quay", vector=[1, 0])], regions=["EU"], valid_until=now - timedelta(days=1)),
    )
    ask = ("search", new_collection, "quay")
    assert keys(await root(*ask)) == set()
    assert keys(await root(*ask, scope=Scope(any_time=True, any_region=True))) == {"old"}
    assert keys(await root(*ask, scope=Scope(as_of=now - timedelta(days=2), region="EU"))) == {"old"}
    assert keys(await root(*ask, scope=Scope(as_of=now - timedelta(days=2), region="US"))) == set()
    await root("set_access", new_collection, "old", AccessPatch(valid_until=None, regions=None))
    assert keys(await root(*ask)) == {"old"}


async def test_reindex(root: Either) -> None:
    name = f"rebuilt-{type(root.client).__name__}"
    await root("create_collection", name)
    text = "\n\n".join(f"## Part {i}\n\nThe {i}. ship left." for i in range(3))
    await root("ingest", name, [Document(key=f"k{i}", format="markdown", text=f"# Report {i}\n\n{text}") for i in range(5)])
    await root("set_queries", name, QuerySet([JudgedQuery("Which ship left?", ["k1"], Principal("ann"))]))
    assert (await root("queries", name)).queries[0].relevant == ["k1"]
    estimate = await root("estimate_reindex", name, "structure/1")
    assert estimate.documents == 5
    started = await root("start_reindex", name, "structure/1", bound=1.0)
    assert {g.role for g in started.generations} >= {"serving"}
    states = await root("watch_reindex", name)
    last = states[-1]
    assert last.progress is None
    assert [(g.role, g.chunker) for g in last.generations] == [("serving", "structure/1"), ("previous", None)]
    assert last.generations[0].job.state == "switched"
    assert {gate.name for gate in last.generations[0].job.gates} == {"structure", "authorization", "relevance"}
    back = await root("change_reindex", name, "rollback")
    assert back.generations[0].chunker is None
    assert (await root("generations", name)).generations == back.generations
    with pytest.raises(ConflictError):
        await root("change_reindex", name, "pause")


async def test_the_daemon_itself(daemon: Daemon, root: Either) -> None:
    await root("health")
    await root("ready")
    assert "sluice_" in await root("metrics")
    assert (await root("openapi"))["info"]["title"] == "Sluice"
    who = await root("identity")
    assert (who.tenant, who.subject, who.groups, who.role) == ("acme", "root", ["staff"], "admin")
    assert (await root("policies")).files
    with pytest.raises(NotFoundError):
        await root("demo")
    settings = await root("collection", "vectors")
    assert settings in (await root("collections")).collections
    assert (settings.own_vectors.dimensions, settings.model) == (2, "")
    admin = Either(type(root.client)(daemon.admin_url))
    name = f"python-{type(root.client).__name__}"
    made = await admin("snapshot", name)
    assert (made.name, made.epoch > 0) == (name, True)
    with pytest.raises(ConflictError):
        await admin("snapshot", name)
    assert (await admin("cache_size")).entries > 0
    assert (await admin("prune_cache", timedelta(days=1))).entries == 0
    await admin("aclose" if name.endswith("AsyncClient") else "close")
