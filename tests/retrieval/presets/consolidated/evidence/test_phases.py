"""The orchestrator: where a run ends, what still runs then, and what may be shown of it."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.engine.deadline import Deadline
from retrieval.engine.pipeline import Legs
from retrieval.engine.state import Note, Query, SearchState
from retrieval.errors import PipelineError, SearchTimeoutError, StageError, UnknownModeError
from retrieval.presets.consolidated.evidence.phases import Phase, PhasedPipeline, run_again
from retrieval.stages.variants import with_variants
from tests.retrieval.conftest import NOW, Clock, connection, hit, scope


@dataclass(frozen=True)
class Step:
    """A stage whose deed is given."""

    name: str
    needs: frozenset = frozenset()
    gives: frozenset = frozenset()
    optional: bool = False
    deed: object = field(default=lambda state: state)

    def __call__(self, state):
        return self.deed(state)


def spend(clock, seconds):
    def deed(state):
        clock.now += seconds
        return state

    return deed


def finds(*numbers, checked=True):
    return lambda state: replace(state, hits=tuple(map(hit, numbers)), access_checked=checked)


def too_slow(_):
    raise SearchTimeoutError


def stages(after):
    return [span.stage for span in after.trace]


def of(*phases, closing=("pack",)):
    return PhasedPipeline.of(Phase(it.name, (it,), is_closing=it.name in closing) for it in phases)


def test_phases_run_in_order_and_those_without_stages_are_left_out(state):
    first = Phase("first", (Step("a"), Step("b")))
    pipeline = PhasedPipeline.of((first, Phase("empty", ()), Phase("last", (Step("c"),))))
    assert [phase.name for phase in pipeline.phases] == ["first", "last"]
    assert repr(pipeline) == "a >> b >> c"
    after = pipeline.run(state)
    assert (stages(after), after.degraded) == (["a", "b", "c"], ())


def test_the_wiring_is_looked_at_across_phases():
    with pytest.raises(PipelineError, match=r"fuse needs \['rankings'\] first"):
        of(Step("embed"), Step("fuse", needs=frozenset({"rankings"})))


@pytest.mark.parametrize(
    ("seconds", "codes", "ran"),
    [
        (0.84, (), ["primary", "recovery", "pack"]),
        (0.85, ("soft_cancelled_before_recovery",), ["primary", "pack"]),
        (0.99, ("soft_cancelled_before_recovery",), ["primary", "pack"]),
        (1.0, ("deadline_exceeded_before_recovery", "deadline_exceeded_before_pack"), ["primary"]),
    ],
)
def test_a_run_ends_before_the_phase_that_has_no_time_and_still_packs(state, clock, seconds, codes, ran):
    seen = []

    def noted(name, deed=lambda it: it):
        return Step(name, deed=lambda it: (seen.append(name), deed(it))[1])

    after = of(noted("primary", spend(clock, seconds)), noted("recovery"), noted("pack")).run(state)
    assert after.degraded == codes
    assert seen == ran


def test_past_the_deadline_what_was_found_and_checked_is_still_packed(state, clock):
    packed = []
    pack = Step("pack", deed=lambda it: (packed.extend(it.hits), it)[1])
    primary = Step("find", deed=lambda it: spend(clock, 2.0)(finds(1)(it)))
    after = PhasedPipeline.of((Phase("primary", (primary,)), Phase("packing", (pack,), is_closing=True))).run(state)
    assert len(packed) == len(after.hits) == 1
    assert after.degraded == ("late_from_packing",)


def test_once_a_run_was_asked_to_end_no_later_phase_runs(state, clock):
    late = Step("late", deed=finds(9))
    after = of(Step("slow", deed=spend(clock, 0.9)), late, replace(late, name="later"), Step("pack")).run(state)
    assert after.degraded == ("soft_cancelled_before_late",)
    assert after.hits == ()


def test_a_stage_that_times_out_ends_its_phase_and_the_run_with_what_there_was(state):
    found = Phase("primary", (Step("find", deed=finds(1, 2)), Step("read", deed=too_slow), Step("never")))
    rest = (Phase("assembly", (Step("rerank"),)), Phase("packing", (Step("pack"),), is_closing=True))
    after = PhasedPipeline.of((found, *rest)).run(state)
    assert stages(after) == ["find", "read", "pack"]
    assert after.degraded == ("timed_out_in_read",)
    assert len(after.hits) == 2
    assert "in the phase primary" in after.trace[1].notes[0].text


def test_other_errors_of_a_stage_name_it(state):
    def fail(_):
        raise KeyError("x")

    with pytest.raises(StageError, match="'rank'"):
        of(Step("rank", deed=fail)).run(state)


def test_hits_whose_access_was_not_checked_are_neither_packed_nor_shown(state):
    packed = []
    pack = Step("pack", deed=lambda it: (packed.extend(it.hits), it)[1])
    primary = (Step("fuse", deed=finds(1, 2, checked=False)), Step("complete", deed=too_slow))
    after = PhasedPipeline.of((Phase("primary", primary), Phase("packing", (pack,), is_closing=True))).run(state)
    assert (packed, after.hits) == ([], ())
    assert after.degraded == ("timed_out_in_complete", "unchecked_hits")
    assert "2 hits" in after.trace[-2].notes[0].text


def test_unchecked_hits_are_not_left_where_not_even_packing_runs(state, clock):
    primary = Step("fuse", deed=lambda it: spend(clock, 2.0)(finds(1, checked=False)(it)))
    after = of(primary, Step("assembly"), Step("pack")).run(state)
    assert after.hits == ()
    assert after.degraded[-1] == "unchecked_hits"


def test_optional_stages_are_skipped_when_little_time_is_left_but_not_while_packing(state, clock):
    working = Phase("assembly", (Step("slow", deed=spend(clock, 0.9)), Step("dedupe", optional=True), Step("rank")))
    closing = Phase("packing", (Step("judge", optional=True),), is_closing=True)
    after = PhasedPipeline.of((working, closing)).run(state)
    assert stages(after) == ["slow", "dedupe", "rank", "judge"]
    assert after.degraded == ("skipped_dedupe",)


@given(st.lists(st.floats(0, 0.6), min_size=1, max_size=6), st.integers(0, 6))
def test_whatever_takes_long_a_run_tells_why_it_ended_and_nothing_unchecked_stays(durations, checked_from):
    clock = Clock()
    state = SearchState(
        query=Query("q", "q"), scope=scope(connection()), deadline=Deadline.after(1.0, clock), now=NOW, top_k=10
    )

    def step(number, seconds):
        def deed(it):
            clock.now += seconds
            return replace(it, hits=(hit(number),), access_checked=number >= checked_from)

        return Step(f"s{number}", deed=deed)

    phases = [Phase(f"p{number}", (step(number, it),)) for number, it in enumerate(durations)]
    packing = Phase("packing", (Step("pack"),), is_closing=True)
    after = PhasedPipeline.of((*phases, packing)).run(state)
    is_early = any(it.startswith(("deadline_exceeded", "soft_cancelled")) for it in after.degraded)
    assert is_early == ("pack" not in stages(after) or f"s{len(durations) - 1}" not in stages(after))
    if is_early:
        assert after.access_checked or not after.hits


def leg(name, number):
    return Step(
        name, gives=frozenset({"rankings"}), deed=lambda it: replace(it, rankings={**it.rankings, name: (hit(number),)})
    )


@dataclass(frozen=True)
class Again:
    """A stage that runs legs of its own."""

    legs: Legs
    name: str = "again"
    needs: frozenset = frozenset()
    gives: frozenset = frozenset()
    optional: bool = False

    def only(self, wanted):
        return replace(self, legs=self.legs.only(wanted))

    def __call__(self, state):
        return run_again((self.legs,), state, within=self.name)


@pytest.fixture
def searching():
    with ThreadPoolExecutor(2) as executor:
        legs = Legs((leg("dense", 1), leg("bm25", 2)), executor)
        yield PhasedPipeline.of(
            (
                Phase("setup", (Step("analyze", gives=frozenset({"terms"})), Step("validate"))),
                Phase("primary", (legs, Step("fuse", needs=frozenset({"rankings"})))),
                Phase("chunk_retry", (Again(legs),)),
                Phase("packing", (Step("pack"),), is_closing=True),
            )
        )


def test_a_mode_leaves_one_leg_everywhere_and_the_phases_as_they_are(searching, state):
    alone = searching.in_mode("bm25")
    assert isinstance(alone, PhasedPipeline)
    assert [phase.name for phase in alone.phases] == [phase.name for phase in searching.phases]
    assert repr(alone) == "analyze >> validate >> (bm25) >> fuse >> again >> pack"
    assert alone.phases[2].stages[0].legs.legs[0].name == "bm25"
    assert set(alone.run(state).rankings) == {"bm25"}
    assert searching.in_mode("hybrid") is searching
    with pytest.raises(UnknownModeError, match="modes: hybrid, dense, bm25"):
        searching.only("fulltext")


def test_other_ways_to_put_the_question_are_searched_in_the_phase_of_the_legs(searching, state, clock):
    more = with_variants(searching, ("another",), characters=100)
    assert isinstance(more, PhasedPipeline)
    assert repr(more) == "analyze >> validate >> (dense | bm25) >> variants >> fuse >> again >> pack"
    assert [len(phase.stages) for phase in more.phases] == [2, 3, 1, 1]
    # What reads a text is what gives something of it.
    assert [it.name for it in more.stages[3].reading] == ["analyze"]
    assert "dense_2" in PhasedPipeline.of(more.phases[:2]).run(state).rankings


@pytest.mark.parametrize("place", [1, 2, 3, 5, 6])
def test_an_inserted_stage_stands_where_it_was_put_in_the_phase_before_it(searching, place):
    longer = searching.inserted(place, Step("new"))
    names = [getattr(stage, "name", "") for stage in searching.stages]
    assert [stage.name for stage in longer.stages] == [*names[:place], "new", *names[place:]]
    assert sum(len(phase.stages) for phase in longer.phases) == len(longer.stages)


def test_running_again_begins_anew_and_its_legs_stand_within_the_stage_that_asked(searching, state):
    legs = searching.phases[1].stages[0]
    before = replace(state, hits=(hit(7),), access_checked=True, rankings={"old": ()}, notes=(Note("n", "said"),))
    after = run_again((legs,), before, within="chunk_retry")
    assert (after.hits, after.access_checked, set(after.rankings)) == ((), False, {"dense", "bm25"})
    assert {(span.stage, span.parent) for span in after.trace} == {("dense", "chunk_retry"), ("bm25", "chunk_retry")}
    assert after.notes == before.notes
