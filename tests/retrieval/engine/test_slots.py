"""Slots are handed on in the order in which they were asked for."""

import threading
from concurrent.futures import ThreadPoolExecutor
from time import sleep

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from retrieval.engine.slots import Slots
from tests.profiles import examples
from tests.race import until


def test_no_more_are_held_than_there_are():
    slots = Slots(2)
    assert [slots.take_free() for _ in range(3)] == [True, True, False]
    assert (slots.held, slots.waiting) == (2, 0)
    slots.release()
    assert slots.take_free()


def test_the_first_to_wait_is_the_first_to_be_served():
    slots, served = Slots(1), []
    slots.take_free()

    def wait(number):
        assert slots.wait_for_one(10)
        served.append(number)
        slots.release()

    with ThreadPoolExecutor(5) as threads:
        for number in range(5):
            threads.submit(wait, number)
            until(lambda number=number: slots.waiting == number + 1)
        assert not slots.take_free()
        slots.release()
    assert served == [0, 1, 2, 3, 4]
    assert (slots.held, slots.waiting) == (0, 0)


@pytest.mark.parametrize("seconds", [-1.0, 0.0, 0.02])
def test_who_has_waited_long_enough_leaves_the_queue(seconds):
    slots = Slots(1)
    slots.take_free()
    assert not slots.wait_for_one(seconds)
    assert slots.waiting == 0
    slots.release()
    assert slots.held == 0


def test_a_crowd_leaves_nothing_behind():
    slots, inside, limit = Slots(3), [], []
    lock = threading.Lock()

    def work(number):
        if not slots.wait_for_one(0.001 * (number % 7)):
            return 0
        with lock:
            inside.append(number)
            limit.append(len(inside))
        sleep(0.0005)
        with lock:
            inside.remove(number)
        slots.release()
        return 1

    with ThreadPoolExecutor(24) as threads:
        served = sum(threads.map(work, range(600)))
    assert max(limit) <= 3
    assert 0 < served <= 600
    assert (slots.held, slots.waiting) == (0, 0)
    assert slots.take_free()


class SlotsMachine(RuleBasedStateMachine):
    """Taking and giving back in any order, against a counter."""

    def __init__(self):
        super().__init__()
        self.slots, self.held = Slots(3), 0

    @rule(seconds=st.sampled_from([0.0, -1.0]))
    def ask(self, seconds):
        has_one = self.slots.take_free() if seconds else self.slots.wait_for_one(0)
        assert has_one == (self.held < 3)
        self.held += has_one

    @precondition(lambda self: self.held)
    @rule()
    def give_back(self):
        self.slots.release()
        self.held -= 1

    @invariant()
    def counts(self):
        assert (self.slots.held, self.slots.waiting) == (self.held, 0)


TestSlotsMachine = SlotsMachine.TestCase
TestSlotsMachine.settings = settings(max_examples=examples(30), stateful_step_count=30, deadline=None)
