from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from retrieval.engine.state import DropReason
from retrieval.presets.consolidated.evidence.order import QuotaConfig, cut_with_quota
from tests.retrieval.presets.consolidated.evidence.conftest import numbers, pools, type_of, typed

CONFIG = QuotaConfig()


def cut(types, top_k, config=CONFIG):
    hits = tuple(typed(number, kind) for number, kind in enumerate(types))
    kept, drops = cut_with_quota(hits, top_k, type_of=type_of, config=config)
    return numbers(kept), [it.chunk_id.document_id.int for it in drops]


def test_a_minority_below_the_cut_gets_seats():
    types = ["pdf"] * 8 + ["excel"] * 3 + ["costar"]
    # One seat for each type, then a second for excel: half of the places; the rest by rank.
    assert cut(types, 8) == ([0, 1, 2, 3, 4, 8, 9, 11], [5, 6, 7, 10])


def test_a_hit_that_gave_its_place_to_a_seat_says_so():
    hits = tuple(typed(number, kind) for number, kind in enumerate(["pdf"] * 8 + ["excel"] * 3 + ["costar"]))
    _, drops = cut_with_quota(hits, 8, type_of=type_of, config=CONFIG)
    assert [(it.reason, it.detail) for it in drops] == [
        *((DropReason.SOURCE_QUOTA, f"rank {rank}, window 8") for rank in (6, 7, 8)),
        (DropReason.OUTSIDE_WINDOW, "rank 11, window 8"),
    ]


def test_one_type_alone_is_cut_by_rank():
    assert cut(["pdf"] * 5, 3) == ([0, 1, 2], [3, 4])


def test_with_more_types_than_places_the_better_placed_ones_stay():
    assert cut(["pdf", "excel", "costar", "docx"], 2) == ([0, 1], [2, 3])


def test_second_seats_end_at_their_share_of_the_places():
    types = ["pdf"] * 6 + ["excel"] * 2 + ["costar"] * 2
    # Three first seats are more than half of 4: nobody gets a second one.
    assert cut(types, 4)[0] == [0, 1, 6, 8]


@given(pools(), st.integers(1, 30), st.integers(1, 6), st.floats(0, 1))
def test_every_type_stays_in_a_cut_of_the_right_size(hits, top_k, seats, share):
    config = replace(CONFIG, seats=seats, max_share=share)
    kept, drops = cut_with_quota(hits, top_k, type_of=type_of, config=config)
    assert len(kept) == min(top_k, len(hits))
    assert len(kept) + len(drops) == len(hits)
    assert kept == tuple(it for it in hits if it in kept)
    types = {type_of(it) for it in hits}
    assert len({type_of(it) for it in kept}) == min(len(types), top_k)
    if hits:
        assert hits[0] in kept
