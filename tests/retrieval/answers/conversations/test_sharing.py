"""A shared conversation: its reader sees no more than they could find alone, its link ends when its owner says so."""

import pytest
from django.utils import timezone

from corecube.access import ScopeRequest
from corecube.models import AuditEvent, Connection, Grant, User
from corecube.scope import Sensitivity
from retrieval.answers.conversations.asking import change, rate_answer, rate_citation, start
from retrieval.answers.conversations.sharing import (
    questions_not_shared,
    share,
    shared_conversation,
    shared_exchanges,
    stop_sharing,
)
from retrieval.errors import UnknownConversationError
from retrieval.ingest.sync import sync_connection
from retrieval.models import Conversation, Document, Message

#: Words of the ledger and the vault, and the names of their connections: Bob may see neither.
HIDDEN = ("48,200", "tangerine", "zanzibar", "ledger", "vault", "costs", "breach")


def told(shared):
    """Return all that a page could show of an exchange, without the message itself."""
    return repr(shared).replace(repr(shared.exchange.answer), "").lower()


@pytest.fixture
def shared_by_alice(world, talk):
    """Return a function that asks in a new conversation of Alice's and shares it."""

    def begun(question="How do I roll back the staging database?", **how):
        conversation = talk("alice", question, **how).conversation
        share(conversation)
        return conversation

    return begun


def test_a_reader_with_the_same_access_sees_the_answer(world, shared_by_alice):
    conversation = shared_by_alice(narrowing=ScopeRequest(include=("runbooks",)))
    (shared,) = shared_exchanges(conversation, world.bob)
    assert "deployctl" in shared.exchange.text
    assert shared.exchange.cited[0].title
    assert shared.left_out == 0


def test_an_answer_is_withheld_from_a_reader_who_may_not_see_what_it_cites(world, shared_by_alice):
    conversation = shared_by_alice("What did the rollback in March cost?", narrowing=ScopeRequest(include=("ledger",)))
    assert "48,200" in shared_exchanges(conversation, world.alice)[0].exchange.text
    (shared,) = shared_exchanges(conversation, world.bob)
    assert (shared.exchange.withheld, shared.exchange.text, shared.exchange.references) == (True, "", ())
    assert shared.left_out == len(shared_exchanges(conversation, world.alice)[0].exchange.cited) > 0
    assert not [word for word in HIDDEN if word in told(shared).replace("what did the rollback in march cost", "")]


def test_an_answer_is_withheld_even_if_only_a_passage_that_it_does_not_cite_is_hidden(world, shared_by_alice):
    conversation = shared_by_alice()
    answer = conversation.messages.get(role="assistant")
    assert {it["connection"] for it in answer.passages if it["cited"]} == {world.runbooks.pk}
    (shared,) = shared_exchanges(conversation, world.bob)
    assert shared.exchange.withheld
    assert [it.connection for it in shared.exchange.cited] == ["Runbooks"]
    assert not [word for word in HIDDEN if word in told(shared)]


def test_a_reader_without_any_access_sees_the_questions_only(world, shared_by_alice):
    conversation = shared_by_alice(narrowing=ScopeRequest(include=("runbooks",)))
    nobody = User.objects.create_user("nobody")
    (shared,) = shared_exchanges(conversation, nobody)
    assert (shared.exchange.question, shared.exchange.text) == ("How do I roll back the staging database?", "")
    assert not [word for word in ("deployctl", "rolling back", "runbooks") if word in told(shared)]


@pytest.mark.parametrize("way", ["grant", "sensitivity", "disabled", "deleted document"])
def test_access_is_checked_whenever_the_link_is_opened(world, shared_by_alice, way):
    conversation = shared_by_alice(narrowing=ScopeRequest(include=("runbooks",)))
    if way == "grant":
        Grant.objects.filter(group__user=world.bob).delete()
    elif way == "deleted document":
        Document.objects.filter(connection=world.runbooks).delete()
    else:
        changes = {"enabled": False} if way == "disabled" else {"sensitivity": Sensitivity.RESTRICTED}
        Connection.objects.filter(pk=world.runbooks.pk).update(**changes)
    (shared,) = shared_exchanges(conversation, world.bob)
    assert shared.exchange.withheld
    assert not [word for word in ("deployctl", "rolling back") if word in told(shared)]


def _changed(world):
    (world.root / "runbooks" / "rollback.md").write_text("# Rolling back\n\nThis was redacted.\n")
    sync_connection(world.runbooks)


def test_a_text_that_was_redacted_is_not_shared_by_the_answer_that_quotes_it(world, shared_by_alice):
    conversation = shared_by_alice(narrowing=ScopeRequest(include=("runbooks",)))
    _changed(world)
    (shared,) = shared_exchanges(conversation, world.bob)
    assert shared.exchange.withheld
    assert "deployctl" not in told(shared)


def test_a_model_may_repeat_any_text_that_it_was_given(world, talk):
    answer = talk("alice", "What does error Q-4711 mean?", narrowing=ScopeRequest(include=("runbooks",)))
    cited = {it["document"] for it in answer.passages if it["cited"]}
    assert str(Document.objects.get(external_id="rollback.md").pk) not in cited
    assert len(answer.passages) > len(cited)
    share(answer.conversation)
    _changed(world)
    assert not shared_exchanges(answer.conversation, world.bob)[0].exchange.withheld
    Message.objects.filter(pk=answer.pk).update(is_extractive=False)
    assert shared_exchanges(answer.conversation, world.bob)[0].exchange.withheld


def test_a_refusal_does_not_say_what_the_owners_sources_lack(world, shared_by_alice):
    conversation = shared_by_alice("quokka bandicoot", narrowing=ScopeRequest(include=("runbooks",)))
    answer = conversation.messages.get(role="assistant")
    assert answer.is_refused
    assert answer.text
    (shared,) = shared_exchanges(conversation, world.bob)
    assert (shared.exchange.text, shared.exchange.notices, shared.exchange.unsupported) == ("", (), ())
    assert shared.exchange.is_refused


def test_ratings_scores_and_the_search_text_are_not_shared(world, answered):
    conversation = start(world.bob)
    answered(conversation, "What does error Q-4711 mean?")
    answer = answered(conversation, "How long does it take?")
    rate_answer(answer, -1)
    rate_citation(answer, next(it["number"] for it in answer.passages), 1)
    share(conversation)
    for shared in shared_exchanges(conversation, world.alice):
        assert shared.exchange.standalone == ""
        assert {(it.rating, it.score) for it in shared.exchange.references} == {(None, None)}


def test_later_questions_are_shared_only_when_their_owner_says_so(world, answered):
    conversation = start(world.bob)
    answered(conversation, "How do I roll back the staging database?")
    share(conversation)
    link = conversation.shared_as
    answered(conversation, "What does error Q-4711 mean?")
    assert questions_not_shared(conversation) == 1
    assert len(shared_exchanges(conversation, world.alice)) == 1
    share(conversation)
    assert conversation.shared_as == link
    assert questions_not_shared(conversation) == 0
    assert len(shared_exchanges(conversation, world.alice)) == 2


@pytest.mark.parametrize("way", ["revoked", "deleted", "inactive owner"])
def test_a_link_ends(world, shared_by_alice, way):
    conversation = shared_by_alice()
    link = conversation.shared_as
    assert shared_conversation(link, world.bob) == conversation
    if way == "revoked":
        stop_sharing(conversation)
        share(conversation)
        assert conversation.shared_as != link
    elif way == "deleted":
        conversation.delete()
    else:
        User.objects.filter(pk=world.alice.pk).update(is_active=False)
    with pytest.raises(UnknownConversationError):
        shared_conversation(link, world.bob)


def test_sharing_reading_and_revoking_are_audited(world, shared_by_alice):
    conversation = shared_by_alice()
    shared_conversation(conversation.shared_as, world.bob)
    shared_conversation(conversation.shared_as, world.alice)
    stop_sharing(conversation)
    events = AuditEvent.objects.filter(subject=str(conversation.pk)).order_by("pk")
    assert list(events.values_list("action", "actor__username")) == [
        ("conversation.shared", "alice"),
        ("conversation.read", "bob"),
        ("conversation.share_revoked", "alice"),
    ]


def test_sharing_is_no_use_of_a_conversation(world, shared_by_alice):
    conversation = shared_by_alice()
    before = timezone.now()
    Conversation.objects.filter(pk=conversation.pk).update(updated_at=before)
    share(conversation)
    stop_sharing(conversation)
    assert Conversation.objects.get(pk=conversation.pk).updated_at == before


def test_an_unfinished_answer_is_not_shown(world, shared_by_alice):
    conversation = shared_by_alice(narrowing=ScopeRequest(include=("runbooks",)))
    conversation.messages.filter(role="assistant").update(state=Message.State.WAITING, text="", passages=[])
    (shared,) = shared_exchanges(conversation, world.bob)
    assert (shared.exchange.text, shared.exchange.state) == ("", Message.State.WAITING)


def test_an_answer_that_a_model_wrote_from_hidden_earlier_answers_is_withheld(world, answered):
    conversation = start(world.alice)
    answered(conversation, "How do I roll back the staging database?")
    change(conversation, preset=None, narrowing=ScopeRequest(include=("runbooks",)))
    second = answered(conversation, "What does error Q-4711 mean?")
    Message.objects.filter(pk=second.pk).update(is_extractive=False, connections=[world.ledger.pk])
    share(conversation)
    assert shared_exchanges(conversation, world.bob)[1].exchange.withheld
