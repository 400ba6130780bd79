"""The chat page: asking with and without scripts, events, stopping, rating; and nobody reads what is not theirs."""

import json
import re
import uuid

import pytest
from asgiref.sync import async_to_sync
from django.test import Client

from corecube.models import AuditEvent, Connection, Grant
from retrieval.answers.conversations import writing
from retrieval.models import Conversation, Judgment, Message, SearchRecord

QUESTION = "How do I roll back the staging database?"
#: Words of the vault and the ledger, of which Bob may see nothing, and their names.
HIDDEN = ("zanzibar", "tangerine", "48,200", "breach of", "rollback-costs", "vault", "ledger", "finance", "restricted")
#: Words of the runbooks that nobody has typed.
QUOTED = ("deployctl", "rolling back", "rollback.md")


def page(response):
    if not response.streaming:
        return response.content.decode()

    async def read():
        return b"".join([part async for part in response.streaming_content])

    return async_to_sync(read)().decode()


def events(response):
    """Return the name and data of each event."""
    found = re.findall(r"^event: (\w+)\ndata: (.*)$", page(response), re.MULTILINE)
    return [(name, json.loads(data)) for name, data in found]


def address(answer, what):
    return f"/chat/{answer.conversation_id}/{what}/{answer.pk}/"


@pytest.fixture
def bob(browse):
    return browse("bob")


@pytest.fixture
def asked(bob, htmx):
    """Return an answer that Bob's browser has asked for and not read yet."""
    bob.post("/chat/", {"q": QUESTION}, headers=htmx)
    return Message.objects.get(role="assistant")


@pytest.fixture
def answer(bob):
    """Return a finished answer of Bob's."""
    bob.post("/chat/", {"q": QUESTION})
    return Message.objects.get(role="assistant")


@pytest.mark.parametrize("who", ["alice", "bob", "charlie"])
def test_everybody_has_the_page_and_it_is_the_first_of_the_rail(browse, who):
    response = browse(who).get("/chat/")
    assert response.status_code == 200
    assert response.context["navigation"]()[0].entries[0].label == "Chat"


def test_a_stranger_signs_in_first(world):
    assert Client().get("/chat/").url == "/login/?next=/chat/"
    assert Client().post("/chat/", {"q": "x"}).url.startswith("/login/")


def test_without_scripts_the_page_comes_with_the_whole_answer(bob):
    response = bob.post("/chat/", {"q": QUESTION}, follow=True)
    answer = Message.objects.get(role="assistant")
    assert response.redirect_chain[0][0] == f"/chat/{answer.conversation_id}/#answer-{answer.pk}"
    assert "deployctl rollback" in page(response)
    assert answer.state == "done"


@pytest.mark.parametrize(("who", "is_shown"), [("alice", True), ("bob", False)])
def test_only_admins_see_the_scores_of_sources(browse, who, is_shown):
    shown = page(browse(who).post("/chat/", {"q": QUESTION}, follow=True))
    assert "deployctl rollback" in shown
    assert ('title="Ranking score"' in shown) == is_shown


def test_with_scripts_the_answer_comes_as_events(bob, htmx):
    response = bob.post("/chat/", {"q": "How many minutes does draining the queue take?"}, headers=htmx)
    answer = Message.objects.get(role="assistant")
    assert answer.state == "waiting"
    assert response.headers["HX-Push-Url"] == f"/chat/{answer.conversation_id}/"
    assert address(answer, "events") in page(response)
    told = events(bob.get(address(answer, "events")))
    names = [name for name, _ in told]
    assert names[0] == "search"
    assert names[-1] == "done"
    assert set(names) == {"search", "text", "citation", "done"}
    answer.refresh_from_db()
    assert "".join(data["text"] for name, data in told if name == "text") == answer.text
    assert {it["number"] for _, data in told for it in data.get("citations", ())} <= {1, 2, 3}
    assert told[-1][1] | {"answer": ""} == {"state": "done", "refused": False, "provider": "extractive", "answer": ""}
    assert "four minutes" in page(bob.get(told[-1][1]["answer"], headers=htmx))


def test_events_are_read_once(bob, asked):
    events(bob.get(address(asked, "events")))
    assert [name for name, _ in events(bob.get(address(asked, "events")))] == ["done"]
    assert SearchRecord.objects.count() == 1


def test_asking_needs_the_csrf_token(world):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(world.bob)
    assert strict.post("/chat/", {"q": QUESTION}).status_code == 403
    assert not Message.objects.exists()


def test_a_follow_up_says_what_was_searched_for(bob):
    bob.post("/chat/", {"q": "What does error Q-4711 mean?"})
    conversation = Conversation.objects.get()
    shown = page(bob.post(f"/chat/{conversation.pk}/", {"q": "How long does it take?"}, follow=True))
    assert "How long does it take? (error Q-4711" in shown


@pytest.mark.parametrize("question", ["", "   ", "x" * 32_001])
def test_a_question_that_cannot_be_asked_is_refused_with_what_was_typed(bob, htmx, question):
    response = bob.post("/chat/", {"q": question})
    assert response.status_code in {400, 422}
    assert response.context["failure"]
    assert response.context["asked"] == question
    fragment = bob.post("/chat/", {"q": question}, headers=htmx)
    assert fragment.status_code == response.status_code
    assert page(fragment) == response.context["failure"]
    assert not Conversation.objects.exists()


def test_sources_can_be_chosen_and_nothing_else_is_read(browse, world):
    alice = browse("alice")
    alice.post("/chat/", {"q": "rollback", "narrowed": "1", "source": ["ledger"]})
    conversation = Conversation.objects.get()
    assert conversation.narrowing["include"] == ["ledger"]
    assert SearchRecord.objects.get().connection_ids == [world.ledger.pk]
    shown = alice.get(f"/chat/{conversation.pk}/")
    assert [it.slug for it, is_chosen in shown.context["sources"] if is_chosen] == ["ledger"]
    everything = {"q": "rollback", "narrowed": "1", "source": ["ledger", "runbooks", "vault"]}
    alice.post(f"/chat/{conversation.pk}/", everything)
    assert Conversation.objects.get().narrowing["include"] == []


def test_choosing_no_source_is_refused(bob):
    response = bob.post("/chat/", {"q": QUESTION, "narrowed": "1"})
    assert "at least one source" in response.context["failure"]


@pytest.mark.parametrize("ticked", [["ledger", "vault"], []])
def test_a_refused_question_leaves_the_preset_and_the_sources_as_they_were_chosen(browse, ticked):
    sent = {"q": " ", "preset": "helix", "narrowed": "1", "source": ticked}
    context = browse("alice").post("/chat/", sent).context
    assert context["chosen_preset"] == "helix"
    assert sorted(it.slug for it, is_chosen in context["sources"] if is_chosen) == ticked


@pytest.mark.parametrize("slug", ["vault", "nowhere"])
def test_a_source_outside_the_scope_does_not_exist(bob, slug):
    assert bob.post("/chat/", {"q": QUESTION, "narrowed": "1", "source": [slug]}).status_code == 404


def test_stopping_ends_an_answer_that_waits(bob, asked, htmx):
    assert bob.post(address(asked, "stop"), headers=htmx).status_code == 204
    told = events(bob.get(address(asked, "events")))
    assert [(name, data["state"]) for name, data in told] == [("done", "stopped")]


def test_a_failed_search_is_told_as_an_error(bob, asked, world):
    Conversation.objects.update(narrowing={"include": ["runbooks"], "exclude": []})
    Grant.objects.filter(group__user=world.bob).delete()
    told = events(bob.get(address(asked, "events")))
    assert [(name, data["code"]) for name, data in told] == [("error", "unknown_connection")]


def test_an_answer_whose_search_breaks_has_failed_and_is_not_tried_again(bob, asked, monkeypatch):
    def broken(*_arguments, **_more):
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(writing, "live_search", broken)
        told = events(bob.get(address(asked, "events")))
    assert [(name, data["code"]) for name, data in told] == [("error", "internal_error")]
    told = events(bob.get(address(asked, "events")))
    assert [(name, data["state"]) for name, data in told] == [("done", "failed")]


def test_only_the_process_that_claimed_an_answer_lets_it_wait_again(asked):
    one, other = (Message.objects.get(pk=asked.pk) for _ in range(2))
    assert writing.claimed(one)
    assert not writing.claimed(other)
    writing.unclaim(other)
    assert Message.objects.get(pk=asked.pk).state == "writing"
    writing.unclaim(one)
    assert Message.objects.get(pk=asked.pk).state == "waiting"


def test_asking_anew_answers_in_the_same_place(bob, answer):
    response = bob.post(address(answer, "retry"), follow=True)
    assert response.status_code == 200
    assert Message.objects.filter(role="assistant").get().pk == answer.pk
    assert SearchRecord.objects.count() == 2


def test_thumbs(bob, answer, htmx):
    bob.post(address(answer, "rate"), {"rating": "1"}, headers=htmx)
    assert SearchRecord.objects.get().feedback == 1
    fragment = bob.post(address(answer, "rate"), {"rating": "-1", "number": "1"}, headers=htmx)
    assert fragment.status_code == 200
    assert Judgment.objects.get().grade == 0
    bob.post(address(answer, "rate"), {"rating": "0", "number": "1"})
    assert not Judgment.objects.exists()
    for wrong in ({"rating": "x"}, {"rating": "7"}, {"rating": "1", "number": "y"}):
        assert bob.post(address(answer, "rate"), wrong, headers=htmx).status_code in {400, 422}
    assert bob.post(address(answer, "rate"), {"rating": "1", "number": "99"}, headers=htmx).status_code == 404


def test_a_passage_is_read_between_its_neighbours(bob, answer, htmx):
    response = bob.get(address(answer, "passage") + "1/", headers=htmx)
    assert "deployctl rollback" in page(response)
    assert [block["is_cited"] for block in response.context["passage"]["blocks"]].count(True) == 1
    read = AuditEvent.objects.get(action="document.read")
    assert (read.actor.username, read.subject) == ("bob", answer.passages[0]["document"])
    whole = bob.get(address(answer, "passage") + "1/")
    assert whole.url.startswith("/documents/")
    assert bob.get(whole.url).status_code == 200


def test_conversations_are_renamed_exported_and_deleted(bob, answer):
    base = f"/chat/{answer.conversation_id}"
    assert "Rollback" in page(bob.post(f"{base}/rename/", {"title": "Rollback"}, follow=True))
    assert page(bob.get(f"{base}/export.md")).startswith("# Rollback")
    assert json.loads(page(bob.get(f"{base}/export.json")))["title"] == "Rollback"
    assert bob.get(f"{base}/export.exe").status_code == 404
    bob.post(f"{base}/delete/")
    assert not Message.objects.exists()


def test_deleting_everything_needs_a_tick(bob, answer):
    bob.post("/chat/history/delete/")
    assert Conversation.objects.exists()
    bob.post("/chat/history/delete/", {"sure": "yes"})
    assert not Conversation.objects.exists()


def test_the_list_is_searched(bob, answer, htmx):
    found = bob.get("/chat/history/", {"find": "staging"}, headers=htmx)
    assert str(answer.conversation_id) in page(found)
    assert str(answer.conversation_id) not in page(bob.get("/chat/history/", {"find": "deployctl"}, headers=htmx))
    assert bob.get("/chat/history/", {"find": "x"}).url == "/chat/?find=x"


#: What a stranger could try with somebody's conversation, by method.
WAYS = {
    "page": ("get", ""),
    "ask": ("post", ""),
    "events": ("get", "events"),
    "stop": ("post", "stop"),
    "answer": ("get", "answer"),
    "retry": ("post", "retry"),
    "rate": ("post", "rate"),
    "passage": ("get", "passage"),
    "rename": ("post", "rename/"),
    "delete": ("post", "delete/"),
    "markdown": ("get", "export.md"),
    "json": ("get", "export.json"),
    "share": ("post", "share/"),
    "stop sharing": ("post", "stop-sharing/"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stranger", ["alice", "charlie"])
def test_nobody_reads_or_changes_another_persons_conversation(browse, answer, asked_by_nobody, way, stranger, htmx):
    method, what = WAYS[way]
    path = f"/chat/{answer.conversation_id}/{what}"
    if what and not what.endswith(("/", ".md", ".json")):
        path += f"/{answer.pk}/" + ("1/" if what == "passage" else "")
    client = browse(stranger)
    before = list(Message.objects.values())
    sent = {"q": "x", "title": "x", "rating": "1"}
    responses = [getattr(client, method)(path, sent, headers=headers) for headers in ({}, htmx)]
    unknown = path.replace(str(answer.conversation_id), str(asked_by_nobody)).replace(
        str(answer.pk), str(asked_by_nobody)
    )
    for response in responses:
        assert response.status_code == 404
        assert not [word for word in QUOTED if word in page(response).lower()]
    assert getattr(client, method)(unknown, sent).status_code == 404
    assert list(Message.objects.values()) == before


@pytest.fixture
def asked_by_nobody():
    return uuid.UUID(int=5)


def test_another_persons_conversations_are_not_listed(browse, answer):
    for stranger in ("alice", "charlie"):
        listed = page(browse(stranger).get("/chat/"))
        assert str(answer.conversation_id) not in listed
        assert QUESTION not in listed


@pytest.mark.parametrize("way", ["grant", "disabled"])
def test_what_a_user_may_not_see_any_more_is_nowhere(bob, answer, world, htmx, way):
    if way == "grant":
        Grant.objects.filter(group__user=world.bob).delete()
    else:
        Connection.objects.filter(pk=world.runbooks.pk).update(enabled=False)
    base = f"/chat/{answer.conversation_id}"
    for path in (
        f"{base}/",
        "/chat/",
        "/chat/history/",
        address(answer, "answer"),
        f"{base}/export.md",
        f"{base}/export.json",
    ):
        for headers in ({}, htmx):
            shown = page(bob.get(path, headers=headers)).lower()
            assert not [word for word in (*QUOTED, "runbooks") if word in shown], path
    assert bob.get(address(answer, "passage") + "1/", headers=htmx).status_code == 404
    assert bob.post(address(answer, "rate"), {"rating": "1", "number": "1"}, headers=htmx).status_code == 404
    assert "you can no longer see" in page(bob.get(f"{base}/"))


def test_only_what_is_said_of_documents_is_rated_and_looked_up(bob):
    for question, count in (("Hello", 0), (QUESTION, 1), ("Who paints the moon with cheese?", 1)):
        shown = page(bob.post("/chat/", {"q": question}, follow=True))
        assert [shown.count(it) for it in ("Search details", 'aria-label="Good answer"')] == [count, count], question


def test_bob_is_told_nothing_of_what_he_may_not_see(bob, htmx):
    asks = "rollback zanzibar tangerine breach costs"
    bob.post("/chat/", {"q": asks}, headers=htmx)
    answer = Message.objects.get(role="assistant")
    told = page(bob.get(address(answer, "events")))
    shown = page(bob.get(f"/chat/{answer.conversation_id}/")).replace(asks, "") + told.replace(asks, "")
    unknown = re.sub(r"no document that was searched contains [^.<]*\.", "", shown.lower())
    assert not [word for word in HIDDEN if word in unknown]


@pytest.fixture
def link(bob, answer, htmx):
    """Return the address of Bob's conversation for its readers."""
    panel = page(bob.post(f"/chat/{answer.conversation_id}/share/", headers=htmx))
    return re.search(r"/chat/shared/[0-9a-f-]+/", panel)[0]


def test_a_reader_sees_a_shared_answer_and_cannot_change_anything(browse, answer, link):
    shown = page(browse("alice").get(link))
    assert "Shared by <strong>bob</strong>" in shown
    assert "deployctl" in shown
    assert QUESTION in shown
    for way in ("rate", "retry", "events", "export", "rename", "delete", "share"):
        assert f"/chat/{answer.conversation_id}/{way}" not in shown
    assert str(answer.record_id) not in shown


def test_a_reader_is_told_nothing_of_what_they_may_not_see(browse, link):
    shown = page(browse("charlie").get(link)).lower()
    assert "you cannot open every document" in shown
    assert re.search(r"\d sources? left out", shown)
    assert not [word for word in (*QUOTED, "runbooks") if word in shown]


def test_a_link_needs_a_signed_in_user_and_is_gone_once_it_is_revoked(browse, bob, answer, link):
    assert Client().get(link).url == f"/login/?next={link}"
    bob.post(f"/chat/{answer.conversation_id}/stop-sharing/")
    for reader in (browse("alice"), bob):
        response = reader.get(link)
        assert response.status_code == 404
        assert not [word for word in (*QUOTED, QUESTION.lower()) if word in page(response).lower()]
    assert browse("alice").get(f"/chat/shared/{uuid.UUID(int=5)}/").status_code == 404


def test_the_conversations_own_page_stays_private_when_it_is_shared(browse, answer, link):
    assert browse("alice").get(f"/chat/{answer.conversation_id}/").status_code == 404
    assert browse("alice").get(address(answer, "passage") + "1/").status_code == 404


def test_the_title_bar_of_a_new_conversation_comes_with_the_list(bob, answer, htmx):
    sent = {"current": str(answer.conversation_id), "bar": "1"}
    bar = page(bob.get("/chat/history/", sent, headers=htmx))
    assert 'id="chat-menu" hx-swap-oob="true"' in bar
    assert f"/chat/{answer.conversation_id}/export.md" in bar


def test_nobody_gets_the_title_bar_of_another_persons_conversation(browse, answer, htmx):
    sent = {"current": str(answer.conversation_id), "bar": "1"}
    assert browse("alice").get("/chat/history/", sent, headers=htmx).status_code == 404


def test_the_pages_take_few_queries(bob, answer, django_assert_max_num_queries):
    with django_assert_max_num_queries(22):
        bob.get(f"/chat/{answer.conversation_id}/")
