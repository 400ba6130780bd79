"""The budget of the preset `helix`: whose time counts towards which step."""

import pytest

from retrieval.engine.state import Span
from retrieval.evaluation.bench.budget import BUDGETS, TOTAL_MS, against_budget
from retrieval.presets.catalog import preset_named


def rows(*traces, totals=(0.0,)):
    return {row.step: row for row in against_budget(totals, traces)}


def test_the_budgets_are_the_references():
    assert [it.milliseconds for it in BUDGETS] == [8, 3, 25, 15, 2, 30, 8, 10, 6]
    assert TOTAL_MS == 150
    # BM25 runs beside the vectors.
    assert sum(it.milliseconds for it in BUDGETS) - 15 == 92


def test_the_stages_of_a_step_count_together_and_a_leg_once():
    trace = [Span("analyze", 0.001, 0, 0), Span("route", 0.0015, 0, 0), Span("dense", 0.020, 0, 100, parent="legs")]
    trace += [Span("legs", 0.021, 0, 100), Span("answerability", 0.004, 9, 9)]
    found = rows(trace, totals=[30.0])
    assert found["2 scope, route"].taken_ms["p95"] == pytest.approx(2.5)
    assert found["3a dense"].taken_ms["p50"] == pytest.approx(20)
    assert found["other stages"].taken_ms["p95"] == pytest.approx(4)
    assert found["total"].taken_ms["p95"] == pytest.approx(30)


def test_a_step_that_takes_longer_at_the_95th_percentile_is_over():
    slow, quick = [Span("fuse", 0.003, 0, 0)], [Span("fuse", 0.001, 0, 0)]
    assert not rows(slow)["4 fuse"].is_kept
    assert rows(*[quick] * 99, slow)["4 fuse"].is_kept
    assert rows(slow)["other stages"].is_kept


def test_every_stage_of_helix_but_answerability_has_a_budget():
    budgeted = set().union(*(it.stages for it in BUDGETS))
    assert preset_named("helix").name == "helix"
    assert {"embed", "route", "dense", "bm25", "fuse", "expand", "signals", "diversify", "pack"} <= budgeted
