import asyncio
from contextlib import aclosing

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import connection

from retrieval.answers.conversations.asking import ask, retry, start, stop
from retrieval.answers.conversations.writing import begin, claimed, finished, store, written
from retrieval.answers.events import Done, Text
from retrieval.errors import AnswerUnavailableError
from retrieval.llm.types import Piece, Route
from retrieval.models import Message, SearchRecord


class Slow:
    """Writes a word every so often, for ever, and remembers that it was told to stop."""

    name = "slow"
    is_extractive = False
    window = None

    def __init__(self, *, fails_after=None):
        self.was_closed = False
        self.fails_after = fails_after

    async def stream(self, _task):
        try:
            for number in range(10_000):
                if number == self.fails_after:
                    raise AnswerUnavailableError
                yield Piece("Drain it [1]. " if number == 0 else "word ")
                await asyncio.sleep(0.005)
        finally:
            self.was_closed = True

    def refuses(self, _text):
        return False


@pytest.fixture
def slow(monkeypatch):
    """Let a provider that never ends answer everything."""
    provider = Slow()
    monkeypatch.setattr("retrieval.answers.answering.route_for", lambda *_, **__: Route((provider,)))
    return provider


@pytest.fixture
def begun(world):
    """Return a function that begins an answer for Bob."""

    def begin_one(question="rollback"):
        answer = ask(start(world.bob), question)
        assert claimed(answer)
        return begin(answer)

    return begin_one


def read(writing, until=lambda _: False):
    """Read an answer's events until one meets the condition, then leave."""

    async def reading():
        async with aclosing(written(writing, poll_seconds=0.02)) as events:
            async for event in events:
                if until(event):
                    return

    async_to_sync(reading)()
    return Message.objects.get(pk=writing.message.pk)


def test_an_answer_is_kept_with_its_passages_and_never_their_text(talk, world):
    answer = talk("bob")
    assert (answer.state, answer.provider, answer.is_extractive, answer.is_refused) == (
        "done",
        "extractive",
        True,
        False,
    )
    assert "deployctl rollback" in answer.text
    first = answer.passages[0]
    assert set(first) == {"number", "document", "ordinal", "content_hash", "connection", "score", "cited"}
    assert (first["number"], first["connection"], first["cited"]) == (1, world.runbooks.pk, True)
    assert answer.record_id == SearchRecord.objects.get().pk


def test_a_refusal_is_kept_with_its_reason(talk):
    answer = talk("bob", "What does a zeppelin weigh?")
    assert answer.is_refused
    assert SearchRecord.objects.get().is_refused
    assert "No document that was searched contains" in answer.text
    assert answer.notices == []  # It would repeat the text.


def test_thanks_are_no_question_without_an_answer(talk):
    talk("bob")
    answer = talk("bob", "Thanks, bye!")
    assert answer.text.startswith("You're welcome.")
    assert (answer.state, answer.is_refused, answer.passages, answer.notices) == ("done", False, [], [])
    assert not SearchRecord.objects.unanswered().exists()
    assert talk("bob", "Hello!").text.startswith("I answer questions about your documents")


def test_what_a_reader_saw_before_leaving_is_kept(begun, slow):
    stored = read(begun(), until=lambda event: isinstance(event, Text))
    assert (stored.state, stored.provider) == ("stopped", "")
    assert stored.text.startswith("Drain it [1]")
    assert slow.was_closed


def test_stopping_it_elsewhere_ends_the_provider_and_keeps_what_was_written(begun, slow):
    writing = begun()

    async def reading():
        async for event in written(writing, poll_seconds=0.02):
            if isinstance(event, Text):
                await sync_to_async(stop)(writing.message)

    async_to_sync(reading)()
    stored = Message.objects.get(pk=writing.message.pk)
    assert stored.state == "stopped"
    assert stored.text.startswith("Drain it [1]")
    assert slow.was_closed


def test_it_is_stored_before_its_last_event(begun):
    writing = begun()

    async def read_to_the_end():
        async for event in written(writing):
            if isinstance(event, Done):
                stored = await sync_to_async(Message.objects.get)(pk=writing.message.pk)
                assert (stored.state, stored.text) == ("done", event.text)

    async_to_sync(read_to_the_end)()
    assert writing.done is not None


def test_a_failure_keeps_what_was_written_and_its_problem(begun, slow):
    slow.fails_after = 3
    stored = read(begun())
    assert (stored.state, stored.problem) == ("failed", "answer_unavailable")
    assert stored.text.startswith("Drain it [1]")


def test_without_a_stream_no_connection_is_kept_meanwhile(transactional_db, monkeypatch, begun):
    held = []

    class Watching(Slow):
        async def stream(self, _task):
            held.append(await sync_to_async(lambda: connection.connection)())
            yield Piece("Drain it [1].")

    monkeypatch.setattr("retrieval.answers.answering.route_for", lambda *_, **__: Route((Watching(),)))
    finished(begun())
    assert held == [None]


def test_a_provider_that_says_nothing_leaves_its_problem(begun, slow):
    slow.fails_after = 0
    writing = begun()
    finished(writing)
    stored = Message.objects.get(pk=writing.message.pk)
    assert (stored.state, stored.problem, stored.text) == ("failed", "answer_unavailable", "")


def test_who_wrote_an_answer_that_was_asked_for_anew_changes_nothing_any_more(begun):
    writing = begun()
    again = retry(writing.message)
    writing.text = "late"
    store(writing)
    assert Message.objects.get(pk=again.pk).text == ""
    assert claimed(again)
    store(writing)
    assert Message.objects.get(pk=again.pk).text == ""


def test_a_follow_up_is_searched_for_with_what_was_said_before(answered, world):
    conversation = start(world.bob)
    answered(conversation, "What does error Q-4711 mean?")
    answer = answered(conversation, "How long does it take?")
    question = conversation.messages.get(ordinal=3)
    assert question.text == "How long does it take?"
    assert question.standalone.startswith("How long does it take? (error Q-4711")
    record = SearchRecord.objects.get(pk=answer.record_id)
    assert record.query == question.standalone
    assert record.trace["spans"][0]["notes"][0]["code"] == "rewritten"
    assert "takes four minutes" in answer.text
