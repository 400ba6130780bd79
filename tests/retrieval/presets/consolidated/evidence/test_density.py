from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.encoders.breaker import BreakerState
from retrieval.presets.consolidated.evidence.density import (
    DensityConfig,
    TightenHint,
    TightenSkip,
    first_cliff,
    is_rate_in_band,
    tighten,
    tighten_hint,
)
from retrieval.presets.consolidated.evidence.depth import Grade
from tests.retrieval.presets.consolidated.evidence.conftest import TYPES, numbers, type_of, typed

CONFIG = DensityConfig()
#: Behind the third score the next is 0.50 < 0.85 * 0.70, and 0.20 smaller.
CLIFF = (0.80, 0.75, 0.70, 0.50, 0.49)
CLOSED = BreakerState.CLOSED


def hint_of(cosines=CLIFF, *, grade=Grade.A, static_floor=0.18, keep=2, breaker=CLOSED):
    return tighten_hint(cosines, grade=grade, static_floor=static_floor, keep=keep, breaker=breaker, config=CONFIG)


def pool(cosines=CLIFF, types=None):
    return tuple(
        typed(number, (types or ["pdf"] * len(cosines))[number], cosine=cosine) for number, cosine in enumerate(cosines)
    )


def test_the_tail_behind_a_cliff_goes():
    hint = hint_of(tuple(reversed(CLIFF)))
    assert hint == TightenHint(floor=0.70, cliff_position=3)
    done = tighten(pool(), hint, keep=2, breaker=CLOSED, type_of=type_of)
    assert numbers(done.hits) == [0, 1, 2]
    assert done.telemetry == {
        "tighten_applied": True,
        "tighten_effective_floor": 0.70,
        "tighten_cliff_position": 3,
        "tighten_dropped_count": 2,
        "tighten_skip_reason": "",
    }


@pytest.mark.parametrize("grade", [Grade.C, Grade.D, Grade.F])
def test_poor_grades_are_never_cut(grade):
    assert hint_of(grade=grade).skip is TightenSkip.GRADE


def test_a_b_is_cut_too():
    assert hint_of(grade=Grade.B).floor == 0.70


def test_without_its_inputs_nothing_is_cut():
    for missing in ({"cosines": None}, {"static_floor": None}, {"keep": None}):
        assert hint_of(**missing).skip is TightenSkip.INPUTS


@pytest.mark.parametrize("state", [BreakerState.OPEN, BreakerState.HALF_OPEN])
def test_a_breaker_that_is_not_closed_forbids_it_at_both_times(state):
    assert hint_of(breaker=state).skip is TightenSkip.BREAKER
    done = tighten(pool(), hint_of(), keep=2, breaker=state, type_of=type_of)
    assert (done.hits, done.skip) == (pool(), TightenSkip.BREAKER_AT_APPLY)
    assert done.telemetry["tighten_skip_reason"] == "breaker_not_closed_at_apply"
    assert done.telemetry["tighten_cliff_position"] == 3


def test_there_must_be_room_above_the_core():
    assert hint_of(keep=5).skip is TightenSkip.NO_ROOM
    assert hint_of(keep=4).skip is TightenSkip.NO_CLIFF
    assert hint_of(keep=3).cliff_position == 3


@pytest.mark.parametrize(
    ("before", "after", "is_cliff"),
    [
        (0.20, 0.16, False),  # a fifth less, but only by 0.04
        (0.40, 0.34, False),  # by 0.06, but exactly 85 %
        (0.40, 0.339, True),
        (0.30, 0.25, True),  # 0.83 of it, and by 0.05
        (0.30, 0.251, False),
    ],
)
def test_a_cliff_is_steep_and_high(before, after, is_cliff):
    assert first_cliff((before, after), start=1, config=CONFIG) == (1 if is_cliff else None)


def test_the_first_cliff_counts_and_not_the_best():
    assert hint_of((0.9, 0.8, 0.6, 0.1)).cliff_position == 2


def test_it_never_ends_weaker_than_the_sections_own_floor():
    hint = hint_of((0.5, 0.4, 0.3, 0.18))
    assert (hint.floor, hint.cliff_position) == (0.4, 2)
    assert hint_of((0.5, 0.4, 0.18)).skip is TightenSkip.WEAKER
    assert hint_of((0.5, 0.4, 0.19)).floor == 0.4


def test_the_last_of_a_source_type_is_not_cut_off():
    hits = pool(types=["pdf", "pdf", "pdf", "costar", "pdf"])
    done = tighten(hits, hint_of(), keep=2, breaker=CLOSED, type_of=type_of)
    assert (done.hits, done.skip, done.drops) == (hits, TightenSkip.SOURCE_DIVERSITY_LOSS, ())
    assert done.telemetry["tighten_effective_floor"] is None


def test_a_pool_that_lost_hits_meanwhile_keeps_its_core():
    done = tighten(pool()[2:], hint_of(), keep=2, breaker=CLOSED, type_of=type_of)
    assert (len(done.hits), done.skip) == (3, TightenSkip.POOL_SIZE)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.sampled_from(TYPES)), max_size=30),
    st.integers(1, 12),
    st.floats(0, 0.5),
    st.sampled_from(Grade),
    st.sampled_from(BreakerState),
    st.sampled_from(BreakerState),
)
def test_both_invariants_hold_whatever_the_pool(rows, keep, static_floor, grade, then, now):
    hits = tuple(typed(number, kind, cosine=cosine) for number, (cosine, kind) in enumerate(rows))
    hint = hint_of([cosine for cosine, _ in rows], grade=grade, static_floor=static_floor, keep=keep, breaker=then)
    done = tighten(hits, hint, keep=keep, breaker=now, type_of=type_of)
    assert {type_of(it) for it in done.hits} == {type_of(it) for it in hits}
    assert len(done.hits) + len(done.drops) == len(hits)
    assert bool(done.drops) <= done.is_applied
    if done.is_applied:
        assert then is now is CLOSED
        assert grade.is_high
        assert len(done.hits) >= keep
        assert done.floor > static_floor
        assert min(it.signals["cosine"] for it in done.hits) >= done.floor
    else:
        assert done.hits == hits


def test_how_often_it_should_be_cut():
    assert is_rate_in_band(Counter(), CONFIG)
    assert is_rate_in_band(Counter({True: 2, False: 98}), CONFIG)
    assert is_rate_in_band(Counter({True: 40, False: 60}), CONFIG)
    assert not is_rate_in_band(Counter({True: 1, False: 99}), CONFIG)
    assert not is_rate_in_band(Counter({True: 41, False: 59}), CONFIG)
