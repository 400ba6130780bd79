"""Lanes of real searches: the chunks that only a leg has are read."""

from dataclasses import replace

import pytest

from explorer.pages.explorer.page import completed, lanes_of
from retrieval.models import Chunk
from retrieval.search.request import SearchRequest
from retrieval.search.service import search


@pytest.fixture
def narrow(world):
    """Return a search of Alice's of which only one chunk came into the pool."""
    return search(
        SearchRequest(text="rollback staging queue", overrides={"fusion.pool": 1}), principal=world.principal("alice")
    )


def cards(lanes):
    return [card for lane in lanes["lanes"] for card in lane["cards"]]


def test_what_the_pool_lost_is_read_by_one_statement(narrow, django_assert_num_queries):
    # The statement, and the savepoint around it that a transaction needs.
    with django_assert_num_queries(3):
        lanes = lanes_of(narrow)
    assert len(cards(lanes)) > len(narrow.state.hits) + 1
    assert all(card.chunk_id and card.title and card.source for card in cards(lanes))
    assert any(place.text == "outside the pool" for card in cards(lanes) for place in card.places)


def test_what_is_gone_meanwhile_has_a_place_and_no_text(narrow):
    Chunk.objects.all().delete()
    lanes = lanes_of(narrow)
    assert sum(card.chunk_id is None for card in cards(lanes)) > 0
    assert all(card.rank for card in cards(lanes))


def test_nothing_out_of_scope_is_read_or_kept(narrow, world):
    from corecube.access import scope_for

    state = narrow.state
    hits = {hit.chunk_id: hit for hit in (*state.hits, *state.rankings["dense"])}
    read = completed(hits, scope=scope_for(world.principal("bob")), terms=state.terms)
    assert {hit.chunk.connection_id for hit in read.values()} == {world.runbooks.pk}


def test_a_leg_alone_has_lanes_too(narrow):
    outcome = replace(narrow, state=replace(narrow.state, rankings={"dense": narrow.state.rankings["dense"]}))
    assert [lane["label"] for lane in lanes_of(outcome)["lanes"]] == ["Vector", "Result"]
