"""The breaker as a state machine, and with two successes wanted."""

import contextlib
from uuid import uuid4

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from retrieval.encoders.breaker import BreakerState, CircuitBreaker
from retrieval.errors import RerankBreakerOpenError, RerankError
from tests.profiles import examples
from tests.retrieval.conftest import Clock

CLOSED, OPEN, HALF_OPEN = BreakerState


@pytest.fixture
def breaker(service, clock):
    return CircuitBreaker(service, failures=3, open_seconds=60, successes=2, clock=clock)


def ask(breaker, *, succeeds):
    """Make a call; return whether it was let through."""

    def work():
        if not succeeds:
            raise RerankError

    try:
        breaker.call(work)
    except RerankBreakerOpenError:
        return False
    except RerankError:
        return True
    return True


def opened(breaker):
    for _ in range(3):
        ask(breaker, succeeds=False)
    return breaker


def test_two_trials_in_a_row_close_it(breaker, clock):
    assert breaker.state is CLOSED
    opened(breaker)
    assert (breaker.state, breaker.admits) == (OPEN, False)
    clock.now = 60
    assert (breaker.state, breaker.admits) == (HALF_OPEN, True)
    assert ask(breaker, succeeds=True)
    assert (breaker.state, breaker.is_open) == (HALF_OPEN, True)
    assert ask(breaker, succeeds=True)
    assert breaker.state is CLOSED


def test_one_failed_trial_opens_it_for_another_time(breaker, clock):
    opened(breaker)
    clock.now = 60
    ask(breaker, succeeds=True)
    clock.now = 61
    ask(breaker, succeeds=False)
    assert breaker.state is OPEN
    clock.now = 120.9
    assert not ask(breaker, succeeds=True)
    clock.now = 121
    ask(breaker, succeeds=True)
    assert breaker.state is HALF_OPEN


def test_while_one_tries_no_other_does(breaker, clock):
    opened(breaker)
    clock.now = 60
    with breaker.guarding():
        assert (breaker.state, breaker.admits) == (HALF_OPEN, False)
        assert not ask(breaker, succeeds=True)


@pytest.mark.parametrize("succeeds", [True, False])
def test_what_a_call_says_that_began_before_it_opened_counts_no_more(breaker, clock, succeeds):
    def late():
        opened(breaker)
        clock.now = 30
        if not succeeds:
            raise RerankError

    with contextlib.suppress(RerankError):
        breaker.call(late)
    assert breaker.state is OPEN
    clock.now = 60
    assert breaker.state is HALF_OPEN


class BreakerMachine(RuleBasedStateMachine):
    """Drives a breaker and a model of it: what state, since when, how many in a row."""

    def made(self, **limits):
        return CircuitBreaker(clock=self.clock, **limits)

    @initialize(failures=st.integers(1, 4), successes=st.integers(1, 3), seconds=st.integers(1, 100))
    def make(self, failures, successes, seconds):
        self.clock = Clock()
        self.limits = (failures, successes, seconds)
        self.breaker = self.made(failures=failures, successes=successes, open_seconds=seconds)
        self.state, self.since, self.failed, self.succeeded = CLOSED, 0.0, 0, 0

    def look(self):
        """Let the model's time pass."""
        if self.state is OPEN and self.clock.now >= self.since + self.limits[2]:
            self.state, self.succeeded = HALF_OPEN, 0

    @rule(seconds=st.floats(0, 150))
    def wait(self, seconds):
        self.clock.now += seconds

    @rule()
    def succeed(self):
        self.look()
        assert ask(self.breaker, succeeds=True) == (self.state is not OPEN)
        if self.state is CLOSED:
            self.failed = 0
        elif self.state is HALF_OPEN:
            self.succeeded += 1
            if self.succeeded == self.limits[1]:
                self.state, self.failed = CLOSED, 0

    @rule()
    def fail(self):
        self.look()
        assert ask(self.breaker, succeeds=False) == (self.state is not OPEN)
        self.failed += self.state is CLOSED
        if self.state is HALF_OPEN or (self.state is CLOSED and self.failed == self.limits[0]):
            self.state, self.since = OPEN, self.clock.now

    @precondition(lambda self: self.state is not OPEN)
    @rule()
    def break_off(self):
        self.look()
        with pytest.raises(KeyboardInterrupt), self.breaker.guarding():
            raise KeyboardInterrupt

    @invariant()
    def agree(self):
        self.look()
        assert self.breaker.state is self.state
        assert self.breaker.admits == (self.state is not OPEN)
        assert self.breaker.is_open == (self.state is not CLOSED)


BreakerMachine.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
TestBreaker = BreakerMachine.TestCase


def test_in_redis_it_is_the_same_machine(shared_redis):
    class SharedBreakerMachine(BreakerMachine):
        def made(self, **limits):
            shared_redis._clock = self.clock
            return CircuitBreaker(uuid4().hex, **limits)

    run_state_machine_as_test(
        SharedBreakerMachine, settings=settings(max_examples=examples(15), stateful_step_count=30, deadline=None)
    )
