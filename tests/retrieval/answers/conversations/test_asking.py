import pytest

from corecube.access import ScopeRequest, scope_for
from corecube.errors import UnknownConnectionError
from corecube.models import Grant
from retrieval.answers.conversations.asking import ask, change, narrowing_of, retry, start, stop
from retrieval.answers.conversations.shelf import rename
from retrieval.answers.conversations.writing import begin, claimed
from retrieval.errors import EmptyQueryError, UnknownPresetError
from retrieval.models import Conversation, Message, SearchRecord


def test_a_question_leaves_two_messages_and_names_the_conversation(world):
    conversation = start(world.bob)
    answer = ask(conversation, "  How do I drain\nthe queue?  ")
    rows = conversation.messages.values_list("ordinal", "role", "state", "text")
    assert list(rows) == [(1, "user", "done", "How do I drain\nthe queue?"), (2, "assistant", "waiting", "")]
    assert answer.ordinal == 2
    assert Conversation.objects.get().title == "How do I drain the queue?"


def test_a_conversation_that_begins_with_a_greeting_is_named_by_its_first_question(world):
    conversation = start(world.bob)
    for text, title in (
        ("Hello!", "Hello!"),
        ("Thanks", "Hello!"),
        ("How do I drain the queue?", "How do I drain the queue?"),
        ("And on Sundays?", "How do I drain the queue?"),
    ):
        ask(conversation, text)
        assert Conversation.objects.get().title == title


def test_a_title_that_its_user_chose_remains(world):
    conversation = start(world.bob)
    ask(conversation, "Hello!")
    rename(conversation, "Help")
    ask(conversation, "How do I drain the queue?")
    assert Conversation.objects.get().title == "Help"


def test_a_long_question_is_cut_for_the_title(world):
    conversation = start(world.bob)
    ask(conversation, "word " * 60)
    title = Conversation.objects.get().title
    assert title.endswith("word…")
    assert len(title) <= 81


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ({"preset": "nonesuch"}, UnknownPresetError),
        ({"narrowing": ScopeRequest(include=("vault",))}, UnknownConnectionError),
        ({"narrowing": ScopeRequest(exclude=("nowhere",))}, UnknownConnectionError),
    ],
)
def test_nothing_begins_with_what_its_user_may_not_use(world, how, error):
    with pytest.raises(error):
        start(world.bob, **how)
    assert not Conversation.objects.exists()


def test_a_conversation_cannot_be_widened_later(world):
    conversation = start(world.bob)
    with pytest.raises(UnknownConnectionError):
        change(conversation, preset=None, narrowing=ScopeRequest(include=("ledger",)))
    assert Conversation.objects.get().narrowing == {"include": [], "exclude": []}


def test_an_empty_question_is_no_message(world):
    with pytest.raises(EmptyQueryError):
        ask(start(world.bob), " \n")
    assert not Message.objects.exists()


def test_a_new_question_ends_an_answer_that_nobody_reads(world):
    conversation = start(world.bob)
    first = ask(conversation, "One?")
    ask(conversation, "Two?")
    first.refresh_from_db()
    assert first.state == Message.State.STOPPED


def test_an_answer_is_claimed_once(world):
    answer = ask(start(world.bob), "rollback")
    assert [claimed(answer), claimed(answer)] == [True, False]


def test_only_an_unfinished_answer_can_be_stopped(talk, world):
    assert stop(ask(start(world.bob), "rollback"))
    assert not stop(talk("bob"))


def test_an_answer_can_be_asked_for_anew_in_its_place(talk, world):
    answer = talk("bob")
    again = retry(answer)
    row = Message.objects.get(pk=answer.pk)
    assert (again.pk, row.state, row.text, row.passages, row.record_id) == (answer.pk, "waiting", "", [], None)
    assert claimed(again)


def test_a_source_that_is_gone_is_not_replaced_by_others(world, talk):
    conversation = talk("bob", narrowing=ScopeRequest(include=("runbooks",))).conversation
    Grant.objects.filter(group__user=world.bob).delete()
    answer = ask(conversation, "rollback")
    assert claimed(answer)
    with pytest.raises(UnknownConnectionError):
        begin(answer)
    answer.refresh_from_db()
    assert (answer.state, answer.problem) == ("failed", "unknown_connection")


def test_leaving_out_what_is_gone_leaves_out_nothing(world):
    conversation = start(world.alice, narrowing=ScopeRequest(exclude=("ledger",)))
    assert narrowing_of(conversation, scope_for(world.principal("alice"))) == ScopeRequest(exclude=("ledger",))
    assert narrowing_of(conversation, scope_for(world.principal("bob"))) == ScopeRequest()


def test_the_narrowing_and_the_preset_hold_in_the_search(world, talk):
    talk("alice", "rollback", narrowing=ScopeRequest(include=("ledger",)))
    record = SearchRecord.objects.get()
    assert (record.connection_ids, record.surface, record.user) == ([world.ledger.pk], "chat", world.alice)
