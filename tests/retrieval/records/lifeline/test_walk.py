"""Lifelines of pipelines that are not the shipped one: what matters is in the spans, not in their names."""

import uuid
from dataclasses import dataclass, field, replace

import pytest

from retrieval.engine.deadline import Deadline
from retrieval.engine.pipeline import Legs, Pipeline
from retrieval.engine.state import Drop, DropReason, Note
from retrieval.engine.types import ChunkId, Passage
from retrieval.index.types import DocumentProbe
from retrieval.presets.corecube.config import CorecubeConfig
from retrieval.records.lifeline.types import Evidence, StepState, Way
from retrieval.records.lifeline.walk import Journey, step_names, steps, ways
from retrieval.search.runtime import InlineExecutor
from tests.retrieval.conftest import hit

NOTHING = Evidence(DocumentProbe({}, 0, 0, None, None))
PASSED, MISSED, DEGRADED, DROPPED, NOT_REACHED = (
    StepState[name] for name in ("PASSED", "MISSED", "DEGRADED", "DROPPED", "NOT_REACHED")
)


@dataclass(frozen=True)
class Stage:
    """A stage whose deed is given."""

    name: str
    deed: object = field(default=lambda state: state)
    gives: frozenset = frozenset()
    needs: frozenset = frozenset()
    optional: bool = False

    def __call__(self, state):
        return self.deed(state)


def leg(name, *hits):
    return Stage(name, lambda it: replace(it, rankings={**it.rankings, name: hits}), frozenset({"rankings"}))


def legs(*stages):
    return Legs(stages, InlineExecutor())


def ranked(name, *hits, gives=("hits",), note=None):
    def deed(it):
        notes = (*it.notes, note) if note else it.notes
        return replace(it, hits=hits, notes=notes)

    return Stage(name, deed, frozenset(gives))


def dropping(name, reason, *numbers, detail="", **figures):
    gone = {hit(number).chunk_id for number in numbers}

    def deed(it):
        drops = tuple(Drop(chunk_id, reason, detail, figures) for chunk_id in sorted(gone))
        left = tuple(found for found in it.hits if found.chunk_id not in gone)
        return replace(it, hits=left, drops=(*it.drops, *drops))

    return Stage(name, deed)


def packing(*numbers):
    def deed(it):
        wanted = [found for found in it.hits if found.chunk_id in {hit(number).chunk_id for number in numbers}]
        return replace(it, passages=tuple(Passage(n, found, "", 30 + n) for n, found in enumerate(wanted, start=1)))

    return Stage("hand_over", deed, frozenset({"passages"}))


def told(state, document, *stages, evidence=NOTHING):
    journey = Journey.of(uuid.UUID(int=document), Pipeline(stages).run(state), CorecubeConfig())
    return journey, list(steps(journey, evidence))


def states(found):
    return {step.name: step.state for step in found}


A, B, C = hit(1), hit(2), hit(3)


def test_stages_of_any_name_are_steps_in_their_order(state):
    stages = (legs(leg("memory", A, B), leg("graph", B)), ranked("gather", B, A), Stage("polish"), packing(1))
    journey, found = told(state, 1, *stages, Stage("applause", gives=frozenset({"answerability"})))
    assert [step.name for step in found] == ["memory", "graph", "gather", "polish", "packed"]
    assert [step.name for step in found] == step_names(journey.state)
    assert states(found) == {"memory": PASSED, "graph": MISSED, "gather": PASSED, "polish": PASSED, "packed": PASSED}
    assert [step.fact for step in found] == [
        "rank 1 of 2",
        "not among the 1 that it returned",
        "rank 2 of 2",
        "rank 2 of 2",
        "packed as [1], rank 2, 31 tokens",
    ]


def test_a_reason_of_an_unknown_stage_is_told_by_its_own_words(state):
    stale = dropping("weed", DropReason.QUALITY, 1, detail="older than its successor")
    _, found = told(state, 1, legs(leg("memory", A, B)), ranked("gather", A, B), stale, packing(2))
    assert (found[2].state, found[2].fact, found[2].remedy) == (DROPPED, "older than its successor", "")
    assert [step.state for step in found[3:]] == [NOT_REACHED]


def test_a_window_of_an_unknown_stage_names_no_number_of_another(state):
    cut = dropping("narrow", DropReason.OUTSIDE_WINDOW, 1, detail="rank 3, window 2", rank=3, window=2)
    _, found = told(state, 1, legs(leg("memory", A, B)), ranked("gather", A, B), cut)
    assert (found[2].fact, found[2].remedy) == ("rank 3, window 2", "")


def test_what_goes_without_a_reason_is_lost_there(state):
    _, found = told(state, 1, legs(leg("memory", A, B)), ranked("gather", A, B), ranked("read", B, gives=()))
    assert (found[2].name, found[2].state) == ("read", DROPPED)
    assert found[2].fact == "removed here, no reason recorded"


def test_a_chunk_that_a_later_stage_brings_in_has_passed_from_there(state):
    stages = (legs(leg("memory", B)), ranked("gather", B), ranked("neighbours", B, A, gives=()), packing(1))
    _, found = told(state, 1, *stages)
    assert states(found) == {"memory": MISSED, "gather": MISSED, "neighbours": PASSED, "packed": PASSED}


def test_a_pipeline_without_legs_begins_where_hits_are_given(state):
    stages = (Stage("greet"), ranked("recall", A, B), packing(1))
    assert states(told(state, 1, *stages)[1]) == {"recall": PASSED, "packed": PASSED}
    missing = told(state, 3, *stages)[1]
    assert (missing[0].state, missing[0].fact) == (DROPPED, "not in this stage's results")
    assert [step.state for step in missing[1:]] == [NOT_REACHED]


def test_a_stage_that_fell_back_is_degraded_and_says_why(state):
    note = Note("tired", "It was tired.", degraded=True)
    stages = (legs(leg("memory", A)), ranked("gather", A), ranked("judge", A, gives=(), note=note), packing(1))
    step = told(state, 1, *stages)[1][2]
    assert (step.state, step.fact) == (DEGRADED, "rank 1 of 1. It was tired")


def test_a_stage_that_did_nothing_says_why(state):
    idle = Stage("judge", lambda it: replace(it, notes=(*it.notes, Note("none", "There is no judge."))))
    step = told(state, 1, legs(leg("memory", A)), ranked("gather", A), idle, packing(1))[1][2]
    assert (step.state, step.fact) == (PASSED, "rank 1 of 1. There is no judge")


def test_the_chunk_that_came_furthest_is_followed_and_the_others_are_counted(state):
    document = uuid.UUID(int=9)
    chunks = [replace(hit(9), chunk_id=ChunkId(document, ordinal)) for ordinal in range(4)]
    first, second, third, _ = chunks

    def cut(it):
        drops = (Drop(first.chunk_id, DropReason.BELOW_FLOOR, "too low"),)
        return replace(it, hits=(A, second, third), drops=drops)

    def pack(it):
        beyond = Drop(third.chunk_id, DropReason.TOP_K, "rank 3, top 2", {"rank": 3, "wanted": 2})
        packed = (Passage(1, A, "", 5), Passage(2, second, "", 7))
        return replace(it, passages=packed, drops=(*it.drops, beyond))

    stages = (
        legs(leg("memory", first, second), leg("graph", third)),
        ranked("gather", first, A, second, third),
        Stage("cut", cut),
        Stage("hand_over", pack, frozenset({"passages"})),
    )
    journey, found = told(replace(state, top_k=2), 9, *stages)
    assert journey.followed == second.chunk_id
    assert [step.state for step in found] == [PASSED, MISSED, PASSED, PASSED, PASSED]
    assert ways(journey, chunks=7) == (Way("packed", 1, is_packed=True), Way("packed", 1), Way("cut", 1), Way("", 4))


class Ticking:
    """A clock that moves a second whenever it is read."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


def test_a_search_that_ran_out_of_time_lost_everything_where_it_ended(state):
    stages = [
        legs(leg("memory", A)),
        ranked("gather", A),
        *(Stage(f"stage {number}") for number in range(9)),
        packing(1),
    ]
    journey, found = told(replace(state, deadline=Deadline.after(6.0, Ticking())), 1, *stages)
    assert not journey.state.passages
    (lost,) = (step for step in found if step.state is DROPPED)
    assert (lost.name, lost.fact) == ("packed", "the deadline passed before passages were packed")
    assert lost.remedy == "A deadline_ms above 2,000 would have allowed it to continue."
    assert found[-2].state is DEGRADED


def test_before_any_leg_there_is_only_the_lack_of_time(state):
    stages = (Stage("read"), legs(leg("memory", A)), packing(1))
    _, found = told(replace(state, deadline=Deadline.after(2.0, Ticking())), 1, *stages)
    assert found[0].fact == "the deadline passed before anything was found"
    assert [step.state for step in found] == [DROPPED, NOT_REACHED]


@pytest.mark.parametrize(
    ("before", "tokens", "budget", "needed"),
    [
        # 60 + 30 fit in 100, the next 20 do not: 110 have room for all three.
        ([60, 30], 20, 100, 110),
        # 80 did not fit beside 60 in 100. With 110 it still does not, and 60 + 50 do.
        ([60, 80], 50, 100, 110),
        # 45 did not fit beside 60 in 100, but does in 110, and takes the room: only 155 hold all.
        ([60, 45], 50, 100, 155),
        ([], 300, 100, 300),
    ],
)
def test_the_room_that_was_needed_counts_what_would_take_some_of_it(before, tokens, budget, needed):
    from retrieval.records.lifeline.losses import room_needed

    assert room_needed(before, tokens, budget=budget) == needed


@pytest.mark.parametrize(
    ("likeness", "minimum"), [(0.57, 0.58), (0.58, 0.59), (20 / 21, 0.96), (0.5, 0.51), (1.0, 1.01)]
)
def test_the_share_that_keeps_both_is_above_their_likeness(likeness, minimum):
    from retrieval.records.lifeline.losses import _hundredth_above

    assert _hundredth_above(likeness) == minimum > likeness
