from dataclasses import replace

from corecube.scope import TrustLevel
from retrieval.engine.state import DropReason
from retrieval.stages.dedupe import Dedupe, DedupeConfig
from retrieval.text.fingerprints import simhash
from tests.retrieval.conftest import chunk_id, connection, hit, scope

TEXT = "whoever drains the queue tells the captain first and waits for the word before the release is rolled back " * 3


def copy(number, text, connection_id):
    made = hit(number, 1 - number / 10, text=text, connection_id=connection_id, freshness=1.0)
    return replace(made, facts=replace(made.chunk, simhash=simhash(text)))


def test_the_most_trusted_of_near_duplicates_takes_the_best_place(state):
    trusted = scope(connection(1), connection(2, trust=TrustLevel.AUTHORITATIVE))
    hits = (copy(1, TEXT, 1), copy(2, "another text", 1), copy(3, f"{TEXT} today", 2))
    after = Dedupe(DedupeConfig())(replace(state, scope=trusted, hits=hits))
    assert [it.chunk_id for it in after.hits] == [chunk_id(3), chunk_id(2)]
    (drop,) = after.drops
    assert (drop.chunk_id, drop.reason) == (chunk_id(1), DropReason.DUPLICATE)
    assert drop.detail.endswith(f" like {chunk_id(3)}")


def test_near_duplicates_behind_the_hits_wanted_are_compared_where_their_order_may_change(state):
    hits = (copy(1, "another text", 1), copy(2, TEXT, 1), copy(3, f"{TEXT} today", 1))
    wanted = replace(state, hits=hits, top_k=1)
    assert len(Dedupe(DedupeConfig())(wanted).hits) == 3
    assert [it.chunk_id for it in Dedupe(DedupeConfig(), min_window=3)(wanted).hits] == [chunk_id(1), chunk_id(2)]


def test_at_a_similarity_of_one_only_equal_words_are_duplicates(state):
    hits = (copy(1, TEXT, 1), copy(2, f"{TEXT} today", 1), copy(3, TEXT.upper(), 1))
    after = Dedupe(DedupeConfig(min_similarity=1.0))(replace(state, hits=hits))
    assert [it.chunk_id for it in after.hits] == [chunk_id(1), chunk_id(2)]
