"""Beginnings go before endings."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import Event
from time import monotonic

from retrieval.answers import threads as module
from retrieval.answers.threads import AnswerThreads, EndingThreads


def test_unfinished_counts_what_is_at_work_and_what_waits():
    gate = Event()
    with AnswerThreads(1) as threads:
        calls = [threads.submit(gate.wait, 10) for _ in range(3)]
        assert threads.unfinished == 3
        gate.set()
        assert all(call.result() for call in calls)
    assert threads.unfinished == 0


def test_an_ending_waits_while_many_begin():
    beginnings = 5
    with EndingThreads(1, lambda: beginnings) as threads:
        ending = threads.submit(lambda: "ended")
        assert not _done_within(ending, 0.05)
        beginnings = 1
        assert ending.result(10) == "ended"


def test_endings_come_in_the_order_asked_for():
    ended, beginnings = [], 5
    with EndingThreads(1, lambda: beginnings) as threads:
        for number in range(4):
            threads.submit(ended.append, number)
        beginnings = 0
    assert ended == [0, 1, 2, 3]


def test_two_endings_are_never_let_go_together(monkeypatch):
    monkeypatch.setattr(module, "_GAP_SECONDS", 0.05)
    with EndingThreads(4, lambda: 0) as threads:
        times = sorted(ending.result() for ending in [threads.submit(monotonic) for _ in range(4)])
    assert all(later - earlier > 0.03 for earlier, later in pairwise(times))


def test_after_a_while_it_ends_all_the_same(monkeypatch):
    monkeypatch.setattr(module, "_MAX_WAIT_SECONDS", 0.02)
    with EndingThreads(1, lambda: 5) as threads:
        assert threads.submit(lambda: "ended").result(10) == "ended"


def _done_within(future, seconds):
    with ThreadPoolExecutor(1) as waiting:
        try:
            waiting.submit(future.result, seconds).result()
        except TimeoutError:
            return False
    return True
