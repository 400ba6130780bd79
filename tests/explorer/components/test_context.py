"""The context and its budget."""

import pytest

from explorer.components.context import context_panel
from explorer.components.drops import MAX_ROWS, labels_of
from retrieval.engine.state import Drop, DropReason


def test_the_passages_and_their_budget_are_shown(finished):
    panel = context_panel(finished, {})
    assert [(row.number, row.token_count) for row in panel["passages"]] == [(1, 36), (2, 30)]
    assert (panel["used"], panel["budget"], panel["share"]) == (66, 4000, 1.65)
    assert panel["passages"][0].hit.chunk.text == finished.hits[0].chunk.text


@pytest.fixture
def labels(finished):
    return labels_of(finished.state.hits, finished.state.scope)


def test_what_was_left_out_is_told_apart_from_what_was_not_wanted(finished, make_outcome, labels):
    beyond = Drop(finished.hits[1].chunk_id, DropReason.TOP_K, "rank 11, top 10")
    panel = context_panel(make_outcome(drops=(*finished.state.drops, beyond)), labels)
    assert [(row.label, row.reason) for row in panel["left_out"]["rows"]] == [
        ("Document 3 › Staging — Wiki", "over the token budget")  # noqa: RUF001
    ]
    # The near-duplicate is not among what the viewer may name.
    assert (panel["cut"], panel["left_out"]["listed"], panel["beyond"]) == (1, "1 of 2 listed", 1)


def test_everything_left_out_is_listed_with_its_reason_those_first_that_came_furthest(finished, make_outcome, labels):
    chunk_id = finished.hits[0].chunk_id
    reasons = ("quality", "outside_window", "below_floor", "duplicate_of", "repetitive", "budget", "stale", "access")
    drops = tuple(Drop(chunk_id, DropReason(reason)) for reason in reasons)
    panel = context_panel(make_outcome(drops=drops), labels)
    assert [row.reason for row in panel["left_out"]["rows"]] == [
        "over the token budget", "repetitive", "duplicate", "below the minimum score", "quality too low",
    ]  # fmt: skip
    assert panel["left_out"]["listed"] == ""


def test_a_long_list_of_what_was_left_out_ends_in_a_count(finished, make_outcome, labels):
    drops = (Drop(finished.hits[0].chunk_id, DropReason.QUALITY),) * (MAX_ROWS + 5)
    panel = context_panel(make_outcome(drops=drops), labels)
    assert (len(panel["left_out"]["rows"]), panel["left_out"]["listed"]) == (MAX_ROWS, "100 of 105 listed")
