import pytest

from retrieval.deadline import Deadline


def test_what_may_still_be_spent_shrinks_to_nothing(clock):
    deadline = Deadline.after(10.0, clock)
    # 85 %, 95 % and all of 10 seconds.
    assert (deadline.leg_seconds, deadline.read_seconds, deadline.remaining_seconds) == (8.5, 9.5, 10.0)
    clock.now = 9.0
    assert (deadline.leg_seconds, deadline.remaining_seconds) == (0.0, 1.0)
    assert deadline.read_seconds == pytest.approx(0.5)
    clock.now = 11.0
    assert (deadline.leg_seconds, deadline.read_seconds, deadline.remaining_seconds) == (0.0, 0.0, 0.0)
