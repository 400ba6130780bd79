"""What the record of a search keeps of where it was asked, and of its answer."""

import pytest
from asgiref.sync import async_to_sync

from retrieval.models import SearchRecord

QUESTION = "how to roll back staging"


def record():
    return SearchRecord.objects.get()


@async_to_sync
async def read(answer):
    """Return a stream's bytes."""
    return b"".join([event async for event in answer.streaming_content])


def test_the_surface_is_told(world, post, ask, client):
    post("/api/v1/search", {"query": QUESTION}, world.key("bob"))
    assert record().surface == "api"
    SearchRecord.objects.all().delete()
    ask(QUESTION, world.key("bob"))
    assert record().surface == "chat"
    SearchRecord.objects.all().delete()
    client.force_login(world.bob)
    client.get("/", {"q": QUESTION})
    assert record().surface == "explorer"


@pytest.mark.parametrize("stream", [False, True])
def test_a_refused_chat_answer_is_noted(world, ask, stream):
    answer = ask("who won the football cup in brazil", world.key("bob"), stream=stream)
    text = read(answer) if stream else answer.content
    assert b"I couldn't find this" in text
    assert record().is_refused


def test_an_answer_that_quotes_is_no_refusal(world, ask):
    assert "deployctl" in str(
        ask("Run deployctl rollback before touching the staging database?", world.key("bob")).json()
    )
    assert not record().is_refused
