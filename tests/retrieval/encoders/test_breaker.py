import threading

import pytest

from retrieval.encoders.breaker import CircuitBreaker
from retrieval.errors import RerankBreakerOpenError, RerankError


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def breaker(service, clock):
    return CircuitBreaker(service, failures=3, open_seconds=30, clock=clock)


def fail(breaker, times=1):
    def work():
        raise RerankError("no")

    for _ in range(times):
        with pytest.raises(RerankError, match="no"):
            breaker.call(work)


def answers(breaker):
    return breaker.call(lambda: "yes") == "yes"


def refuses(breaker):
    with pytest.raises(RerankBreakerOpenError):
        breaker.call(lambda: pytest.fail("was called"))
    return True


def test_three_failures_in_a_row_open_it(breaker):
    fail(breaker, 2)
    assert not breaker.is_open
    fail(breaker)
    assert breaker.is_open
    assert refuses(breaker)


def test_a_success_in_between_starts_the_count_again(breaker):
    fail(breaker, 2)
    assert answers(breaker)
    fail(breaker, 2)
    assert answers(breaker)


def test_every_exception_is_a_failure(breaker):
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            breaker.call(lambda: 1 / 0)
    assert refuses(breaker)


def test_it_stays_open_for_its_time_and_then_lets_one_call_try(breaker, clock):
    fail(breaker, 3)
    clock.now = 29.9
    assert refuses(breaker)
    clock.now = 30
    assert breaker.call(lambda: refuses(breaker))
    assert not breaker.is_open
    assert answers(breaker)


def test_a_trial_that_fails_opens_it_for_another_time(breaker, clock):
    fail(breaker, 3)
    clock.now = 30
    fail(breaker)
    clock.now = 59.9
    assert refuses(breaker)
    clock.now = 60
    assert answers(breaker)


def test_a_trial_of_which_nothing_is_heard_is_followed_by_another(breaker, clock):
    fail(breaker, 3)
    clock.now = 30
    begun, leave = threading.Event(), threading.Event()
    hanging = threading.Thread(target=breaker.call, args=(lambda: (begun.set(), leave.wait(30)),))
    hanging.start()
    assert begun.wait(30)
    clock.now = 31
    assert refuses(breaker)
    clock.now = 61
    assert answers(breaker)
    leave.set()
    hanging.join()


def test_threads_that_fail_together_open_it(breaker):
    together = threading.Barrier(8)

    def work():
        together.wait(10)
        raise RerankError

    def call():
        with pytest.raises(RerankError):
            breaker.call(work)

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refuses(breaker)


def test_an_excused_failure_does_not_count_and_leaves_the_trial_to_the_next_call(breaker, clock):
    def excuse():
        with pytest.raises(TimeoutError):
            breaker.call(lambda: (_ for _ in ()).throw(TimeoutError), excused=(TimeoutError,))

    for _ in range(4):
        excuse()
    assert not breaker.is_open
    fail(breaker, 3)
    clock.now = 30
    excuse()
    assert breaker.is_open
    assert answers(breaker)


def test_what_is_broken_off_from_outside_tells_nothing_and_leaves_the_trial_to_the_next_call(breaker, clock):
    def broken_off():
        with pytest.raises(KeyboardInterrupt), breaker.guarding():
            raise KeyboardInterrupt

    for _ in range(4):
        broken_off()
    assert not breaker.is_open
    fail(breaker, 3)
    clock.now = 30
    broken_off()
    assert breaker.is_open
    assert answers(breaker)
