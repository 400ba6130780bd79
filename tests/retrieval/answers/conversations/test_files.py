"""Files attached to a conversation: searched only in it, seen by nobody else, and gone with it."""

import pytest

from corecube.access import ScopeRequest, scope_for
from corecube.connectors.types import ItemError
from corecube.errors import InvalidRequestError
from corecube.models import AuditEvent, Compartment, Connection, PushedItem
from explorer.pages.log.replay import replay
from retrieval.answers.conversations.asking import ask, start
from retrieval.answers.conversations.files import MAX_BYTES, MAX_FILES, attach, detach, files_of
from retrieval.answers.conversations.reading import exchange_of
from retrieval.answers.conversations.shelf import delete_all, forget_old_conversations
from retrieval.answers.conversations.writing import begin, claimed, finished
from retrieval.ingest.services import queue_sync
from retrieval.models import Chunk, Conversation, Document, Message
from retrieval.records.lifeline.service import Reader, follow
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

QUESTION = "How long does the walrus sleep?"
NOTES = b"# The walrus\n\nThe walrus sleeps nineteen hours in deep water.\n"


@pytest.fixture
def conversation(world):
    made = start(world.bob)
    attach(made, "walrus.md", NOTES)
    return made


def found(principal, **how):
    outcome = search(SearchRequest(text=QUESTION, **how), principal=principal)
    return [hit.chunk.text for hit in outcome.hits if "nineteen hours" in hit.chunk.text]


def test_an_answer_of_the_conversation_quotes_its_file(conversation, answered):
    answer = answered(conversation, QUESTION)
    assert "nineteen hours" in answer.text
    assert [it.name for it in files_of(conversation)] == ["walrus.md"]
    assert files_of(conversation)[0].is_ready


def test_the_other_sources_are_searched_too(conversation, answered):
    assert "deployctl" in answered(conversation, "How do I roll back the staging database?").text


def test_with_chosen_sources_the_file_is_searched_beside_them(world, answered):
    made = start(world.bob, narrowing=ScopeRequest(include=("runbooks",)))
    attach(made, "walrus.md", NOTES)
    assert "nineteen hours" in answered(made, QUESTION).text


def test_no_other_search_of_its_user_finds_it_and_no_other_user(world, conversation, answered):
    assert found(world.principal("bob")) == []
    assert "nineteen" not in answered(start(world.bob), QUESTION).text
    for name in ("alice", "charlie"):
        assert not scope_for(world.principal(name)).allows(conversation.files_id)
        assert found(world.principal(name)) == []
    # Its user opens it like any document.
    assert scope_for(world.principal("bob")).allows(conversation.files_id)
    assert len(found(world.principal("bob"), narrowing=ScopeRequest(include=(conversation.files.slug,)))) == 1


def test_the_explorer_says_that_it_does_not_search_it(world, conversation, answered):
    record = answered(conversation, QUESTION).record
    assert "It does not search files attached to a chat." in replay(record, world.bob).leaves_out
    document = Document.objects.get(connection=conversation.files)
    scope = scope_for(world.principal("bob"))
    outcome = search(SearchRequest(text=QUESTION), principal=world.principal("bob"))
    lost = follow(document.pk, outcome, Reader(scope, frozenset(scope.connection_ids))).lost_at
    assert (lost.fact, lost.remedy) == ("attached to a conversation, and searched only in it", "")


def test_no_list_shows_it(world, conversation, client):
    assert not Connection.objects.listed().filter(is_attached=True).exists()
    client.force_login(world.alice)
    for path in ("/connections/", "/health/", "/find/?q=attached"):
        assert "Attached files" not in client.get(path).content.decode()
    for name in ("alice", "bob"):
        listed = client.get("/api/v1/connections", headers={"Authorization": f"Bearer {world.key(name)}"}).json()
        assert conversation.files.slug not in str(listed)


def test_admins_pages_do_not_show_it_and_cannot_give_access_to_it(world, conversation, client):
    compartment, slug = conversation.files.compartment, conversation.files.slug
    sync = queue_sync(conversation.files, actor=world.bob)
    client.force_login(world.alice)
    pages = ("/access/give/", "/access/compartments/", "/access/clearances/", "/access/users/new/", "/keys/new/")
    for path in (*pages, "/connections/new/push/", "/jobs/", "/overview/jobs/"):
        page = client.get(path)
        assert (page.status_code, "ttached" in page.content.decode()) == (200, False), path
    levels = client.get("/access/compartments/").context["levels"]
    assert sum(count for *_, count in levels) == Connection.objects.listed().count()
    given = {"users": [world.alice.pk], "compartments": [compartment.pk], "clearance": "3"}
    assert "compartments" in client.post("/access/give/", given).context["form"].errors
    change = {
        "compartment": compartment.slug,
        "kind": "user",
        "holder": world.alice.pk,
        "was": "none",
        "clearance": "3",
    }
    assert client.post("/access/clearances/change/", change).status_code == 404
    for path in (slug, f"{slug}/edit", f"{slug}/delete", f"{slug}/sync"):
        assert client.post(f"/connections/{path}/").status_code in {404, 405}, path
    for path in (f"/jobs/{sync.pk}/", f"/connections/{slug}/", f"/access/compartments/{compartment.slug}/"):
        assert client.get(path).status_code == 404
    assert not scope_for(world.principal("alice")).allows(conversation.files_id)


def test_another_file_of_the_same_name_replaces_it(conversation, answered):
    attach(conversation, "C:\\notes\\walrus.md", b"The walrus sleeps two hours.")
    assert [it.name for it in files_of(conversation)] == ["walrus.md"]
    text = answered(conversation, QUESTION).text
    assert ("two hours" in text, "nineteen" in text) == (True, False)


def test_a_removed_file_is_no_longer_found(conversation, answered):
    assert detach(conversation, "walrus.md")
    assert not detach(conversation, "walrus.md")
    assert files_of(conversation) == ()
    assert "nineteen" not in answered(conversation, QUESTION).text


@pytest.mark.parametrize("end", ["delete", "delete_all", "user", "retention"])
def test_files_go_with_their_conversation(world, conversation, settings, end):
    other = start(world.alice)
    attach(other, "walrus.md", NOTES)
    if end == "retention":
        settings.CORECUBE_KEEP_CONVERSATIONS_DAYS = 1
        Conversation.objects.filter(pk=conversation.pk).update(updated_at="2020-01-01T00:00Z")
        forget_old_conversations()
    else:
        {"delete": conversation.delete, "delete_all": lambda: delete_all(world.bob), "user": world.bob.delete}[end]()
    assert [it.conversation for it in Connection.objects.filter(is_attached=True)] == [other]
    assert [it.connection_id for it in PushedItem.objects.all()] == [other.files_id]
    assert Chunk.objects.filter(text__contains="nineteen").count() == 1
    assert Document.objects.filter(external_id="walrus.md").count() == 1
    assert Compartment.objects.filter(slug__startswith="attached-").count() == 1


def test_all_files_of_a_user_are_in_one_private_compartment(world, conversation):
    second = start(world.bob)
    attach(second, "seal.md", b"The seal sleeps too.")
    assert second.files.compartment == conversation.files.compartment
    (grant,) = second.files.compartment.grants.all()
    assert (grant.user, grant.clearance) == (world.bob, 3)
    told = AuditEvent.objects.filter(subject__startswith="attached-").values_list("action", flat=True)
    assert sorted(told) == ["compartment.private_created", *["connection.private_created"] * 2]
    assert "nineteen" not in str(list(AuditEvent.objects.values_list("details", flat=True)))


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.md", b"", "empty"),
        ("a.md", b"x" * (MAX_BYTES + 1), "larger than 20 MB"),
        ("", b"x", "no valid name"),
        ("a\nb.md", b"x", "no valid name"),
        ("a.exe", b"MZ\0\0", "a.exe: This is a program"),
        ("a.png", b"\x89PNG\r\n\0", "a.png: This is an image"),
    ],
)
def test_a_file_that_cannot_be_taken_is_refused_and_leaves_nothing(world, name, content, problem):
    made = start(world.bob)
    with pytest.raises(InvalidRequestError, match=problem):
        attach(made, name, content)
    assert not Connection.objects.filter(is_attached=True).exists()


def test_an_unreadable_file_is_refused(world):
    made = start(world.bob)
    with pytest.raises(ItemError):
        attach(made, "a.json", b"{not json")
    assert files_of(made) == ()


def test_there_is_a_limit_to_their_number(conversation):
    PushedItem.objects.bulk_create(
        PushedItem(
            connection=conversation.files, external_id=f"{number}.md", name="x", version="", content=b"x", facts={}
        )
        for number in range(MAX_FILES - 1)
    )
    attach(conversation, "walrus.md", NOTES + b"More.")
    with pytest.raises(InvalidRequestError, match="at most 10 files"):
        attach(conversation, "one-more.md", NOTES)


def test_a_large_file_waits_for_a_worker(conversation):
    attach(conversation, "report.pdf", b"%PDF-1.4 not yet read")
    by_name = {it.name: it for it in files_of(conversation)}
    assert by_name["report.pdf"].is_reading
    assert not by_name["walrus.md"].is_reading
    assert conversation.files.syncs.filter(status="queued").exists()


def test_a_user_who_may_no_longer_see_it_reads_no_answer_from_it(world, conversation):
    asked = ask(conversation, QUESTION)
    assert claimed(asked)
    finished(begin(asked))
    conversation.files.compartment.grants.all().delete()
    answer = Message.objects.select_related("conversation__user").get(pk=asked.pk)
    assert exchange_of(answer, world.principal("bob")).withheld
