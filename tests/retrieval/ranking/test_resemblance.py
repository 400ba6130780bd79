import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.engine.state import DropReason
from retrieval.ranking.near_duplicates import Words, drop_by_words, resemblance
from retrieval.text.fingerprints import simhash
from tests.retrieval.conftest import chunk_id
from tests.retrieval.conftest import hit as bare_hit

#: 60 words, 58 shingles. A word more in the middle splits two of them and makes three: 56 of 61 are shared, 0.918.
LONG = " ".join(f"step{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(60))


def hit(number, score=0.0, *, text, trust=1, freshness=1.0):
    made = bare_hit(number, score, text=text, trust=trust, freshness=freshness)
    return replace(made, facts=replace(made.chunk, simhash=simhash(text)))


def preference(it):
    return (it.signals["trust"], it.signals["freshness"])


def dedupe(hits, minimum=0.9, top_k=10):
    return drop_by_words(tuple(hits), preference=preference, min_similarity=minimum, top_k=top_k)


def ids(hits):
    return [it.chunk_id for it in hits]


def like(one, other, minimum=0.9):
    return resemblance(Words(one), Words(other), minimum)


def test_the_most_trusted_then_the_freshest_copy_stays_in_the_best_place():
    kept, drops = dedupe(
        (
            hit(1, text="same", trust=1, freshness=1.0),
            hit(2, text="other", trust=1, freshness=1.0),
            hit(3, text="same", trust=3, freshness=0.2),
            hit(4, text="same", trust=3, freshness=0.9),
        )
    )
    assert ids(kept) == [chunk_id(4), chunk_id(2)]
    assert {(drop.chunk_id, drop.reason, drop.detail) for drop in drops} == {
        (chunk_id(1), DropReason.DUPLICATE, f"same text as {chunk_id(4)}"),
        (chunk_id(3), DropReason.DUPLICATE, f"same text as {chunk_id(4)}"),
    }


def test_of_equal_copies_the_better_placed_one_stays():
    kept, _ = dedupe((hit(7, 0.9, text="same"), hit(3, 0.8, text="same")))
    assert ids(kept) == [chunk_id(7)]


def test_of_equal_scores_the_lower_chunk_id_stays():
    kept, _ = dedupe((hit(7, 0.9, text="same"), hit(3, 0.9, text="same")))
    assert ids(kept) == [chunk_id(3)]


def test_nearly_the_same_text_goes_and_the_drop_tells_how_alike_it_was():
    changed = LONG.replace("stepbb", "stepbb again")
    assert like(LONG, changed) == pytest.approx(56 / 61)
    kept, drops = dedupe((hit(1, text=LONG), hit(2, text=changed, trust=2)))
    assert ids(kept) == [chunk_id(2)]
    assert [drop.detail for drop in drops] == [f"0.92 like {chunk_id(2)}"]


def test_below_the_similarity_both_stay():
    changed = LONG.replace("stepbb", "stepbb again")
    assert ids(dedupe((hit(1, text=LONG), hit(2, text=changed)), minimum=0.95)[0]) == [chunk_id(1), chunk_id(2)]


def test_punctuation_and_case_make_no_difference():
    assert len(dedupe((hit(1, text="See the wiki."), hit(2, text="see the wiki")))[0]) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The rate for 2024 is 5 %", "The rate for 2025 is 5 %"),
        ("stored at -18 degrees", "stored at 18 degrees"),
        ("in 2024 it was 5 and in 2025 it was 6", "in 2024 it was 6 and in 2025 it was 5"),
        ("it is allowed", "it is not allowed"),
        ("it can be undone", "it can't be undone"),
        ("es ist erlaubt", "es ist nicht erlaubt"),
        ("ask for Alice at the gate", "ask for Bert at the gate"),
        ("goods from Vessing go left", "goods from Harburg go left"),
        ("error Q-4711 stands for it", "error Q-4712 stands for it"),
        ("the span_within query", "the span_containing query"),
        ("call getUser on it", "call on it"),
        ("the processor truncates the hits", "the processor oversamples the hits"),
    ],
)
def test_a_number_a_negation_a_name_or_another_word_in_its_place_keeps_both(one, other):
    first, second = (f"{LONG} {LONG[::-1]} {it} {LONG[5:]}" for it in (one, other))
    assert like(first, second, 0.8) == 0
    assert len(dedupe((hit(1, text=first), hit(2, text=second)), minimum=0.8)[0]) == 2


def test_the_first_word_of_a_sentence_is_no_name():
    first, second = (f"{LONG}. {it} drain the queue. {LONG[::-1]}" for it in ("Then", "Then please"))
    assert like(first, second, 0.8) > 0.8
    assert like(first, second.replace("Then please", "Please then"), 0.8) > 0.8


def test_small_words_may_stand_for_each_other():
    first, second = (f"{LONG} take {it} cart {LONG[::-1]}" for it in ("a", "the"))
    assert like(first, second, 0.8) > 0.8


def test_a_hit_is_not_dropped_for_one_that_only_resembles_another():
    # Each resembles its neighbour (0.92), the ends do not resemble each other (54 / 64 = 0.84).
    near = LONG.replace("stepbb", "stepbb again")
    far = near.replace("stepam", "stepam soon")
    assert like(LONG, near)
    assert like(near, far)
    assert not like(LONG, far)
    kept, drops = dedupe((hit(1, 0.9, text=LONG), hit(2, 0.8, text=near), hit(3, 0.7, text=far)))
    assert ids(kept) == [chunk_id(1), chunk_id(3)]
    assert len(drops) == 1


def test_hits_behind_those_shown_are_not_compared():
    texts = [f"{chr(97 + n)}x {LONG[::-1][n * 20 : n * 20 + 200]}" for n in range(3)]
    pool = [hit(n, 1 - n / 10, text=text) for n, text in enumerate(texts)]
    pool += [hit(8, 0.1, text=LONG), hit(9, 0.05, text=LONG.replace("stepbb", "stepbb again"))]
    assert len(dedupe(pool, top_k=2)[0]) == 5
    assert len(dedupe(pool, top_k=4)[0]) == 4
    # A duplicate of one that is shown is found however far behind it is.
    assert len(dedupe([*pool[3:4], *pool[:3], pool[4]], top_k=1)[0]) == 4


def test_as_many_are_compared_as_the_shown_ones_need():
    near = [LONG.replace(f"stepa{chr(97 + n)}", f"stepa{chr(97 + n)} again") for n in range(4)]
    pool = [hit(n, 1 - n / 10, text=text) for n, text in enumerate([LONG, *near])]
    pool += [hit(7, 0.2, text=LONG[::-1]), hit(8, 0.1, text=LONG[::-1].replace("bbpets", "bbpets niaga"))]
    # All of the first five are one; the two behind them only come into the window then.
    assert ids(dedupe(pool, top_k=2)[0]) == [chunk_id(0), chunk_id(7)]


_POOL = st.lists(
    st.tuples(
        st.sampled_from(["stepbb", "stepbb again", "altered", "5", "6", "gone"]),
        st.sampled_from(["stepam", "stepam soon", "a stepam", "late"]),
        st.integers(1, 3),
        st.sampled_from([0.2, 0.9]),
        st.sampled_from([0.5, 0.7]),
    ),
    max_size=12,
)


def made(pool):
    return [
        hit(
            number,
            score,
            text=LONG.replace("stepbb", one).replace("stepam", two) if one != "gone" else two,
            trust=trust,
            freshness=freshness,
        )
        for number, (one, two, trust, freshness, score) in enumerate(pool)
    ]


@settings(deadline=None)
@given(_POOL)
def test_every_hit_is_kept_or_dropped_for_one_like_it_that_is_trusted_no_less(pool):
    hits = made(pool)
    kept, drops = dedupe(hits, top_k=50)
    assert sorted(ids(kept) + [drop.chunk_id for drop in drops]) == sorted(ids(hits))
    by_id = {str(it.chunk_id): it for it in hits}
    for drop in drops:
        keeper, dropped = by_id[drop.detail.rsplit(" ", 1)[1]], by_id[str(drop.chunk_id)]
        assert keeper in kept
        assert preference(keeper) >= preference(dropped)
        assert keeper.chunk.text == dropped.chunk.text or like(keeper.chunk.text, dropped.chunk.text) >= 0.9
    texts = [it.chunk.text for it in kept]
    assert not any(like(one, other) for n, one in enumerate(texts) for other in texts[n + 1 :])


@settings(deadline=None)
@given(_POOL)
def test_a_second_time_drops_nothing(pool):
    kept, _ = dedupe(made(pool), top_k=50)
    assert dedupe(kept, top_k=50) == (kept, ())


@settings(deadline=None)
@given(_POOL, st.randoms(use_true_random=False))
def test_the_order_of_equal_scores_does_not_change_what_is_kept(pool, random):
    hits = [replace(it, score=0.5) for it in made(pool)]
    shuffled = random.sample(hits, len(hits))
    assert sorted(ids(dedupe(hits, top_k=50)[0])) == sorted(ids(dedupe(shuffled, top_k=50)[0]))


def seconds(pool, **changes):
    best = 9.0
    for _ in range(3):
        started = time.process_time()
        dedupe(pool, **changes)
        best = min(best, time.process_time() - started)
    return best


def test_a_pool_of_near_duplicates_takes_bounded_time():
    words = [LONG.replace("stepbb", f"Name{chr(97 + n % 26)}{chr(97 + n // 26)}") for n in range(200)]
    numbers = [LONG.replace("stepbb", str(n)) for n in range(200)]
    # Measured 5 to 10 ms; the rest is for slow machines.
    for texts in (words, numbers):
        assert seconds([hit(n, text=text) for n, text in enumerate(texts)]) < 0.15
