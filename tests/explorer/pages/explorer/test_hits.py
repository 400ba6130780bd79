"""The rows of the hits column."""

from dataclasses import replace
from datetime import timedelta

import pytest

from corecube.scope import FreshnessBasis
from explorer.pages.explorer.page import age, hit_rows


@pytest.fixture
def rows(finished):
    return hit_rows(finished)


def text(segments):
    return "".join(segment.text for segment in segments)


def test_a_row_says_what_where_and_how_fresh(rows):
    first = rows[0]
    assert (first["rank"], text(first["title"]), first["hit"].chunk.heading_path) == (
        1,
        "Rollback runbook",
        ("Staging",),
    )
    assert (first["source"], first["trust"], first["age"]) == ("Runbooks", "authoritative", "synced 3 days ago")
    assert [segment.text for segment in first["title"] if segment.matched] == ["Rollback"]
    assert [segment.text for segment in first["snippet"] if segment.matched] == ["Rollbacks", "staging"]


def test_a_row_says_where_each_leg_had_it(rows):
    assert [(leg["label"], leg["rank"]) for leg in rows[0]["legs"]] == [("vector", "2"), ("full text", "1")]
    assert [(leg["rank"], leg["absent"]) for leg in rows[1]["legs"]] == [("1", False), ("–", True)]  # noqa: RUF001


def test_a_row_carries_its_citation(rows):
    assert [row["citation"] for row in rows] == [1, 2, None]
    assert rows[2]["pages"] == "p. 4"


def test_each_row_is_compared_with_the_next(rows):
    assert rows[0]["verdict"].startswith("Beats #2: full text +0.240")
    assert rows[2]["verdict"] == "Last hit in the pool."


def test_a_hit_beyond_those_wanted_is_still_what_the_last_one_beats(make_outcome):
    rows = hit_rows(make_outcome(top_k=2))
    assert len(rows) == 2
    assert rows[1]["verdict"].startswith("Beats #3")


def test_a_hit_that_the_deadline_left_unread_is_left_out(finished, make_outcome):
    unread = replace(finished.hits[1], facts=None)
    assert len(hit_rows(make_outcome(hits=(finished.hits[0], unread)))) == 1


def test_age_counts_from_what_the_connection_says(finished):
    chunk = finished.hits[0].chunk
    connection = finished.state.scope.included[0].connection
    by_change = replace(connection, freshness_basis=FreshnessBasis.MODIFIED)
    changed = replace(chunk, modified_at=finished.state.now - timedelta(days=90))
    assert age(changed, connection, finished.state.now) == "synced 3 days ago"
    assert age(changed, by_change, finished.state.now) == "changed 3 months ago"
    assert age(chunk, by_change, finished.state.now) == "synced 3 days ago"


def test_a_hit_before_one_with_a_higher_score_is_marked_as_a_tie(finished, make_outcome):
    first, second, third = (
        replace(hit, score=score) for hit, score in zip(finished.hits, (0.695, 0.7, 0.2), strict=True)
    )
    rows = hit_rows(make_outcome(hits=(first, second, third)))
    assert [[badge.text for badge in row["badges"]] for row in rows] == [["tie"], [], []]
    assert rows[0]["badges"][0].detail == "Tie within 0.01: the more trusted source first."
