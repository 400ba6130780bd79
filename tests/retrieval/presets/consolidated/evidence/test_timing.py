import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.engine.deadline import Deadline
from retrieval.presets.consolidated.evidence.phases import early_end
from tests.retrieval.conftest import Clock


def test_a_run_is_asked_to_end_at_85_percent_of_the_hard_limit(clock):
    deadline = Deadline.after(10.0, clock)
    clock.now = 8.49
    assert early_end("recovery", deadline) is None
    assert deadline.leg_seconds == pytest.approx(0.01)
    clock.now = 8.5
    end = early_end("recovery", deadline)
    assert (end.code, end.degraded) == ("soft_cancelled_before_recovery", True)
    assert end.text == "The deadline was almost reached before recovery."
    assert deadline.leg_seconds == 0


def test_a_deadline_that_is_over_is_named_first(clock):
    deadline = Deadline.after(10.0, clock)
    clock.now = 10
    end = early_end("assembly", deadline)
    assert end.code == "deadline_exceeded_before_assembly"
    assert end.text == "The deadline was exceeded before assembly."


@given(st.lists(st.floats(0, 12), max_size=20))
def test_once_a_run_is_to_end_it_stays_so(moments):
    clock = Clock()
    deadline = Deadline.after(8.0, clock)
    ended = []
    for moment in sorted(moments):
        clock.now = moment
        ended.append(early_end("primary", deadline) is not None)
    assert ended == sorted(ended)
    assert ended == [moment >= 0.85 * 8 for moment in sorted(moments)]
