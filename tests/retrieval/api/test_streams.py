"""Many streams at once: all end, nothing else waits for them, and nothing of them is left."""

import asyncio
import json
import threading
from contextlib import asynccontextmanager

import httpx2
import pytest
from django.db import connection

from retrieval.evaluation.bench.chat import read_all
from retrieval.models import LanguageModel, SearchRecord, Usage
from tests.fake_llm import FakeLLM, Fault

STREAMS = 20
QUESTIONS = ("rollback staging database", "draining the queue", "Q-4711")
SEARCH = {"query": "rollback"}


@pytest.fixture
def ask(world, server):
    """Return a function that runs what it is given with Bob's client of the server."""
    headers = {"Authorization": f"Bearer {world.key('bob')}"}

    def run(work):
        async def with_client():
            limits = httpx2.Limits(max_connections=2 * STREAMS)
            async with httpx2.AsyncClient(
                base_url=server, headers=headers, limits=limits, timeout=30, trust_env=False
            ) as client:
                return await work(client)

        return asyncio.run(with_client())

    return run


@pytest.fixture
def slow(world):
    """Let a language model answer that says a word now and then, and never comes to an end."""
    with FakeLLM(fault=Fault.SLOW_DRIP) as llm:
        llm.says("word " * 5000)
        LanguageModel.objects.create(slug="slow", name="Slow", base_url=llm.url, model="m", is_default=True)
        yield llm


@asynccontextmanager
async def streams(client, count):
    """Open so many streams, each of which has said a word."""

    async def opened(done):
        body = {"model": "corecube", "messages": [{"role": "user", "content": QUESTIONS[0]}], "stream": True}
        async with client.stream("POST", "/v1/chat/completions", json=body) as answer:
            lines = answer.aiter_lines()
            # Kept by its name: an iterator that is thrown away ends the stream.
            async for line in lines:
                if line.startswith("data: {") and json.loads(line[6:])["choices"][0]["delta"].get("content"):
                    break
            at_work.release()
            await done.wait()

    at_work, done = asyncio.Semaphore(0), asyncio.Event()
    readers = [asyncio.create_task(opened(done)) for _ in range(count)]
    try:
        for _ in readers:
            await at_work.acquire()
        yield
    finally:
        done.set()
        await asyncio.gather(*readers)


async def until(condition):
    """Wait until something holds, 15 s at the most."""
    async with asyncio.timeout(15):
        while not condition():  # noqa: ASYNC110 -- other threads and servers make it hold
            await asyncio.sleep(0.01)


def checked_out():
    """Return how many connections of the pool are in use beside the test's own."""
    stats = connection.pool.get_stats()
    return stats["pool_size"] - stats["pool_available"] - 1


def lasting():
    """Return the names of the threads that belong to no pool of which some may be born later."""
    passing = ("ThreadPool", "asyncio", "answer")
    return {thread.name for thread in threading.enumerate() if not thread.name.startswith(passing)}


def test_extractive_answers_all_end_and_leave_no_thread_and_no_connection(world, server):
    def run(count):
        secret = world.key("bob")
        reading = read_all(server, secret, QUESTIONS, count=count, at_once=STREAMS, done=lambda: None)
        return asyncio.run(reading)

    run(STREAMS)
    threads = lasting()
    readings = run(2 * STREAMS)
    assert [reading.error for reading in readings] == [""] * 2 * STREAMS
    assert all(0 < reading.first_ms <= reading.total_ms for reading in readings)
    assert SearchRecord.objects.count() == 3 * STREAMS
    asyncio.run(until(lambda: checked_out() == 0))
    asyncio.run(until(lambda: lasting() <= threads))


def test_while_many_are_open_others_are_served_and_no_connection_is_kept(ask, slow):
    async def work(client):
        async with streams(client, STREAMS):
            assert slow.at_once == STREAMS
            await until(lambda: checked_out() == 0)
            answers = await asyncio.gather(
                client.get("/healthz"), client.post("/api/v1/search", json=SEARCH), client.get("/v1/models")
            )
            assert slow.at_once == STREAMS
            return [answer.status_code for answer in answers]

    assert ask(work) == [200, 200, 200]


def test_readers_who_leave_free_what_they_held(ask, slow):
    async def work(client):
        async with streams(client, STREAMS):
            pass
        await until(lambda: slow.at_once == 0)
        await until(lambda: checked_out() == 0)

    ask(work)
    assert slow.cut_off == STREAMS


def test_an_answer_that_is_not_streamed_keeps_no_connection_that_could_be_lost_with_its_cost(ask, slow):
    thought = threading.Event()
    slow.fault = Fault.NONE
    slow.says(lambda _: "Four minutes [1]." if thought.wait(15) else "")
    asked = {"model": "corecube", "messages": [{"role": "user", "content": QUESTIONS[0]}]}

    async def work(client):
        answer = asyncio.create_task(client.post("/v1/chat/completions", json=asked))
        try:
            await until(lambda: slow.at_once == 1)
            await until(lambda: checked_out() == 0)
        finally:
            thought.set()
        return await answer

    answer = ask(work)
    assert (answer.status_code, answer.json()["corecube"]["provider"]) == (200, "slow")
    assert Usage.objects.count() == 1
