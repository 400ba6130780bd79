"""Documents as resources, the prompts, and what the server says that it offers."""

import pytest
from mcp import MCPError

from corecube.models import AuditEvent
from retrieval.agents import resources
from retrieval.models import Document

MODES = ["auto", "legacy"]
SENTENCE = "No document with that id is visible to you."


def uri_of(document):
    return f"corecube://documents/{document.pk}"


@pytest.mark.parametrize("mode", MODES)
def test_the_documents_in_scope_are_listed_and_no_others(session, world, mode):
    async def listed(client):
        found = await client.list_resources()
        return client.server_capabilities, {it.uri: (it.name, it.description) for it in found.resources}, found

    for user, connections in (("bob", [world.runbooks]), ("alice", [world.runbooks, world.vault, world.ledger])):
        offered, told, found = session(world.key(user), listed, mode)
        documents = Document.objects.filter(connection__in=connections).select_related("connection")
        assert told == {uri_of(it): (it.title, f"Document of {it.connection.name}") for it in documents}
        assert found.next_cursor is None
        assert (offered.tools.list_changed, offered.prompts.list_changed) == (False, False)
        assert (offered.resources.subscribe, offered.resources.list_changed) == (True, False)
    assert session(world.key("charlie"), listed, mode)[1] == {}


def test_the_list_comes_in_pages(session, world, monkeypatch):
    monkeypatch.setattr(resources, "PAGE", 2)

    async def pages(client):
        found, cursor = [], None
        while True:
            page = await client.list_resources(cursor=cursor)
            found.append([it.uri for it in page.resources])
            if (cursor := page.next_cursor) is None:
                return found

    found = session(world.key("alice"), pages)
    ids = list(Document.objects.order_by("pk"))
    assert [len(it) for it in found] == [2] * (len(ids) // 2) + [1] * (len(ids) % 2)
    assert [uri for page in found for uri in page] == [uri_of(it) for it in ids]

    async def nonsense(client):
        await client.list_resources(cursor="nonsense")

    with pytest.raises((MCPError, BaseExceptionGroup)):
        session(world.key("bob"), nonsense)


@pytest.mark.parametrize("mode", MODES)
def test_a_document_is_read_and_its_reading_recorded(session, world, mode):
    document = Document.objects.get(external_id="rollback.md")

    async def read(client):
        (template,) = (await client.list_resource_templates()).resource_templates
        (content,) = (await client.read_resource(uri_of(document))).contents
        return template, content

    template, content = session(world.key("bob"), read, mode)
    assert template.uri_template == "corecube://documents/{id}"
    assert (content.uri, content.mime_type) == (uri_of(document), "text/plain")
    assert "deployctl rollback" in content.text
    assert content.meta["title"] == document.title
    event = AuditEvent.objects.get(action="document.read")
    assert (event.actor, event.subject) == (world.bob, str(document.pk))


def test_what_is_outside_the_scope_is_not_read(session, world):
    hidden = [uri_of(it) for it in Document.objects.exclude(connection=world.runbooks)]
    wrong = [f"{hidden[0]}:0", "corecube://documents/", "corecube://documents/nope", "file:///etc/passwd", "x" * 5000]

    async def refusals(client):
        told = []
        for uri in (*hidden, *wrong):
            try:
                await client.read_resource(uri)
            except MCPError as error:
                told.append(error.error.message)
        return told

    assert session(world.key("bob"), refusals) == [SENTENCE] * len((*hidden, *wrong))
    assert not AuditEvent.objects.filter(action="document.read").exists()


@pytest.mark.parametrize("mode", MODES)
def test_prompts_hold_the_words_of_the_user(session, world, mode):
    arguments = {
        "ask": {"question": "How long is $leave {x}?"},
        "compare": {"first": "Mars", "second": "Venus"},
        "evidence": {"statement": "The rollback failed."},
    }

    async def prompts(client):
        listed = (await client.list_prompts()).prompts
        got = {it.name: await client.get_prompt(it.name, arguments[it.name]) for it in listed}
        return {it.name: {a.name for a in it.arguments} for it in listed}, got

    listed, got = session(world.key("bob"), prompts, mode)
    assert listed == {name: set(given) for name, given in arguments.items()}
    for name, given in arguments.items():
        (message,) = got[name].messages
        assert message.role == "user"
        assert all(word in message.content.text for word in given.values())
        assert "$first" not in message.content.text


@pytest.mark.parametrize(
    ("name", "given"), [("nope", {}), ("ask", {}), ("ask", {"question": ""}), ("ask", {"question": "a", "user": "b"}),
                        ("ask", {"question": "x" * 2001})]
)  # fmt: skip
def test_other_prompts_and_arguments_are_refused(session, world, name, given):
    async def ask(client):
        with pytest.raises(MCPError):
            await client.get_prompt(name, given)

    session(world.key("bob"), ask)
