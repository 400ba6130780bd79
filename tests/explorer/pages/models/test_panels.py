"""Models and indexes as their page shows them."""

from datetime import UTC, datetime, timedelta

import pytest

from explorer.pages.models.panels import announcement, encoder_card, index_row, pace, reranker_card
from retrieval.encoders.reranker import UnavailableReranker
from retrieval.index.embedding_index import Progress
from retrieval.models import EmbeddingIndex
from tests.fakes import HashEncoder

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def row(status="building", missing=60, **values):
    made = EmbeddingIndex(
        pk=2,
        model="new",
        source="local:new",
        dim=96,
        status=status,
        created_at=NOW - timedelta(hours=1),
        heartbeat_at=NOW,
        **values,
    )
    return index_row(made, Progress(80, missing, 4.0), hnsw_bytes=1000, now=NOW, alive=NOW - timedelta(seconds=30))


def test_a_building_shows_how_far_it_is_and_how_long_it_takes():
    found = row()
    assert (found["status"], found["made"].done, found["share"], found["pace"]) == (
        "building",
        20,
        25.0,
        "4 chunks/s, about 15 s left",
    )
    assert (found["is_building"], found["can_switch"], found["is_stopped"]) == (True, False, False)
    # 1000 of the HNSW index and 20 vectors of 96 numbers of two bytes, each in a row of 72 bytes more.
    assert found["size"] == "6.3 KB"
    assert announcement([found]) == "Index 2: 25 percent"


def test_one_that_is_built_can_be_switched_to():
    found = row(missing=0)
    assert (found["status"], found["tone"], found["can_switch"], found["is_building"]) == (
        "complete",
        "good",
        True,
        False,
    )
    assert row("previous", missing=0)["is_previous"]
    assert not row("active", missing=0)["can_switch"]


def test_a_building_that_nobody_goes_on_with_is_stopped():
    assert row(problem="The service is down.")["is_stopped"]
    silent = EmbeddingIndex(pk=3, model="new", dim=4, created_at=NOW, heartbeat_at=NOW - timedelta(minutes=2))
    alive = NOW - timedelta(seconds=30)
    assert index_row(silent, Progress(8, 8, 0.0), hnsw_bytes=0, now=NOW, alive=alive)["is_stopped"]


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (Progress(80, 60, 0.0), ""),
        (Progress(80, 60, 0.5), "0 chunks/s, about 2 min left"),
        (Progress(80, 60, 60.0), "60 chunks/s, about 1 s left"),
    ],
)
def test_the_pace_is_told_once_it_is_known(made, words):
    assert pace(made) == words


def test_a_card_tells_what_a_model_is():
    card = encoder_card(HashEncoder())
    assert (card.role, card.name, card.problem) == ("Embedding model", "hash", "")
    assert ("Dimensions", "64") in card.facts
    assert ("Maximum input", "512 tokens") in card.facts


def test_a_reranker_that_cannot_be_had_says_why():
    card = reranker_card(UnavailableReranker("small", "It is not on this machine."), candidates=30)
    assert (card.name, card.problem) == ("small", "It is not on this machine.")
    assert ("Candidates", "top 30 hits") in card.facts
    assert reranker_card(None, candidates=30).name == "none"
