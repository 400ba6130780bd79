"""Score distributions: every score of the search, with what cut the list off."""

from dataclasses import replace

from explorer.charts.scores import score_charts
from retrieval.engine.state import Drop, DropReason
from retrieval.engine.types import Hit, ScoreType
from retrieval.search.configuration import Configuration
from retrieval.stages.dense import DenseConfig
from retrieval.stages.floor import FloorConfig


def charts(outcome):
    return {chart.id: chart for chart in score_charts(outcome)}


def with_config(outcome, **sections):
    return replace(outcome, configuration=Configuration(config=replace(outcome.config, **sections)))


def scored(outcome, make_outcome, **changes):
    """Return the finished search with cosines in its vector leg."""
    ids = [hit.chunk_id for hit in outcome.state.rankings["dense"]]
    dense = tuple(Hit(it, score, ScoreType.COSINE) for it, score in zip(ids, (0.8, 0.713, 0.5), strict=True))
    return make_outcome(rankings={"dense": dense, "fulltext": outcome.state.rankings["fulltext"]}, **changes)


def test_each_leg_and_the_final_order_has_its_scores(finished, make_outcome):
    found = charts(scored(finished, make_outcome))
    assert list(found) == ["scores-dense", "scores-fulltext", "scores-final"]
    line, marks = found["scores-dense"].data
    assert (line["x"], line["y"]) == ([1, 2, 3], [0.8, 0.713, 0.5])
    assert marks["x"] == [1, 2, 3]
    assert found["scores-final"].data[0]["y"] == [hit.score for hit in finished.hits]


def test_the_table_says_what_the_figure_draws(finished, make_outcome):
    for chart in score_charts(scored(finished, make_outcome, top_k=2)):
        line, marks = chart.data
        assert chart.rows == tuple(
            (str(place), f"{score:.4f}", "yes" if place in marks["x"] else "no")
            for place, score in zip(line["x"], line["y"], strict=True)
        )


def test_the_hits_wanted_cut_the_final_order(finished, make_outcome):
    final = charts(scored(finished, make_outcome, top_k=2))["scores-final"]
    assert final.data[1]["x"] == [1, 2]
    assert [shape["x0"] for shape in final.layout["shapes"]] == [2.5]
    assert "top 2" in final.summary


def test_the_depth_cuts_a_leg_that_is_full(finished, make_outcome):
    full = with_config(scored(finished, make_outcome), dense=DenseConfig(depth=3))
    dense = charts(full)["scores-dense"]
    assert [shape["y0"] for shape in dense.layout["shapes"]] == [0.5]
    assert "cut-off at 3 hits: 0.500" in dense.summary
    assert not charts(scored(finished, make_outcome))["scores-dense"].layout["shapes"]


def test_a_floor_is_drawn_near_the_scores_and_told_when_far(finished, make_outcome):
    near = charts(with_config(finished, floor=FloorConfig(blend=0.2)))["scores-final"]
    assert [shape["y0"] for shape in near.layout["shapes"]] == [0.2]
    logits = tuple(replace(hit, score_type=ScoreType.LOGIT) for hit in finished.hits)
    far = charts(with_config(make_outcome(hits=logits), floor=FloorConfig(logit=-19.0)))["scores-final"]
    assert far.layout["shapes"] == []
    assert "floor -19" in far.summary


def test_what_the_second_access_check_dropped_is_in_no_chart(finished, make_outcome):
    lost = finished.state.rankings["dense"][0].chunk_id
    dropped = scored(finished, make_outcome, drops=(Drop(lost, DropReason.ACCESS),), hits=(finished.hits[0],))
    assert charts(dropped)["scores-dense"].data[0]["y"] == [0.713, 0.5]
    assert score_charts(scored(finished, make_outcome, access_checked=False)) == ()
