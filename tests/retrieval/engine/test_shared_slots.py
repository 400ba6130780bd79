"""Slots of several processes, counted in memory and in Redis."""

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from time import monotonic, sleep

import pytest

from corecube.shared_state.store import MemoryStore, shared
from retrieval.engine.slots import SharedSlots
from tests.race import until
from tests.redis_server import other_process


@pytest.fixture
def slots_of(service):
    """Return a function that makes the slots of one more process."""
    store = shared() if service else MemoryStore()
    return lambda count, **options: SharedSlots(count, store, "turns", **options)


def test_no_more_are_held_than_there_are(slots_of):
    one, other = slots_of(3), slots_of(3)
    assert [one.take_free(), other.take_free(), one.take_free(), other.take_free()] == [True, True, True, False]
    assert other.elsewhere == 2
    one.release()
    assert other.take_free()
    assert other.elsewhere == 1


def test_who_waits_gets_the_slot_that_another_process_releases(slots_of):
    one, other = slots_of(1), slots_of(1)
    one.take_free()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(other.wait_for_one, 10)
        until(lambda: other.waiting == 1)
        one.release()
        assert waiting.result(10)
    assert other.waiting == 0


@pytest.mark.parametrize("seconds", [-1.0, 0.0, 0.05])
def test_who_has_waited_long_enough_goes_without(slots_of, seconds):
    one, other = slots_of(1), slots_of(1)
    one.take_free()
    assert not other.wait_for_one(seconds)
    one.release()
    assert other.wait_for_one(seconds)


def test_a_slot_is_held_for_longer_than_its_lease(slots_of):
    one, other = slots_of(1, lease_seconds=0.4), slots_of(1, lease_seconds=0.4)
    assert one.take_free()
    sleep(1.2)
    assert not other.take_free()
    one.release()
    assert other.take_free()


def test_a_crowd_of_two_processes_keeps_the_limit_and_leaves_nothing_behind(slots_of):
    both, inside, peaks, lock = (slots_of(3), slots_of(3)), [], [], threading.Lock()

    def work(number):
        slots = both[number % 2]
        if not slots.wait_for_one(10):
            return 0
        with lock:
            inside.append(number)
            peaks.append(len(inside))
        sleep(0.002)
        with lock:
            inside.remove(number)
        slots.release()
        return 1

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(work, range(60))) == 60
    assert max(peaks) <= 3
    assert [both[0].take_free() for _ in range(4)] == [True, True, True, False]


def test_the_slots_of_a_killed_process_are_free_after_their_lease(shared_redis, redis):
    script = (
        "import sys\n"
        "from corecube.shared_state.store import shared\n"
        "from retrieval.engine.slots import SharedSlots\n"
        "slots = SharedSlots(2, shared(), 'turns', lease_seconds=1.0)\n"
        "print(slots.take_free(), slots.take_free(), flush=True)\n"
        "sys.stdin.read()\n"
    )
    other, own = other_process(script, redis.url), SharedSlots(2, shared_redis, "turns", lease_seconds=1.0)
    assert other.stdout.readline() == "True True\n"
    # It renews them while it lives.
    sleep(1.5)
    assert not own.take_free()
    began = monotonic()
    other.send_signal(signal.SIGKILL)
    assert own.wait_for_one(10)
    assert monotonic() - began < 5.0
    other.communicate()
