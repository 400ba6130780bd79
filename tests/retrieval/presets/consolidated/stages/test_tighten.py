from dataclasses import replace
from types import SimpleNamespace

import pytest

from retrieval.engine.state import DropReason
from retrieval.errors import RerankError
from retrieval.presets.consolidated.evidence.density import DensityConfig, TightenHint, TightenSkip
from retrieval.presets.consolidated.evidence.depth import GradeConfig
from retrieval.presets.consolidated.evidence.rerank_guard import BreakerConfig, RerankFigures, RerankGuards
from retrieval.presets.consolidated.evidence.scoring import RerankPlanConfig
from retrieval.presets.consolidated.evidence.section_state import UNDECIDED, SectionState
from retrieval.presets.consolidated.stages.floors import SectionFloors
from retrieval.presets.consolidated.stages.tighten import TightenPool
from tests.retrieval.presets.consolidated.evidence.conftest import numbers, typed
from tests.retrieval.presets.consolidated.stages.sectioned import sectioned

#: Behind the fourth the next is 0.40 < 0.85 x 0.62.
COSINES = (0.70, 0.68, 0.65, 0.62, 0.40, 0.38)
#: Graded D: the three best have 0.3.
POOR = (0.30, 0.30, 0.30, 0.10)
FIELDS = {
    "tighten_applied",
    "tighten_effective_floor",
    "tighten_cliff_position",
    "tighten_dropped_count",
    "tighten_skip_reason",
}


@pytest.fixture
def guard(clock):
    return RerankGuards(clock).guard(SimpleNamespace(name="any"), BreakerConfig(), RerankPlanConfig())


@pytest.fixture
def figures():
    return RerankFigures()


@pytest.fixture
def run(state, guard, figures):
    """Return a function that grades a pool for a section that keeps three, and cuts it; `known` hints stand."""

    def cut(*, cosines=COSINES, types=None, policy=None, score_floor=0.18, without_reranker=False, **known):
        types = types or ("pdf",) * len(cosines)
        hits = tuple(typed(n, kind, cosine=cosine) for n, (kind, cosine) in enumerate(zip(types, cosines, strict=True)))
        begun = sectioned(state, hits, policy={"score_floor": score_floor, **(policy or {})}, **known)
        own = None if without_reranker else guard
        graded = begun if known else SectionFloors(GradeConfig(), DensityConfig(), own)(begun)
        return TightenPool(own, figures)(replace(graded, drops=(), notes=(), events=(), hits=hits))

    return cut


def fail(guard, times=3):
    for _ in range(times):
        with pytest.raises(RerankError), guard.breaker.guarding():
            raise RerankError


def told(state):
    (event,) = state.events
    assert set(event) == FIELDS | {"event"}
    return event


def test_what_lies_behind_the_cliff_is_left_out_and_told(run):
    after = run()
    assert numbers(after.hits) == [0, 1, 2, 3]
    assert told(after) == {
        "event": "tightened",
        "tighten_applied": True,
        "tighten_effective_floor": 0.62,
        "tighten_cliff_position": 4,
        "tighten_dropped_count": 2,
        "tighten_skip_reason": "",
    }
    assert {drop.reason for drop in after.drops} == {DropReason.BELOW_FLOOR}
    assert [(note.code, note.degraded) for note in after.notes] == [("tightened", False)]
    assert after.part(SectionState).hint == TightenHint(floor=0.62, cliff_position=4)


@pytest.mark.parametrize(
    ("known", "skip"),
    [
        ({"cosines": POOR}, TightenSkip.GRADE),
        ({"hint": UNDECIDED}, TightenSkip.INPUTS),
        ({"cosines": COSINES[:3]}, TightenSkip.NO_ROOM),
        ({"cosines": COSINES[:4]}, TightenSkip.NO_CLIFF),
        ({"score_floor": 0.45}, TightenSkip.WEAKER),
        ({"without_reranker": True}, TightenSkip.NO_CROSS_ENCODER),
    ],
)
def test_every_search_tells_why_it_was_not_cut(run, known, skip):
    after = run(**known)
    assert (after.drops, after.notes) == ((), ())
    assert len(after.hits) == len(known.get("cosines", COSINES))
    event = told(after)
    assert (event["tighten_applied"], event["tighten_skip_reason"]) == (False, str(skip))


def test_without_hits_it_is_told_too(state, guard, figures):
    after = TightenPool(guard, figures)(sectioned(state, ()))
    assert told(after)["tighten_skip_reason"] == "inputs_missing"


def test_a_breaker_that_is_open_forbids_the_decision(run, guard):
    fail(guard)
    assert told(run())["tighten_skip_reason"] == "breaker_not_closed"


def test_a_breaker_that_opened_since_the_decision_forbids_the_cut(run, guard):
    fail(guard)
    after = run(hint=TightenHint(floor=0.62, cliff_position=4))
    assert len(after.hits) == 6
    assert (told(after)["tighten_skip_reason"], told(after)["tighten_cliff_position"]) == (
        "breaker_not_closed_at_apply",
        4,
    )


def test_a_breaker_on_trial_forbids_it_as_an_open_one(run, guard, clock):
    fail(guard)
    clock.now = 60
    assert told(run())["tighten_skip_reason"] == "breaker_not_closed"


def test_the_last_chunk_of_a_type_is_not_left_out_under_any_of_its_names(run):
    assert told(run(types=("pdf",) * 5 + ("xlsx",)))["tighten_skip_reason"] == "source_diversity_loss"
    assert told(run(types=("pdf", "excel", "pdf", "pdf", "pdf", "xlsx")))["tighten_applied"]


def test_as_many_of_a_required_type_stay_as_the_section_needs(run):
    types = ("pdf", "excel", "pdf", "pdf", "pdf", "excel")
    needs_two = {"required": ("excel",), "survivor_floors": {"excel": 2}}
    assert told(run(types=types, policy=needs_two))["tighten_skip_reason"] == "source_diversity_loss"
    assert told(run(types=types, policy=needs_two | {"survivor_floors": {"excel": 1}}))["tighten_applied"]


def test_how_often_a_section_is_cut_is_counted(run, figures):
    run()
    for _ in range(3):
        run(cosines=POOR)
    (rate,) = figures.cut_rates(DensityConfig()).values()
    assert (rate.searches, rate.cut, rate.share, rate.is_in_band) == (4, 1, 0.25, True)
    run()
    assert figures.cut_rates(DensityConfig())["memo/figures"].is_in_band  # exactly 40 %
    run()
    assert not figures.cut_rates(DensityConfig())["memo/figures"].is_in_band


def test_a_search_without_a_section_is_left_alone(run, state, guard, figures):
    plain = replace(run(), parts={}, events=())
    assert TightenPool(guard, figures)(plain) == plain
