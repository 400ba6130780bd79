import pytest

from retrieval.engine.deadline import Deadline


def test_the_reserve_and_the_time_of_embedding_can_be_other_shares(clock):
    deadline = Deadline(10.0, 0.0, clock, soft_share=0.7, embed_share=0.5)
    assert (deadline.leg_seconds, deadline.embed_seconds) == (7.0, 3.5)
    assert deadline.read_seconds == pytest.approx(9.0)
    clock.now = 7.0
    assert deadline.is_soft
    assert deadline.embed_seconds == 0.0


def test_what_may_still_be_spent_shrinks_to_nothing(clock):
    deadline = Deadline.after(10.0, clock)
    # 85 %, 95 % and all of 10 seconds.
    assert (deadline.leg_seconds, deadline.read_seconds, deadline.remaining_seconds) == (8.5, 9.5, 10.0)
    clock.now = 9.0
    assert (deadline.leg_seconds, deadline.remaining_seconds) == (0.0, 1.0)
    assert deadline.read_seconds == pytest.approx(0.5)
    clock.now = 11.0
    assert (deadline.leg_seconds, deadline.read_seconds, deadline.remaining_seconds) == (0.0, 0.0, 0.0)
