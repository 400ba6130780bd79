"""The tools as the protocol's own client uses them, over a running server."""

import asyncio
import json

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from corecube.models import ApiKey, AuditEvent, Compartment
from retrieval.models import Document, SearchRecord

MODES = ["auto", "legacy"]
OUTSIDE = ("zanzibar", "tangerine", "vault", "ledger", "Breach of March", "48,200")


@pytest.fixture
def tool(server):
    """Return a function that calls tools, one after the other, in one session with a key's secret."""

    def run(secret, *calls, mode="auto", headers=None):
        async def session():
            sent = {"Authorization": f"Bearer {secret}"} | (headers or {})
            async with httpx2.AsyncClient(headers=sent, timeout=20) as http:
                transport = streamable_http_client(f"{server}/mcp", http_client=http)
                async with Client(transport, mode=mode) as client:
                    return [await client.call_tool(name, arguments) for name, arguments in calls]

        return asyncio.run(session())

    return run


def said(result):
    return json.dumps(result.structured_content) + "".join(part.text for part in result.content)


@pytest.mark.parametrize("mode", MODES)
def test_the_tools_are_listed_with_what_they_read_and_return(server, world, mode):
    headers = {"Authorization": f"Bearer {world.key('bob')}"}

    async def listed():
        async with (
            httpx2.AsyncClient(headers=headers, timeout=20) as http,
            Client(streamable_http_client(f"{server}/mcp", http_client=http), mode=mode) as client,
        ):
            return client.server_info, (await client.list_tools()).tools

    info, tools = asyncio.run(listed())
    assert info.name == "corecube"
    assert [it.name for it in tools] == ["search", "fetch", "recall", "remember", "evidence"]
    assert {it.name: sorted(it.input_schema["properties"]) for it in tools} == {
        "search": ["preset", "query", "top_k"],
        "fetch": ["id"],
        "recall": ["budget_tokens", "project", "query"],
        "remember": ["confirmed", "kind", "project", "text", "title"],
        "evidence": ["compartments", "section", "section_set", "subject"],
    }
    assert all(it.input_schema["additionalProperties"] is False and it.output_schema for it in tools)


@pytest.mark.parametrize("mode", MODES)
def test_search_then_fetch(tool, world, mode):
    secret = world.key("bob")
    (found,) = tool(secret, ("search", {"query": "rollback staging database", "top_k": 3}), mode=mode)
    first = found.structured_content["results"][0]
    assert "deployctl rollback" in first["snippet"]
    assert json.loads(found.content[0].text) == found.structured_content
    assert first["url"].endswith(f"/documents/{first['id'].replace(':', '/#chunk-')}")
    document_id = first["id"].split(":")[0]
    passage, document = tool(secret, ("fetch", {"id": first["id"]}), ("fetch", {"id": document_id}), mode=mode)
    assert passage.structured_content["text"] == document.structured_content["text"]
    assert passage.structured_content["text"].startswith("Staging\n\nRun deployctl")
    assert (passage.structured_content["url"], passage.structured_content["title"]) == (first["url"], first["title"])
    assert document.structured_content["truncated"] is False
    reads = AuditEvent.objects.filter(action="document.read").values_list("actor__username", "subject")
    assert list(reads) == [("bob", document_id)] * 2
    assert all(it.details["key"] for it in AuditEvent.objects.filter(action="document.read"))
    record = SearchRecord.objects.get(pk=found.structured_content["trace_id"])
    assert (record.user, record.surface, record.top_k) == (world.bob, "agent", 3)


def test_what_is_remembered_is_recalled_first_and_says_where_it_is_from(tool, world):
    text = "We decided that a rollback of staging needs the word of the release captain."
    kept, recalled = tool(
        world.key("bob"),
        ("remember", {"text": text, "kind": "decision", "project": "atlas"}),
        ("recall", {"query": "rollback staging", "project": "atlas", "budget_tokens": 600}),
    )
    assert kept.structured_content["state"] == "indexed"
    items = recalled.structured_content["items"]
    assert (items[0]["text"], items[0]["origin"], items[0]["kind"], items[0]["project"]) == (
        text,
        "memory",
        "decision",
        "atlas",
    )
    assert {it["origin"] for it in items[1:]} == {"documents"}
    assert any("deployctl" in it["text"] for it in items)
    assert recalled.structured_content["token_count"] <= 600


def test_nobody_else_recalls_or_opens_it(tool, world):
    (kept,) = tool(world.key("bob"), ("remember", {"text": "Bob keeps the umbrella codeword heliotrope."}))
    document_id = kept.structured_content["id"]
    for person in ("alice", "charlie"):
        found, recalled, opened = tool(
            world.key(person),
            ("search", {"query": "umbrella codeword heliotrope"}),
            ("recall", {"query": "umbrella codeword heliotrope"}),
            ("fetch", {"id": document_id}),
        )
        # The explanation repeats the words of the question that no document in scope contains.
        explanation = found.structured_content["explanation"]
        told = said(found).replace(explanation, "").replace(json.dumps(explanation), "")
        assert "heliotrope" not in told
        assert recalled.structured_content["items"] == [] or "Bob keeps" not in said(recalled)
        assert (opened.is_error, opened.content[0].text) == (True, "No document with that id is visible to you.")


def test_evidence_is_gathered_for_a_section(tool, world):
    asked = {"subject": "rollback staging database", "section": "obligations"}
    (found,) = tool(world.key("bob"), ("evidence", asked))
    (section,) = found.structured_content["sections"]
    assert (section["section"], section["missing"], section["problem"]) == ("obligations", ["pdf"], "")
    assert {it["source"] for it in section["results"]} == {"Runbooks"}
    record = SearchRecord.objects.get(pk=section["trace_id"])
    assert (record.user, record.surface, record.preset) == (world.bob, "evidence", "consolidated")


def test_what_is_outside_the_scope_is_never_returned(tool, world):
    secrets = Document.objects.exclude(connection=world.runbooks)
    ids = [("fetch", {"id": wanted}) for it in secrets for wanted in (str(it.pk), f"{it.pk}:0")]
    results = tool(
        world.key("bob"),
        ("search", {"query": "the rollback in March, its costs and passphrase"}),
        ("recall", {"query": "the rollback in March, its costs and passphrase"}),
        ("evidence", {"subject": "the rollback in March and its passphrase", "section": "history"}),
        *ids,
    )
    assert not [word for word in OUTSIDE for result in results if word in said(result)]
    assert [result.is_error for result in results] == [False, False, False, *([True] * len(ids))]


WIDER = [
    {"user": "alice"},
    {"scope": {"include": ["ledger"]}},
    {"connection": "ledger"},
    {"principal": "alice"},
    {"overrides": {}},
    {"reveal_excluded": True},
]


def test_no_argument_widens_the_scope(tool, world):
    calls = [
        (name, {("id" if name == "fetch" else "query"): "rollback", **more})
        for name in ("search", "recall", "fetch")
        for more in WIDER
    ]
    for (_, arguments), result in zip(calls, tool(world.key("bob"), *calls), strict=True):
        assert (result.is_error, result.content[0].text.split(":")[0]) == (True, list(arguments)[1])


def test_a_narrowed_key_sees_less_and_cannot_remember(tool, world):
    key, secret = ApiKey.issue(user=world.alice, name="narrow")
    key.compartments.add(Compartment.objects.get(slug="finance"))
    found, kept = tool(secret, ("search", {"query": "rollback"}), ("remember", {"text": "Something."}))
    assert {it["source"] for it in found.structured_content["results"]} == {"Ledger"}
    assert kept.is_error
    assert "not accessible" in kept.content[0].text
    assert not Compartment.objects.filter(slug__startswith="memory").exists()


BAD_CALLS = [
    ("search", {}, "query: "),
    ("search", {"query": "a", "top_k": 51}, "top_k: "),
    ("search", {"query": "a", "preset": "nope"}, "preset"),
    ("search", {"query": "x" * 40_000}, "the maximum is"),
    ("search", {"query": "\x00"}, "query is empty"),
    ("fetch", {"id": "x" * 61}, "id: "),
    ("fetch", {"id": "not an id"}, "visible to you"),
    ("fetch", {"id": "00000000-0000-0000-0000-000000000000:1"}, "visible to you"),
    ("recall", {"query": "a", "budget_tokens": 99}, "budget_tokens: "),
    ("recall", {"query": "a", "budget_tokens": 10**6}, "budget_tokens: "),
    ("remember", {"text": "x" * 50_001}, "text: "),
    ("remember", {"text": " \n"}, "no text"),
    ("remember", {"text": "a", "kind": "dream"}, "kind: "),
    ("remember", {"text": "a", "title": "x" * 201}, "title: "),
    ("forget", {}, "no tool"),
]


def test_a_bad_call_is_told_to_the_agent(tool, world):
    results = tool(world.key("bob"), *((name, arguments) for name, arguments, _ in BAD_CALLS))
    for (name, _, message), result in zip(BAD_CALLS, results, strict=True):
        assert (name, result.is_error, message in result.content[0].text) == (name, True, True), result.content
        assert len(result.content[0].text) < 300
    assert not Compartment.objects.filter(slug__startswith="memory").exists()


def test_a_wrong_key_opens_no_session(tool, world):
    with pytest.raises((httpx2.HTTPStatusError, MCPError, BaseExceptionGroup)):
        tool("cc_wrong", ("search", {"query": "rollback"}))
    assert not SearchRecord.objects.exists()


def test_many_agents_at_once_each_get_their_own(tool, server, world):
    """Requests of two people, interleaved, never see each other's passages."""
    secrets = {name: world.key(name) for name in ("alice", "bob")}

    async def ask(name):
        headers = {"Authorization": f"Bearer {secrets[name]}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            Client(streamable_http_client(f"{server}/mcp", http_client=http)) as client,
        ):
            return name, await client.call_tool("search", {"query": "rollback"})

    async def all_of_them():
        return await asyncio.gather(*(ask(name) for name in ("alice", "bob") * 4))

    for name, result in asyncio.run(all_of_them()):
        sources = {it["source"] for it in result.structured_content["results"]}
        assert sources == ({"Runbooks", "Vault", "Ledger"} if name == "alice" else {"Runbooks"})
