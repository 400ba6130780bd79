from datetime import timedelta

import pytest
from django.utils import timezone

from corecube.models import Connection, Grant
from corecube.scope import Sensitivity
from retrieval.answers.conversations.asking import ask, start
from retrieval.answers.conversations.reading import ReferenceState, earlier_questions, exchanges_of, turns_of
from retrieval.index.writer import delete_all_documents
from retrieval.ingest.sync import sync_connection
from retrieval.models import Chunk, Message

SECRET = ("deployctl", "rolling back", "rollback.md")


def told(exchange):
    return str(exchange).lower().replace(exchange.answer.text.lower(), "")


@pytest.mark.parametrize("way", ["grant", "clearance", "sensitivity", "disabled", "deleted connection"])
def test_an_answer_is_withheld_once_its_user_may_not_see_what_it_cites(world, talk, reread, way):
    answer = talk("bob")
    assert "deployctl" in reread(answer).text
    own = Grant.objects.filter(group__user=world.bob)
    if way == "grant":
        own.delete()
    elif way == "clearance":
        own.update(clearance=Sensitivity.PUBLIC)
    elif way == "deleted connection":
        delete_all_documents(world.runbooks)
        world.runbooks.delete()
    else:
        changes = {"enabled": False} if way == "disabled" else {"sensitivity": Sensitivity.RESTRICTED}
        Connection.objects.filter(pk=world.runbooks.pk).update(**changes)
    exchange = reread(answer)
    assert exchange.withheld
    assert exchange.text == ""
    assert {it.state for it in exchange.references} == {ReferenceState.HIDDEN}
    assert not [word for word in SECRET if word in told(exchange)]
    assert [exchange.unsupported, exchange.notices, turns_of([exchange])] == [(), (), ()]
    assert earlier_questions([exchange])[0].titles == ()


def test_access_that_comes_back_shows_the_answer_again(world, talk, reread):
    answer = talk("bob")
    Connection.objects.filter(pk=world.runbooks.pk).update(enabled=False)
    assert reread(answer).withheld
    Connection.objects.filter(pk=world.runbooks.pk).update(enabled=True)
    assert "deployctl" in reread(answer).text


def test_a_quotation_stands_where_only_what_it_does_not_cite_is_hidden(world, talk, reread):
    answer = talk("alice")
    quoted = {it["connection"] for it in answer.passages if it["cited"]}
    assert quoted == {world.runbooks.pk}
    assert {it["connection"] for it in answer.passages} > quoted
    Grant.objects.filter(user=world.alice).update(clearance=Sensitivity.INTERNAL)
    exchange = reread(answer)
    assert not exchange.withheld
    hidden = [it for it in exchange.considered if not it.is_visible]
    assert hidden
    assert {(it.title, it.text, it.connection, it.chunk, it.score) for it in hidden} == {("", "", "", None, None)}


def test_a_language_models_answer_rests_on_all_that_it_read(world, talk, reread):
    answer = talk("alice")
    Message.objects.filter(pk=answer.pk).update(is_extractive=False)
    Grant.objects.filter(user=world.alice).update(clearance=Sensitivity.INTERNAL)
    answer.refresh_from_db()
    assert reread(answer).withheld


def test_what_was_searched_for_is_hidden_with_the_titles_that_it_may_name(world, answered):
    conversation = start(world.bob)
    answered(conversation, "What does error Q-4711 mean?")
    answered(conversation, "How long does it take?")
    assert exchanges_of(conversation, world.principal("bob"))[1].standalone
    Connection.objects.filter(pk=world.runbooks.pk).update(enabled=False)
    assert [it.standalone for it in exchanges_of(conversation, world.principal("bob"))] == ["", ""]


def test_nothing_hidden_is_carried_into_a_new_question(world, answered):
    Grant.objects.create(user=world.bob, compartment=world.ledger.compartment, clearance=Sensitivity.INTERNAL)
    conversation = start(world.bob)
    answered(conversation, "What did the rollback cost in March?")
    Grant.objects.filter(user=world.bob).delete()
    answered(conversation, "Why?")
    question = conversation.messages.get(ordinal=3)
    assert "costs" not in question.standalone.lower().split()
    assert exchanges_of(conversation, world.principal("bob"))[0].withheld


@pytest.mark.parametrize("change", ["edited", "removed"])
def test_a_text_that_changed_or_went_is_stale(world, talk, reread, change):
    answer = talk("bob")
    file = world.root / "runbooks" / "rollback.md"
    if change == "edited":
        file.write_text("# Rolling back\n\nCall the release captain for anything.\n")
    else:
        file.unlink()
    sync_connection(world.runbooks)
    exchange = reread(answer)
    assert exchange.is_stale
    assert not exchange.withheld
    stale = exchange.cited[0]
    assert (stale.state, stale.text, stale.chunk) == (ReferenceState.STALE, "", None)
    assert stale.title == ("Rolling back" if change == "edited" else "")
    assert stale.connection == "Runbooks"


def test_a_text_that_moved_in_its_document_is_found_where_it_stands_now(world, talk, reread):
    answer = talk("bob")
    first = answer.passages[0]
    Chunk.objects.filter(document_id=first["document"], ordinal=first["ordinal"]).update(ordinal=7)
    cited = reread(answer).cited[0]
    assert cited.state is ReferenceState.CURRENT
    assert cited.chunk.ordinal == 7


def test_an_answer_whose_writer_is_gone_was_interrupted(world, reread):
    answer = ask(start(world.bob), "rollback")
    Message.objects.filter(pk=answer.pk).update(state="writing", at=timezone.now() - timedelta(hours=2))
    answer.refresh_from_db()
    exchange = reread(answer)
    assert (exchange.state, exchange.problem) == ("failed", "interrupted")


def test_reading_takes_as_many_queries_for_many_answers_as_for_one(world, answered, django_assert_num_queries):
    conversation = start(world.bob)
    for question in ("rollback", "draining the queue", "error Q-4711"):
        answered(conversation, question)
    with django_assert_num_queries(4):
        assert len(exchanges_of(conversation, world.principal("bob"))) == 3
