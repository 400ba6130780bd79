from hypothesis import given
from hypothesis import strategies as st

from retrieval.diversity import drop_exact_duplicates
from retrieval.types import DropReason
from tests.retrieval.conftest import chunk_id, hit


def preference(it):
    return (it.signals["trust"], it.signals["freshness"])


def test_the_most_trusted_then_the_freshest_copy_stays_in_the_best_place():
    hits = (
        hit(1, text="same", trust=1, freshness=1.0),
        hit(2, text="other", trust=1, freshness=1.0),
        hit(3, text="same", trust=3, freshness=0.2),
        hit(4, text="same", trust=3, freshness=0.9),
    )
    kept, drops = drop_exact_duplicates(hits, preference=preference)
    assert [it.chunk_id for it in kept] == [chunk_id(4), chunk_id(2)]
    assert {(drop.chunk_id, drop.reason) for drop in drops} == {
        (chunk_id(1), DropReason.DUPLICATE),
        (chunk_id(3), DropReason.DUPLICATE),
    }


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 3)), max_size=20))
def test_one_hit_of_every_text_stays_and_the_rest_is_dropped(pool):
    hits = tuple(hit(n, text=text, trust=trust, freshness=0.0) for n, (text, trust) in enumerate(pool))
    kept, drops = drop_exact_duplicates(hits, preference=preference)
    assert sorted(it.chunk.text for it in kept) == sorted({text for text, _ in pool})
    assert len(kept) + len(drops) == len(hits)
    assert all(it.signals["trust"] == max(t for text, t in pool if text == it.chunk.text) for it in kept)
