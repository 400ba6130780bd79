"""The funnel and its clock."""

from dataclasses import replace

import pytest

from explorer.components.drops import labels_of
from explorer.components.funnel import funnel, settings_of, stored_funnel
from explorer.wording import milliseconds
from retrieval.engine.state import Note, Span
from retrieval.presets.consolidated.config import ConsolidatedConfig
from retrieval.presets.corecube.config import CorecubeConfig


@pytest.fixture
def strip(finished):
    return funnel(finished, labels_of(finished.state.hits, finished.state.scope))


def cells(strip):
    return {cell["span"].stage: cell for cell in strip["cells"]}


def test_legs_stand_in_the_place_of_the_stage_that_ran_them(strip):
    assert [cell["span"].stage for cell in strip["cells"]] == [
        "analyze", "embed", "dense", "fulltext", "fuse", "complete", "blend", "dedupe", "assemble",
    ]  # fmt: skip
    assert [cell["span"].stage for cell in strip["cells"] if cell["span"].parent] == ["dense", "fulltext"]


def test_a_cell_counts_what_its_stage_left_and_dropped(strip):
    found = {stage: (cell["count"], cell["unit"], cell["dropped"]) for stage, cell in cells(strip).items()}
    assert found["analyze"] == ("2", "terms", 0)
    assert found["embed"] == ("", "", 0)
    assert found["dense"] == ("3", "hits", 0)
    assert found["fuse"] == ("4", "hits", 0)
    assert found["dedupe"] == ("3", "hits", 1)
    assert found["assemble"] == ("2", "passages", 1)


def test_the_stages_of_a_stored_search_without_hits_left_none(finished):
    spans = [replace(span, hits_in=0, hits_out=0) for span in finished.trace]
    stored = stored_funnel(spans, finished.config, {}, finished.state.scope)
    counts = {stage: cell["count"] for stage, cell in cells(stored).items()}
    assert counts == dict.fromkeys(counts, "0") | {"analyze": "", "embed": ""}


def test_the_parts_fold_all_stages_in_order_and_count_the_chunks_left(strip):
    parts = {part["name"]: part for part in strip["parts"]}
    assert {name: [cell["span"].stage for cell in part["cells"]] for name, part in parts.items()} == {
        "retrieve": ["analyze", "embed", "dense", "fulltext"],
        "fuse": ["fuse", "complete"],
        "rank": ["blend", "dedupe"],
        "pack": ["assemble"],
    }
    # Terms and dimensions are no chunks; both legs count.
    left = {name: (part["chunks"], part["dropped"]) for name, part in parts.items()}
    legs = cells(strip)["dense"]["chunks"] + cells(strip)["fulltext"]["chunks"]
    assert left == {"retrieve": (legs, 0), "fuse": (4, 0), "rank": (3, 1), "pack": (2, 1)}


def test_a_search_within_the_ranking_counts_there_so_that_the_parts_add_up(make_outcome, finished):
    spans = list(finished.trace)
    after = next(place for place, span in enumerate(spans) if span.stage == "blend")
    spans.insert(after + 1, Span("recovery", 0.001, 4, 5))
    parts = {part["name"]: part for part in funnel(make_outcome(trace=tuple(spans)), {})["parts"]}
    assert [cell["span"].stage for cell in parts["rank"]["cells"]] == ["blend", "recovery", "dedupe"]
    assert (parts["retrieve"]["chunks"], parts["retrieve"]["unit"]) == (4, "hit")


def test_legs_that_run_at_the_same_time_count_once(strip):
    # 1 + 6 + 4 (both legs) ms; 0.5 + 2; 0.5 + 0.5; 5.5.
    assert [part["milliseconds"] for part in strip["parts"]] == ["11", "2.5", "1.0", "5.5"]
    assert sum(part["bar"] for part in strip["parts"]) == pytest.approx(100, abs=0.2)


def test_a_loss_without_a_drop_is_counted_too(make_outcome, finished):
    spans = tuple(replace(span, hits_out=2) if span.stage == "complete" else span for span in finished.trace)
    assert cells(funnel(make_outcome(trace=spans), {}))["complete"]["dropped"] == 2


def test_a_bar_is_a_share_of_the_slowest_stage(strip):
    # embed takes 6 ms, the longest; dense 3 ms.
    assert cells(strip)["embed"]["bar"] == 100.0
    assert cells(strip)["dense"]["bar"] == 50.0


def test_the_clock_runs_on_the_scale_of_the_deadline(strip):
    # 1 + 6 + 4 + 0.5 + 2 + 0.5 + 0.5 + 5.5 = 20 ms of 2000; legs count once, whatever ran inside.
    assert (strip["milliseconds"], strip["deadline_ms"]) == ("20", 2000)
    assert sum(part.width for part in strip["clock"]) == pytest.approx(1.0, abs=0.05)
    assert "dense" not in {part.signal for part in strip["clock"]}


def test_a_stage_that_fell_back_is_marked(make_outcome):
    note = Note("skipped_dedupe", "Skipped to meet the deadline.", degraded=True)
    strip = funnel(make_outcome(trace=(Span("dedupe", 0.0, 4, 4, notes=(note,)),)), {})
    assert strip["cells"][0]["degraded"]


def test_an_empty_trace_makes_an_empty_funnel(make_outcome):
    strip = funnel(make_outcome(trace=()), {})
    assert (strip["cells"], strip["clock"]) == ((), ())


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.00001, "< 0.1"), (0.0004, "0.4"), (0.00999, "10.0"), (0.038, "38"), (1.2041, "1,204")]
)
def test_milliseconds(seconds, words):
    assert milliseconds(seconds) == words


def test_a_stage_shows_the_numbers_that_it_ran_with():
    settings = {key: value for key, value, _ in settings_of("fuse", CorecubeConfig())}
    assert settings == {"fusion.rank_constant": 60, "fusion.pool": 160}
    assert settings_of("access", CorecubeConfig()) == ()
    assert [key for key, *_ in settings_of("fuse", ConsolidatedConfig())] == ["fusion.rank_constant"]
