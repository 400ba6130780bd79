"""Stacked contributions: the figure and its table say what the search computed."""

from dataclasses import replace

import pytest

from explorer.charts.contributions import contributions
from retrieval.engine.types import ScoreType


def by_name(chart):
    return {trace["name"]: trace for trace in chart.data}


def test_the_bars_are_the_contributions_and_sum_to_the_score(finished):
    chart = contributions(finished)
    traces = by_name(chart)
    assert list(traces) == ["Vector similarity", "Full text", "Freshness"]
    assert traces["Vector similarity"]["x"] == [0.54, 0.6, 0.12]
    assert traces["Full text"]["x"] == [0.24, 0.0, 0.03]
    sums = [sum(parts) for parts in zip(*(trace["x"] for trace in chart.data), strict=True)]
    assert sums == pytest.approx([hit.score for hit in finished.hits])


def test_a_leg_that_did_not_return_the_hit_is_hatched(finished):
    traces = by_name(contributions(finished))
    # Only the first hit was found by full text; freshness is no leg.
    assert traces["Full text"]["marker"]["pattern"]["shape"] == ["", "/", "/"]
    assert traces["Vector similarity"]["marker"]["pattern"]["shape"] == ["", "", ""]
    assert traces["Freshness"]["marker"]["pattern"]["shape"] == ["", "", ""]


def test_the_table_says_what_the_figure_draws(finished):
    chart = contributions(finished)
    assert chart.headers == ("Hit", "Vector similarity", "Full text", "Freshness", "Score")
    assert chart.rows[0] == ("1  Rollback runbook", "0.540", "0.240", "0.050", "0.830")
    assert chart.rows[1] == ("2  Incident guide", "0.600", "0.000 (not returned)", "0.100", "0.700")
    for row, *drawn in zip(chart.rows, *(trace["x"] for trace in chart.data), strict=True):
        assert [cell.split(" ")[0] for cell in row[1:-1]] == [f"{value:.3f}" for value in drawn]
    assert chart.layout["yaxis"]["ticktext"] == [row[0] for row in chart.rows]


def test_a_reranker_whose_order_is_final_is_the_only_part(finished, make_outcome):
    reranked = replace(
        finished.hits[0], score=4.2, score_type=ScoreType.LOGIT, contributions={"rerank": 4.2}, signals={"rerank": 4.2}
    )
    chart = contributions(make_outcome(hits=(reranked, finished.hits[1])))
    assert by_name(chart)["Rerank"]["x"] == [4.2, None]
    assert by_name(chart)["Rerank"]["marker"]["color"] == "rerank"
    # What a hit has no part of is a gap, not a zero.
    assert chart.rows[0][2] == "\N{EN DASH}"


def test_nothing_is_drawn_before_the_blend_or_before_access_was_checked(finished, make_outcome):
    unblended = tuple(replace(hit, contributions={}) for hit in finished.hits)
    assert contributions(make_outcome(hits=unblended)) is None
    assert contributions(make_outcome(access_checked=False)) is None


def test_a_long_title_is_cut(finished, make_outcome):
    hit = finished.hits[0]
    long = replace(hit, facts=replace(hit.chunk, title="A title that goes on for longer than an axis has room"))
    chart = contributions(make_outcome(hits=(long,)))
    assert chart.rows[0][0] == "1  A title that goes on for lo…"
    # The whole of it is said where the bar is pointed at.
    assert chart.data[0]["customdata"][0][0].endswith("has room")


def test_a_title_is_text_and_never_markup(finished, make_outcome):
    hit = finished.hits[0]
    told = replace(hit, facts=replace(hit.chunk, title="<a href='x'>R&D</a>"))
    chart = contributions(make_outcome(hits=(told,), rankings=finished.state.rankings))
    assert chart.layout["yaxis"]["ticktext"] == ["1  &lt;a href='x'>R&amp;D&lt;/a>"]
    assert chart.data[0]["customdata"][0][0] == "&lt;a href='x'>R&amp;D&lt;/a>"
    assert chart.rows[0][0] == "1  <a href='x'>R&D</a>"
