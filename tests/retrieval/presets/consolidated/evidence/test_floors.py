from hypothesis import given
from hypothesis import strategies as st

from retrieval.engine.state import DropReason
from retrieval.presets.consolidated.evidence.density import above_quality_floor, above_score_floor
from tests.retrieval.presets.consolidated.evidence.conftest import numbers, typed


def test_what_reaches_the_score_floor_stays_and_what_was_not_measured_too():
    hits = (typed(1, cosine=0.18), typed(2, cosine=0.179), typed(3), typed(4, cosine=0.5))
    kept, drops = above_score_floor(hits, 0.18)
    assert numbers(kept) == [1, 3, 4]
    assert [(drop.reason, drop.numbers) for drop in drops] == [
        (DropReason.BELOW_FLOOR, {"nearness": 0.179, "cosine": 0.179, "floor": 0.18})
    ]


def test_what_reaches_the_quality_floor_stays():
    kept, drops = above_quality_floor((typed(1, quality=0.25), typed(2, quality=0.2)), 0.25)
    assert numbers(kept) == [1]
    assert drops[0].reason is DropReason.QUALITY
    assert drops[0].detail == "quality 0.20, floor 0.25"


@given(st.lists(st.floats(-1, 1), max_size=20), st.floats(0, 1), st.floats(0, 1))
def test_a_lower_floor_keeps_all_that_a_higher_one_keeps(cosines, one, other):
    hits = tuple(typed(number, cosine=cosine) for number, cosine in enumerate(cosines))
    low, high = sorted((one, other))
    kept, drops = above_score_floor(hits, low)
    assert set(numbers(above_score_floor(hits, high)[0])) <= set(numbers(kept))
    assert len(kept) + len(drops) == len(hits)
