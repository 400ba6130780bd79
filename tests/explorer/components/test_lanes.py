from dataclasses import replace

import pytest

from explorer.components import lanes
from explorer.components.lanes import (
    MAX_CARDS,
    Facts,
    Source,
    drop_words,
    hue_of,
    lane_sources,
    lanes_panel,
    shown_hits,
)
from retrieval.engine.state import Drop, DropReason
from retrieval.engine.types import Hit, ScoreType, TermMatch
from tests.explorer.conftest import FIRST, RUNBOOKS, SCOPE, SECOND, THIRD, WIKI, chunk_id


def panel(outcome, *, without=()):
    sources = lane_sources(outcome)
    read = {hit.chunk_id: hit for hit in (FIRST, SECOND, THIRD) if hit.chunk_id not in without}
    return lanes_panel(sources, Facts(read, SCOPE, drop_words(outcome)))


def hits(*numbers):
    return tuple(Hit(chunk_id(number), 1 / place, ScoreType.COSINE) for place, number in enumerate(numbers, start=1))


def numbers(lane):
    return [card.chunk_id and card.chunk_id.document_id.int for card in lane["cards"]]


def test_the_result_stands_between_the_first_leg_and_the_others(finished):
    lanes = panel(finished)["lanes"]
    assert [(lane["key"], lane["label"], lane["total"]) for lane in lanes] == [
        ("dense", "Vector", 3),
        ("result", "Hybrid", 3),
        ("fulltext", "Full text", 1),
    ]
    assert [numbers(lane) for lane in lanes] == [[2, 1, 3], [1, 2, 3], [1]]
    assert panel(finished)["result"] == "Hybrid"


def test_cards_say_where_the_result_put_a_chunk(finished):
    dense, result, fulltext = panel(finished)["lanes"]
    told = [(place.lane, place.text, place.direction) for card in dense["cards"] for place in card.places]
    # 2, 1, 3 became 1, 2, 3.
    assert told == [("Hybrid", "2", "down"), ("Hybrid", "1", "up"), ("Hybrid", "3", "same")]
    assert [(it.lane, it.text, it.direction) for it in result["cards"][0].places] == [
        ("Vector", "2", "up"),
        ("Full text", "1", "same"),
    ]
    assert [(it.lane, it.text, it.direction) for it in result["cards"][1].places] == [
        ("Vector", "1", "down"),
        ("Full text", "\N{EN DASH}", ""),
    ]
    assert [place.direction for place in fulltext["cards"][0].places] == ["same"]
    assert not any(card.is_alone for card in (*dense["cards"], *result["cards"]))


def test_lines_join_the_same_chunk_and_are_coloured_by_what_the_result_did(finished):
    first, second, last = (lane["gap"] for lane in panel(finished)["lanes"])
    assert [(line["path"], line["direction"]) for line in first["lines"]] == [
        ("M0 50C50 50 50 150 100 150", "down"),
        ("M0 150C50 150 50 50 100 50", "up"),
        ("M0 250C50 250 50 250 100 250", "same"),
    ]
    assert (first["width"], first["height"]) == (100, 300)
    assert [line["path"] for line in second["lines"]] == ["M0 50C50 50 50 50 100 50"]
    assert last is None


def test_figures_compare_the_whole_legs(finished):
    # 2, 1, 3 and 1: one shared of three. RBO of lists of 3 and 1 with overlaps 0, 1, 1 and X(s) = 0:
    # 0.1 / 0.9 x (0 + 0.81 / 2 + 0.729 / 3) + (1 / 3 + 0) x 0.729 = 0.072 + 0.243.
    overlap = panel(finished)["overlap"]
    found = overlap["found"]
    assert [len(it) for it in (found.only_left, found.both, found.only_right)] == [2, 1, 0]
    assert found.jaccard == pytest.approx(1 / 3)
    assert found.rbo == pytest.approx(0.315)
    assert (overlap["left"], overlap["right"]) == ("Vector", "Full text")


def test_a_dropped_chunk_says_why(make_outcome):
    drop = Drop(chunk_id(3), DropReason.DUPLICATE, "same text")
    outcome = make_outcome(hits=(FIRST, SECOND), drops=(drop,))
    (card,) = (card for card in panel(outcome)["lanes"][0]["cards"] if card.chunk_id == chunk_id(3))
    assert [(place.text, place.direction) for place in card.places] == [("duplicate", "")]
    assert card.is_alone


def test_what_access_stopped_is_in_no_lane(make_outcome):
    outcome = make_outcome(hits=(FIRST, SECOND), drops=(Drop(chunk_id(3), DropReason.ACCESS),))
    lanes = panel(outcome)["lanes"]
    assert [numbers(lane) for lane in lanes] == [[2, 1], [1, 2], [1]]
    assert len(panel(outcome)["overlap"]["found"].only_left) == 1
    assert chunk_id(3) not in drop_words(outcome)


def test_of_what_was_gone_no_lane_says_why(make_outcome):
    assert drop_words(make_outcome(drops=(Drop(chunk_id(3), DropReason.STALE),))) == {}


def test_before_access_was_checked_the_result_is_empty(make_outcome):
    outcome = make_outcome(access_checked=False)
    assert [numbers(lane) for lane in panel(outcome)["lanes"]] == [[2, 1, 3], [], [1]]


def test_a_chunk_that_cannot_be_read_has_a_place_and_no_text(finished):
    card = panel(finished, without={chunk_id(2)})["lanes"][0]["cards"][0]
    assert (card.rank, card.chunk_id, card.title, card.snippet, card.source, card.hue) == (1, None, (), (), "", "")


def test_cards_carry_the_title_its_connection_and_the_matched_words(finished):
    card = panel(finished)["lanes"][1]["cards"][0]
    assert (card.source, card.hue, card.score) == ("Runbooks", hue_of(RUNBOOKS.id), "0.830")
    assert card.trail == ("Staging",)
    assert [segment.text for segment in card.title if segment.matched] == ["Rollback"]
    marked = replace(FIRST, matches=(TermMatch("releas", 1.0, 0.1, "C"),))
    told = lanes_panel(lane_sources(finished), Facts({chunk_id(1): marked}, SCOPE))
    assert [segment.text for segment in told["lanes"][1]["cards"][0].snippet if segment.matched] == ["release"]


def test_a_connection_keeps_its_hue():
    assert hue_of(RUNBOOKS.id) == hue_of(RUNBOOKS.id + 8) != hue_of(WIKI.id)


def test_a_lane_shows_so_many_cards_and_lines_stay_inside(make_outcome):
    outcome = make_outcome(
        rankings={"dense": hits(*range(1, 31)), "fulltext": hits(*range(30, 0, -1))}, hits=hits(*range(1, 31))
    )
    shown = panel(outcome)
    assert [len(lane["cards"]) for lane in shown["lanes"]] == [MAX_CARDS] * 3
    assert len(shown["lanes"][0]["gap"]["lines"]) == MAX_CARDS
    # Of the result's first 20, full text has 11 to 20 at its places 20 to 11.
    assert len(shown["lanes"][1]["gap"]["lines"]) == 10
    assert len(shown["overlap"]["found"].both) == 30
    assert len(shown_hits(lane_sources(outcome))) == 30
    assert [card.rank for card in shown["lanes"][1]["cards"] if card.is_last] == [10]
    assert shown["lanes"][1]["returned"] == 10


def test_the_table_has_each_chunk_once_with_its_places_in_the_whole_rankings(make_outcome):
    outcome = make_outcome(rankings={"dense": hits(*range(1, 31)), "fulltext": hits(30, 2)}, hits=hits(30, 1))
    rows = panel(outcome)["table"]
    assert [cell and cell["rank"] for cell in rows[0][1]] == [30, 1, 1]
    assert [cell and cell["rank"] for cell in rows[1][1]] == [1, 2, None]
    assert len(rows) == 21


def test_one_leg_is_compared_with_its_own_result(make_outcome):
    shown = panel(make_outcome(rankings={"dense": hits(2, 1, 3)}))
    assert [lane["label"] for lane in shown["lanes"]] == ["Vector", "Result"]
    assert (shown["overlap"]["left"], shown["overlap"]["right"]) == ("Vector", "Result")
    assert len(shown["overlap"]["found"].both) == 3


def test_any_number_of_legs_can_stand_beside_the_result(make_outcome):
    rankings = {"dense": hits(1), "graph": hits(1, 2), "fulltext": hits(3)}
    shown = panel(make_outcome(rankings=rankings))
    assert [lane["label"] for lane in shown["lanes"]] == ["Vector", "Hybrid", "Graph", "Full text"]
    assert shown["overlap"] is None
    none = panel(make_outcome(rankings={}, hits=()))
    assert [lane["total"] for lane in none["lanes"]] == [0]


def test_two_runs_take_the_same_widget():
    sources = (Source("a", "A", hits(1, 2)), Source("b", "B", hits(2, 3), is_result=True))
    shown = lanes_panel(sources, Facts({}, SCOPE))
    left, right = shown["lanes"]
    assert [card.places[0].direction for card in left["cards"]] == ["", "up"]
    assert [card.places[0].text for card in right["cards"]] == ["2", "\N{EN DASH}"]
    assert [line["direction"] for line in shown["lanes"][0]["gap"]["lines"]] == ["up"]


def test_the_snippet_of_a_chunk_in_several_lanes_is_made_once(finished, monkeypatch):
    made = []
    monkeypatch.setattr(lanes, "hit_text", lambda hit, _, **__: made.append(hit) or ((), ()))
    sources = lane_sources(finished)
    read = {hit.chunk_id: hit for hit in (FIRST, SECOND, THIRD)}
    lanes_panel(sources, Facts(read, SCOPE))
    assert len(made) == 3
    assert sum(len(source.hits) for source in sources) > 3
