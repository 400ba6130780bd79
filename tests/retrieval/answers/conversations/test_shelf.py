from datetime import timedelta

import pytest
from django.utils import timezone

from corecube.errors import InvalidRequestError
from retrieval.answers.conversations.asking import start
from retrieval.answers.conversations.shelf import (
    answer_of,
    conversation_of,
    conversations_of,
    delete_all,
    forget_old_conversations,
    rename,
)
from retrieval.errors import UnknownConversationError
from retrieval.models import Conversation, Message


def test_nobody_finds_another_persons_conversation(talk, world):
    answer = talk("bob")
    for stranger in (world.alice, world.charlie):
        assert not conversations_of(stranger).exists()
        with pytest.raises(UnknownConversationError):
            conversation_of(stranger, answer.conversation_id)
        with pytest.raises(UnknownConversationError):
            answer_of(stranger, answer.conversation_id, answer.pk)
    assert conversations_of(world.bob).get() == conversation_of(world.bob, answer.conversation_id)


def test_an_answer_is_found_in_its_own_conversation_only(talk, world):
    first, second = talk("bob"), talk("bob")
    with pytest.raises(UnknownConversationError):
        answer_of(world.bob, first.conversation_id, second.pk)
    question = first.conversation.messages.get(ordinal=1)
    with pytest.raises(UnknownConversationError):
        answer_of(world.bob, first.conversation_id, question.pk)


def test_titles_and_questions_are_searched_and_answers_are_not(talk, world):
    talk("bob", "How do I roll back the staging database?")
    assert conversations_of(world.bob, "ROLL back").count() == 1
    assert "deployctl" in Message.objects.get(role="assistant").text
    assert conversations_of(world.bob, "deployctl").count() == 0
    assert conversations_of(world.bob, "\0 roll").count() == 1


def test_a_conversation_without_a_question_is_not_listed(world):
    start(world.bob)
    assert not conversations_of(world.bob).exists()


def test_renaming_does_not_move_a_conversation(talk, world):
    older, newer = talk("bob").conversation, talk("bob").conversation
    rename(older, "  The \n staging rollback ")
    assert [it.title for it in conversations_of(world.bob)] == [newer.title, "The staging rollback"]
    for title in ("", " ", "x" * 201):
        with pytest.raises(InvalidRequestError):
            rename(older, title)


def test_deleting_all_deletes_ones_own(talk, world):
    talk("alice")
    talk("bob")
    assert delete_all(world.bob) == 1
    assert list(Conversation.objects.values_list("user__username", flat=True)) == ["alice"]
    assert Message.objects.count() == 2


def test_old_conversations_are_forgotten(talk, settings):
    old, recent = talk("bob").conversation, talk("bob").conversation
    Conversation.objects.filter(pk=old.pk).update(updated_at=timezone.now() - timedelta(days=31))
    settings.CORECUBE_KEEP_CONVERSATIONS_DAYS = 0
    assert forget_old_conversations() == 0
    settings.CORECUBE_KEEP_CONVERSATIONS_DAYS = 30
    assert forget_old_conversations() == 1
    assert list(Conversation.objects.values_list("pk", flat=True)) == [recent.pk]
