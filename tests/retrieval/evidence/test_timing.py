import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.deadline import Deadline
from retrieval.evidence.timing import SoftCancel, early_end
from tests.retrieval.conftest import Clock


def both(clock, seconds=10.0, hard_seconds=10.0):
    return {"deadline": Deadline.after(seconds, clock), "soft_cancel": SoftCancel(Deadline.after(hard_seconds, clock))}


def test_the_flag_goes_up_at_85_percent_of_the_hard_limit(clock):
    limits = both(clock)
    clock.now = 8.49
    assert early_end("recovery", **limits) is None
    assert limits["soft_cancel"].seconds_until_up == pytest.approx(0.01)
    clock.now = 8.5
    end = early_end("recovery", **limits)
    assert (end.stage, end.code) == ("recovery", "soft_cancelled_before_recovery")
    assert (end.note.code, end.note.degraded) == ("soft_cancelled_before_recovery", True)
    assert limits["soft_cancel"].seconds_until_up == 0


def test_a_deadline_that_is_over_is_named_first(clock):
    limits = both(clock)
    clock.now = 10
    end = early_end("assembly", **limits)
    assert end.code == "deadline_exceeded_before_assembly"
    assert end.note.text == "The time was up before assembly."


def test_it_can_be_put_up_from_outside_and_stays_up(clock):
    limits = both(clock)
    limits["soft_cancel"].ask_to_end()
    assert early_end("primary", **limits).code == "soft_cancelled_before_primary"
    assert limits["soft_cancel"].is_up


@given(st.lists(st.floats(0, 12), max_size=20))
def test_once_a_run_is_to_end_it_stays_so(moments):
    clock = Clock()
    limits = both(clock, hard_seconds=8)
    ended = []
    for moment in sorted(moments):
        clock.now = moment
        ended.append(early_end("primary", **limits) is not None)
    assert ended == sorted(ended)
    assert ended == [moment >= 0.85 * 8 for moment in sorted(moments)]
