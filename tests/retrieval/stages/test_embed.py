"""What is embedded of a query, and what is kept of it."""

from dataclasses import replace

import numpy as np
import pytest

from corecube.access import Principal
from retrieval.engine.query import read_query
from retrieval.index import active
from retrieval.search import runtime
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from retrieval.stages.embed import Embed
from tests.fakes import HashEncoder


def notes(world, name, text="rollback"):
    outcome = search(SearchRequest(text=text), principal=world.principal(name))
    return [note.code for span in outcome.trace if span.stage == "embed" for note in span.notes]


@pytest.fixture
def kept(settings):
    settings.CORECUBE_QUERY_CACHE = 50
    yield
    runtime._query_cache.cache_clear()


def test_the_vector_is_that_of_the_plain_text(state):
    query = read_query('"drain the queue" -staging', characters=500)
    vector = Embed(HashEncoder())(replace(state, query=query)).vector
    assert np.array_equal(vector, HashEncoder().encode_query("drain the queue"))


def test_a_query_asked_again_says_that_its_vector_was_kept(world, kept):
    assert notes(world, "bob") == []
    assert notes(world, "bob") == ["embed_cached"]
    # Syntax makes no other text.
    assert notes(world, "bob", "rollback -staging") == ["embed_cached"]


def test_what_someone_else_asked_is_not_told(world, kept):
    assert notes(world, "alice") == []
    assert notes(world, "bob") == []


def test_what_an_admin_asked_as_somebody_is_not_told_to_them_nor_theirs_to_the_admin(world, kept):
    def asked(actor):
        principal = Principal(world.bob, actor=actor)
        outcome = search(SearchRequest(text="rollback"), principal=principal)
        return [note.code for span in outcome.trace if span.stage == "embed" for note in span.notes]

    assert [asked(world.alice), asked(world.alice), asked(None), asked(None)] == [[], ["embed_cached"]] * 2
    assert notes(world, "alice") == []


def test_nothing_is_kept_when_the_setting_is_0(world):
    assert notes(world, "bob") == notes(world, "bob") == []


def test_who_measures_uses_no_kept_vector(world, kept):
    assert runtime.resources().query_cache is not None
    assert runtime.resources(active.encoder()).query_cache is None


def test_a_kept_vector_finds_the_same(world, kept):
    asked = SearchRequest(text="rollback staging")
    first, again = (search(asked, principal=world.principal("bob")) for _ in range(2))
    assert [hit.chunk_id for hit in first.hits] == [hit.chunk_id for hit in again.hits]
    assert first.hits[0].signals["cosine"] == again.hits[0].signals["cosine"]
