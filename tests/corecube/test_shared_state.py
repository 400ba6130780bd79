"""What processes share in Redis, and what becomes of it without."""

import logging
import pickle
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.test import override_settings

from corecube.secrets import CacheCipher
from corecube.shared_state import redis_store
from corecube.shared_state.opening import code_digest, open_store
from corecube.shared_state.redis_store import RedisStore
from corecube.shared_state.store import MemoryStore, shared
from tests.race import until
from tests.redis_server import other_process

KEY = ("alice", "rollback of staging")
DOCUMENT = "The stolen passphrase was zanzibar."


@pytest.fixture
def store(service):
    """Return a store in memory, and one in Redis."""
    return shared() if service else MemoryStore()


@pytest.fixture
def another(redis):
    """Return what opens the same Redis as another process does."""
    opened = []

    def opening(**options):
        opened.append(RedisStore(redis.url, CacheCipher(), **{"code": code_digest(), **options}))
        return opened[-1]

    yield opening
    for it in opened:
        it._redis.close()


@pytest.fixture
def impatient(monkeypatch):
    """Ask Redis again at once after a failure."""
    monkeypatch.setattr(redis_store, "_PAUSE_SECONDS", 0.0)


def count(store, key="count"):
    return store.update(key, lambda value, _: ((value or 0) + 1, value or 0))


def everything(redis):
    """Return all that Redis holds, as bytes."""
    return b"\n".join(it for key in redis.client.scan_iter() for it in (key, redis.client.get(key)))


def test_changes_of_many_threads_are_all_counted(store):
    with ThreadPoolExecutor(8) as threads:
        before = list(threads.map(lambda _: count(store), range(120)))
    assert sorted(before) == list(range(120))


def test_none_deletes_a_value(store):
    count(store)
    assert store.update("count", lambda value, _: (None, value)) == 1
    assert count(store) == 0


def test_time_passes(store):
    before = store.update("x", lambda _, now: (None, now))
    time.sleep(0.05)
    assert 0.04 < store.update("x", lambda _, now: (None, now)) - before < 5


def test_changes_of_two_processes_are_all_counted(shared_redis, redis):
    script = (
        "from corecube.shared_state.store import shared\n"
        "for _ in range(150): shared().update('count', lambda value, _: ((value or 0) + 1, None))\n"
    )
    others = [other_process(script, redis.url) for _ in range(2)]
    for _ in range(150):
        count(shared_redis)
    for it in others:
        it.communicate()
        assert it.returncode == 0
    assert count(shared_redis) == 450


def test_what_one_process_caches_another_one_has(shared_redis, another):
    shared_redis.cache("passages", KEY, {"text": DOCUMENT}, seconds=60)
    assert another().cached("passages", KEY) == {"text": DOCUMENT}
    assert another().cached("passages", ("bob", KEY[1])) is None
    assert another().cached("vectors", KEY) is None


def test_redis_learns_neither_keys_nor_values_and_keeps_nothing_for_good(shared_redis, redis):
    shared_redis.cache("passages", KEY, DOCUMENT, seconds=60)
    count(shared_redis, "https://models.internal/v1 rank-1")
    held = everything(redis)
    assert [
        it for it in (b"alice", b"rollback", b"zanzibar", b"internal", pickle.dumps(DOCUMENT)[-20:]) if it in held
    ] == []
    assert all(0 < redis.client.ttl(key) <= 7200 for key in redis.client.scan_iter())


def test_who_can_write_to_redis_can_pass_off_nothing(shared_redis, redis, caplog):
    shared_redis.cache("passages", KEY, DOCUMENT, seconds=60)
    (alices,) = redis.client.scan_iter()
    shared_redis.cache("passages", ("bob",), "", seconds=60)
    (bobs,) = set(redis.client.scan_iter()) - {alices}
    # A token of this installation, under another key.
    redis.client.set(bobs, redis.client.get(alices))
    assert shared_redis.cached("passages", ("bob",)) is None
    redis.client.set(alices, pickle.dumps(DOCUMENT))
    assert shared_redis.cached("passages", KEY) is None
    assert "shared_state.unreadable kind=passages error=ValueError" in caplog.text


def test_another_installation_or_other_code_reads_nothing(shared_redis, another):
    shared_redis.cache("passages", KEY, DOCUMENT, seconds=60)
    assert another(code="newer").cached("passages", KEY) is None
    with override_settings(SECRET_KEY="another"):
        assert another().cached("passages", KEY) is None


def test_what_is_too_large_or_cannot_be_written_is_not_cached(shared_redis, redis):
    shared_redis.cache("passages", 1, bytes(2**19), seconds=60)
    shared_redis.cache("passages", 2, bytes(2**20), seconds=60)
    shared_redis.cache("passages", 3, lambda: None, seconds=60)
    assert [shared_redis.cached("passages", number) is None for number in (1, 2, 3)] == [False, True, True]
    assert len(redis.client.keys()) == 1


def test_without_redis_memory_counts_and_one_warning_says_so(shared_redis, redis, caplog):
    shared_redis.cache("passages", KEY, DOCUMENT, seconds=60)
    assert (count(shared_redis), count(shared_redis), shared_redis.problem) == (0, 1, "")
    redis.kill()
    assert [count(shared_redis) for _ in range(3)] == [0, 1, 2]
    assert shared_redis.cached("passages", KEY) is None
    shared_redis.cache("passages", KEY, DOCUMENT, seconds=60)
    assert shared_redis.problem.startswith("Redis does not answer (ConnectionError)")
    assert [it.levelno for it in caplog.records] == [logging.WARNING]


def test_when_redis_is_back_processes_share_again(shared_redis, redis, impatient, another, caplog):
    redis.kill()
    assert shared_redis.problem
    redis.begin()
    until(lambda: not shared_redis.problem)
    assert (count(shared_redis), count(another())) == (0, 1)
    assert [it.getMessage().split()[0] for it in caplog.records] == [
        "shared_state.unavailable",
        "shared_state.available",
    ]


def test_a_redis_that_hangs_is_waited_for_once(shared_redis, redis):
    count(shared_redis)
    redis.freeze()
    began = time.monotonic()
    assert count(shared_redis) == 0
    waited = time.monotonic() - began
    for _ in range(50):
        count(shared_redis)
    assert waited < 1.0
    # Not one of them waits for its own tenth of a second.
    assert time.monotonic() - began - waited < 1.0
    redis.thaw()


def test_options_that_the_client_does_not_know_or_cannot_read_only_share_nothing(redis):
    with override_settings(CORECUBE_REDIS_URL=f"{redis.url}?visibility_timeout=60"):
        store = open_store()
    assert count(store) == 0
    assert "TypeError" in store.problem
    with override_settings(CORECUBE_REDIS_URL=f"{redis.url}?socket_timeout=soon"):
        assert open_store() is None


def test_without_an_address_nothing_is_shared():
    with override_settings(CORECUBE_REDIS_URL=""):
        assert open_store() is None
    assert shared() is None
