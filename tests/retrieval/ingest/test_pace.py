"""The time that a sync still takes, by what it did lately."""

import pytest

from retrieval.ingest.pace import Effort, seconds_left, with_work

ALL = {"items": 100, "chunks": 0, "per_item": 10.0}


def marks_of(*steps):
    """Return the marks of work done in steps of so many seconds each."""
    marks, at = with_work([], Effort(), at=0.0), 0.0
    for seconds, done in steps:
        at += seconds
        marks = with_work(marks, done, at=at)
    return marks


def batch(items=10, chunks=100, *, reading=1.0, embedding=9.0):
    """Return the work of ten seconds: some read, then embedded."""
    return (reading, Effort(items, reading)), (embedding, Effort(0, 0.0, chunks, embedding))


def test_nothing_is_said_before_anything_is_known():
    assert seconds_left([], **ALL, at=100.0) is None
    assert seconds_left(marks_of(), **ALL, at=100.0) is None
    # So many were read, and nobody knows how long a chunk takes.
    assert seconds_left(marks_of((5.0, Effort(10, 5.0))), **ALL, at=5.0) is None
    assert seconds_left(marks_of((0.5, Effort(10, 0.1, 10, 0.4))), **ALL, at=0.5) is None


def test_reading_and_embedding_are_timed_by_themselves():
    # 100 items at 0.1 s and 1000 chunks at 0.09 s.
    marks = marks_of(*batch())
    assert seconds_left(marks, **ALL, at=10.0) == pytest.approx(100.0)
    # In hand alone: 50 chunks.
    assert seconds_left(marks, items=0, chunks=50, per_item=10.0, at=10.0) == pytest.approx(4.5)


def test_items_without_chunks_need_no_encoder():
    assert seconds_left(
        marks_of((10.0, Effort(50, 10.0))), items=100, chunks=0, per_item=0.0, at=10.0
    ) == pytest.approx(20.0)


def test_two_workers_take_half_as_long():
    # In ten seconds twenty seconds of work were done.
    marks = marks_of((10.0, Effort(20, 2.0, 200, 18.0)))
    assert seconds_left(marks, **ALL, at=10.0) == pytest.approx(50.0)


def test_only_the_last_minutes_count():
    fast = [step for _ in range(30) for step in batch(reading=0.5, embedding=4.5)]
    slow = [step for _ in range(30) for step in batch(reading=5.0, embedding=45.0)]
    marks = marks_of(*fast, *slow)
    assert len(marks) <= 13
    assert seconds_left(marks, **ALL, at=marks[-1][0]) == pytest.approx(500.0)


def test_many_small_steps_take_no_more_room():
    marks = marks_of(*[(0.2, Effort(1, 0.1, 1, 0.1))] * 1000)
    assert len(marks) <= 13
    assert marks[-1] == pytest.approx([200.0, 1000, 100.0, 1000, 100.0])


def test_the_estimate_does_not_grow_while_a_batch_is_embedded():
    marks = marks_of(*batch(), *batch())
    told = [seconds_left(marks, **ALL, at=20.0 + second) for second in range(0, 60, 5)]
    assert told == sorted(told, reverse=True)
    assert told[0] - told[-1] == pytest.approx(55.0)


def test_after_a_long_silence_nothing_is_said():
    marks = marks_of(*batch(), *batch())
    assert seconds_left(marks, **ALL, at=20.0 + 3600) is None


def test_an_estimate_that_is_over_is_not_below_zero():
    assert seconds_left(marks_of(*batch()), items=0, chunks=10, per_item=10.0, at=40.0) == 0.0
