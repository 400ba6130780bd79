"""Badges."""

from explorer.panels.badges import badges
from retrieval.types import Note, Span


def test_a_relaxed_query_is_told(finished):
    assert [(badge.text, badge.degraded) for badge in badges(finished)] == [("full text relaxed", False)]


def test_what_fell_back_comes_first_and_once(make_outcome, finished):
    note = Note("dense_timeout", "The vector leg ran out of time.", degraded=True)
    outcome = make_outcome(trace=(*finished.trace, Span("dense", 0.1, 0, 0, notes=(note, note))))
    assert [badge.text for badge in badges(outcome)] == ["vector leg timed out", "full text relaxed"]
