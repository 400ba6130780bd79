"""The waterfall: when each stage began and how long it took, from a search just run and from a stored one."""

import pytest

from explorer.charts.waterfall import timed_stages, waterfall
from retrieval.engine.state import Note, Span
from retrieval.records.stored_trace import spans_of
from retrieval.search.record import trace_json


def test_stages_follow_each_other_and_legs_begin_together(finished):
    stages = {it.stage: it for it in timed_stages(finished.trace)}
    assert "legs" not in stages
    # analyze 1 ms, embed 6 ms, then the legs, which take 4 ms together.
    assert stages["dense"].begins == stages["fulltext"].begins == pytest.approx(7.0)
    assert (stages["dense"].takes, stages["fulltext"].takes) == (pytest.approx(3.0), pytest.approx(2.0))
    assert stages["fuse"].begins == pytest.approx(11.0)
    assert stages["assemble"].ends == pytest.approx(finished.seconds * 1000)


def test_a_leg_that_was_prefetched_ends_with_the_others():
    spans = (
        Span("embed", 0.006, 0, 0),
        Span("dense", 0.003, 0, 9, parent="legs"),
        Span("fulltext", 0.008, 0, 9, parent="legs"),
        Span("legs", 0.004, 0, 18),
    )
    stages = {it.stage: it for it in timed_stages(spans)}
    assert (stages["dense"].begins, stages["fulltext"].begins) == (pytest.approx(6.0), pytest.approx(2.0))
    assert stages["fulltext"].ends == pytest.approx(10.0)


def test_a_stored_trace_draws_the_same(finished):
    stored = spans_of(trace_json(finished.state, keep_words=False))
    live = waterfall(finished.trace, deadline_ms=2000)
    assert waterfall(stored, deadline_ms=2000) == live
    assert live.id == "waterfall"


def test_the_table_says_what_the_figure_draws(finished):
    chart = waterfall(finished.trace, deadline_ms=2000)
    bars = chart.data[0]
    assert chart.layout["yaxis"]["ticktext"] == [row[0] for row in chart.rows]
    assert [row[1:3] for row in chart.rows] == [
        (f"{begins:.1f}", f"{takes:.1f}") for begins, takes in zip(bars["base"], bars["x"], strict=True)
    ]
    # 7 + 3 ms
    assert chart.rows[2] == ("vector", "7.0", "3.0", "10.0")
    assert "20 ms of 2,000 ms" in chart.summary
    assert "embedded, 6.0 ms" in chart.summary


def test_a_short_time_is_rounded_as_in_the_strip():
    chart = waterfall((Span("analyze", 0.0092, 0, 0),), deadline_ms=2000)
    assert "9.2 ms of 2,000 ms" in chart.summary


def test_a_deadline_far_away_is_an_arrow_and_a_near_one_a_line(finished):
    far = waterfall(finished.trace, deadline_ms=2000).layout
    assert "shapes" not in far
    assert far["annotations"][0]["text"] == "deadline at 2,000 ms →"
    assert far["xaxis"]["range"][1] < 30
    near = waterfall(finished.trace, deadline_ms=40).layout
    assert [(shape["x0"], shape["line"]["color"]) for shape in near["shapes"]] == [(34, "warn"), (40, "bad")]
    assert near["xaxis"]["range"][1] == pytest.approx(42.0)


def test_without_a_deadline_none_is_drawn_and_without_spans_nothing(finished):
    layout = waterfall(finished.trace, deadline_ms=None).layout
    assert "shapes" not in layout
    assert "annotations" not in layout
    assert waterfall((), deadline_ms=2000) is None


def test_a_degraded_stage_stands_out():
    spans = (Span("rerank", 0.1, 3, 3, notes=(Note("rerank_timeout", "Too slow.", degraded=True),)),)
    assert waterfall(spans, deadline_ms=2000).data[0]["marker"]["color"] == ["warn"]
