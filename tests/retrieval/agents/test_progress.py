"""A call tells how far it is, and ends when its client does."""

import asyncio
import threading

import pytest

from retrieval.index import active
from retrieval.models import SearchRecord
from tests.fakes import HashEncoder
from tests.race import until

MODES = ["auto", "legacy"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("tool", "asked"), [("search", {"query": "rollback"}), ("evidence", {"subject": "rollback"})])
@pytest.mark.usefixtures("impatient")
def test_progress_grows_and_the_result_is_the_same(session, world, mode, tool, asked):
    steps = []

    async def follow(done, total, message):
        steps.append((done, total, message))

    async def call(client):
        return (await client.call_tool(tool, asked, progress_callback=follow)), (await client.call_tool(tool, asked))

    followed, alone = session(world.key("bob"), call, mode)
    numbers = [done for done, _, _ in steps]
    assert len(numbers) > 2
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 0
    assert all(done < total and message for done, total, message in steps)
    assert not followed.is_error
    assert ids_in(followed) == ids_in(alone)


def ids_in(result):
    sections = result.structured_content.get("sections", [result.structured_content])
    return [[it["id"] for it in section["results"]] for section in sections]


class SlowEncoder(HashEncoder):
    """Encodes no query before it may."""

    def __init__(self):
        super().__init__()
        self.began, self.may_go_on = threading.Event(), threading.Event()

    def encode_query(self, text):
        self.began.set()
        self.may_go_on.wait(5)
        return super().encode_query(text)


@pytest.mark.parametrize("is_followed", [True, False])
def test_a_search_ends_when_its_client_cancels_it(session, world, monkeypatch, is_followed):
    encoder = SlowEncoder()
    monkeypatch.setattr(active, "encoder", lambda *_: encoder)

    async def ignore(*_):
        pass

    async def cancel(client):
        call = client.call_tool(
            "search", {"query": "rollback cancelled"}, progress_callback=ignore if is_followed else None
        )
        running = asyncio.create_task(call)
        await asyncio.to_thread(encoder.began.wait, 5)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await asyncio.sleep(0.3)
        encoder.may_go_on.set()
        return await client.call_tool("search", {"query": "rollback finished"})

    assert not session(world.key("bob"), cancel).is_error
    until(SearchRecord.objects.exists)
    assert [it.query for it in SearchRecord.objects.all()] == ["rollback finished"]
