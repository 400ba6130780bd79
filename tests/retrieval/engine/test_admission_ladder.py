from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from corecube.errors import ConfigError
from retrieval.encoders.admission import INGEST_SLOTS, MIN_CALLS, calls_under
from retrieval.engine.admission_ladder import Ladder, LadderConfig, PoolConfig, Purpose, Refusal

CONFIG = LadderConfig()
LADDER = Ladder(PoolConfig(), CONFIG)
PRIMARY, DIVERSITY, RECOVERY = Purpose


def test_the_rungs_in_connections():
    shares = (CONFIG.triage, CONFIG.hard_reject, CONFIG.short_budget_reject, CONFIG.recovery_skip)
    # 76.8, 84.48, 86.4 and 88.32 of 96, rounded down; 84 leave twelve to spare.
    assert [LADDER.rung(share) for share in shares] == [76, 84, 86, 88]


@pytest.mark.parametrize(
    ("active", "seconds", "purpose", "refusal"),
    [
        (75, 0.1, PRIMARY, None),
        (76, 1.9, PRIMARY, Refusal.TRIAGE),
        (76, 1.9, DIVERSITY, Refusal.TRIAGE),
        (76, 2.0, PRIMARY, None),
        (83, 30, PRIMARY, None),
        (84, 30, PRIMARY, Refusal.HARD_REJECT),
        (84, 30, DIVERSITY, None),
        (85, 3, DIVERSITY, None),
        (86, 11.9, DIVERSITY, Refusal.SHORT_BUDGET),
        (86, 12, DIVERSITY, None),
        (86, 11.9, PRIMARY, Refusal.SHORT_BUDGET),
        (95, 0.1, RECOVERY, None),
        (96, 60, RECOVERY, Refusal.POOL_FULL),
        (96, 60, DIVERSITY, Refusal.POOL_FULL),
    ],
)
def test_who_is_turned_away(active, seconds, purpose, refusal):
    assert LADDER.refusal(active, budget_seconds=seconds, purpose=purpose) is refusal


def test_shielded_recovery_is_skipped_near_the_top():
    assert [LADDER.skips_recovery(active) for active in (87, 88, 96)] == [False, True, True]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"triage": 0.88}, "triage must be below hard_reject"),
        ({"hard_reject": 0.80}, "triage must be below hard_reject"),
        ({"hard_reject": 0.91}, "hard_reject must not exceed short_budget_reject"),
        ({"short_budget_reject": 0.92}, "short_budget_reject must be below recovery_skip"),
        ({"recovery_skip": 0.90}, "short_budget_reject must be below recovery_skip"),
        ({"triage_seconds": 13}, "triage_seconds must not exceed short_budget_seconds"),
        ({"recovery_skip": 1.01}, "recovery_skip must be between"),
    ],
)
def test_an_incoherent_ladder_cannot_be_made(changes, said):
    with pytest.raises(ConfigError, match=said):
        replace(CONFIG, **changes)
    assert replace(CONFIG, hard_reject=0.90).hard_reject == CONFIG.short_budget_reject


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"retrieval_slots": 15}, "retrieval_slots must be between 16"),
        ({"ingest_slots": 15}, "ingest_slots must be between 16"),
        ({"retrieval_slots": 81}, "must not exceed connections together"),
        ({"connections": 31}, "connections must be between 32"),
    ],
)
def test_a_pool_too_small_for_its_slots_cannot_be_made(changes, said):
    with pytest.raises(ConfigError, match=said):
        PoolConfig(**changes)
    assert PoolConfig(retrieval_slots=80).ingest_slots == 16


SHARES = st.floats(0.1, 1.0)


@given(SHARES, SHARES, SHARES, SHARES)
def test_every_ladder_that_can_be_made_is_in_order(triage, hard, short, skip):
    values = {"triage": triage, "hard_reject": hard, "short_budget_reject": short, "recovery_skip": skip}
    is_ordered = triage < hard <= short < skip
    try:
        LadderConfig(**values)
    except ConfigError:
        assert not is_ordered
    else:
        assert is_ordered


ASKS = st.tuples(st.integers(0, 120), st.floats(0, 60), st.sampled_from(Purpose))


@given(ASKS, st.integers(0, 50), st.floats(0, 60))
def test_less_pressure_and_more_time_never_turn_anybody_away(ask, fewer, more):
    active, seconds, purpose = ask
    assume(LADDER.refusal(active, budget_seconds=seconds, purpose=purpose) is None)
    calmer = max(0, active - fewer)
    assert LADDER.refusal(calmer, budget_seconds=seconds + more, purpose=purpose) is None


@given(st.integers(0, 120), st.floats(0, 60))
def test_each_purpose_goes_through_where_the_one_before_it_does(active, seconds):
    through = [LADDER.refusal(active, budget_seconds=seconds, purpose=purpose) is None for purpose in Purpose]
    assert through == sorted(through)
    assert any(through) == (active < 96)


@given(st.floats(0, 2), st.floats(0, 2), st.integers(1, 64))
def test_ingest_gives_way_as_memory_fills_up_and_never_stands_still(one, other, configured):
    easy, full = sorted((one, other))
    calls = calls_under(easy, configured=configured)
    assert MIN_CALLS <= calls <= max(MIN_CALLS, min(configured, INGEST_SLOTS))
    assert calls_under(full, configured=configured) <= calls
