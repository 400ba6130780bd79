"""Conversations of the cast over the small world, answered by quotation."""

import pytest

from corecube.access import Principal
from retrieval.answers.conversations.asking import ask, start
from retrieval.answers.conversations.reading import exchange_of
from retrieval.answers.conversations.writing import begin, claimed, finished
from retrieval.models import Message


@pytest.fixture
def answered():
    """Return a function that asks in a conversation and returns the finished answer."""

    def answer(conversation, question):
        asked = ask(conversation, question)
        assert claimed(asked)
        finished(begin(asked))
        return Message.objects.select_related("conversation__user").get(pk=asked.pk)

    return answer


@pytest.fixture
def talk(world, answered):
    """Return a function that asks one question in a new conversation of one of the cast."""

    def begun(name, question="How do I roll back the staging database?", **how):
        return answered(start(getattr(world, name), **how), question)

    return begun


@pytest.fixture
def reread():
    """Return a function that reads an answer again as its user may now."""
    return lambda answer: exchange_of(answer, Principal(answer.conversation.user))
