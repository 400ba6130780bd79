from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from retrieval.engine.state import DropReason
from retrieval.ranking.near_duplicates import drop_by_signature
from retrieval.text.fingerprints import minhash, similarity
from tests.retrieval.conftest import hit

WORDS = [f"word{number}" for number in range(400)]


def said(number, words):
    text = " ".join(words)
    made = hit(number, 1.0 - number / 100, text=text)
    return replace(made, facts=replace(made.chunk, minhash=minhash(text)))


def test_the_same_fact_said_many_times_is_kept_once():
    """Near-duplicate spam: copies with a word changed here and there leave one place."""
    hits = tuple(said(number, [*WORDS[:200], f"copy{number}"]) for number in range(6))
    kept, drops = drop_by_signature(hits, min_similarity=0.8)
    assert [it.chunk_id for it in kept] == [hits[0].chunk_id]
    assert {drop.instead for drop in drops} == {hits[0].chunk_id}
    assert all(drop.reason is DropReason.DUPLICATE and drop.numbers["likeness"] >= 0.8 for drop in drops)
    assert drops[0].detail == f"{drops[0].numbers['likeness']:.2f} like {hits[0].chunk_id}"


def test_what_shares_half_of_its_words_stays():
    hits = (said(1, WORDS[:200]), said(2, WORDS[100:300]), said(3, WORDS[200:]))
    assert drop_by_signature(hits, min_similarity=0.8) == (hits, ())


def test_texts_without_words_are_like_nothing():
    hits = (hit(1, text="..."), hit(2, text="..."))
    assert drop_by_signature(hits, min_similarity=0.8) == (hits, ())


def test_a_hit_is_dropped_only_for_one_that_it_resembles_itself():
    steps = tuple(said(number, WORDS[15 * number : 15 * number + 200]) for number in range(4))
    kept, drops = drop_by_signature(steps, min_similarity=0.8)
    by_id = {it.chunk_id: it for it in steps}
    for drop in drops:
        twin = by_id[drop.instead]
        assert twin in kept
        assert similarity(by_id[drop.chunk_id].chunk.minhash, twin.chunk.minhash) >= 0.8


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(5, 200)), max_size=10))
def test_bands_find_what_comparing_all_pairs_finds(spans):
    hits = tuple(said(number, WORDS[start : start + length]) for number, (start, length) in enumerate(spans))
    kept, drops = drop_by_signature(hits, min_similarity=0.9)
    assert len(kept) + len(drops) == len(hits)
    signatures = [it.chunk.minhash for it in kept]
    pairs = [(one, other) for place, one in enumerate(signatures) for other in signatures[:place]]
    # 1 - (1 - 0.9 ** 5) ** 25 leaves one pair in ten thousand millions.
    assert all(similarity(one, other) < 0.9 for one, other in pairs)
