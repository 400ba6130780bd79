from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import pytest

from corecube.errors import CoreCubeError, DatabaseUnavailableError
from retrieval.engine.pipeline import Legs, Pipeline, run_alone
from retrieval.engine.state import Drop, DropReason, Note
from retrieval.errors import PipelineError, StageError, UnknownModeError
from retrieval.presets.helix.stages.names import QuestionNames
from tests.retrieval.conftest import hit


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


def test_a_stage_before_what_it_needs_is_refused_at_construction():
    with pytest.raises(PipelineError, match=r"fuse needs \['rankings'\] first"):
        Pipeline((Step("fuse", needs=frozenset({"rankings"})),))


def test_a_pipeline_reads_as_its_stages():
    assert repr(Pipeline((Step("embed"), Step("fuse")))) == "embed >> fuse"


def test_every_stage_leaves_a_span_with_its_own_hits_drops_and_notes(state):
    found = Step("find", gives=frozenset({"hits"}), deed=lambda it: replace(it, hits=(hit(1), hit(2))))

    def cut(it):
        drop = Drop(it.hits[1].chunk_id, DropReason.QUALITY)
        return replace(it, hits=it.hits[:1], drops=(*it.drops, drop), notes=(*it.notes, Note("n", "said")))

    after = Pipeline((found, Step("cut", deed=cut))).run(state)
    first, second = after.trace
    assert (first.stage, first.hits_in, first.hits_out, first.drops) == ("find", 0, 2, ())
    assert (second.stage, second.hits_in, second.hits_out) == ("cut", 2, 1)
    assert [drop.reason for drop in second.drops] == [DropReason.QUALITY]
    assert [note.code for note in second.notes] == ["n"]
    assert (first.gives, first.left, second.left) == (frozenset({"hits"}), (hit(1), hit(2)), (hit(1),))


def test_an_unexpected_error_names_the_stage(state):
    def fail(_):
        raise KeyError("x")

    with pytest.raises(StageError, match="'rank'") as caught:
        Pipeline((Step("rank", deed=fail),)).run(state)
    assert isinstance(caught.value.__cause__, KeyError)


def test_an_error_of_ours_passes_through(state):
    def fail(_):
        raise CoreCubeError("mine")

    with pytest.raises(CoreCubeError, match="mine"):
        Pipeline((Step("rank", deed=fail),)).run(state)


def spend(clock, seconds):
    def deed(state):
        clock.now += seconds
        return state

    return deed


def test_past_85_percent_optional_stages_are_skipped_and_said_so(state, clock):
    stages = (Step("slow", deed=spend(clock, 0.9)), Step("extra", optional=True), Step("pack"))
    after = Pipeline(stages).run(state)
    assert [span.stage for span in after.trace] == ["slow", "extra", "pack"]
    assert after.degraded == ("skipped_extra",)


def test_before_85_percent_optional_stages_run(state, clock):
    after = Pipeline((Step("slow", deed=spend(clock, 0.8)), Step("extra", optional=True))).run(state)
    assert after.degraded == ()


def test_past_the_deadline_the_search_ends_with_what_it_has(state, clock):
    after = Pipeline((Step("slow", deed=spend(clock, 1.0)), Step("pack"))).run(state)
    assert after.degraded == ("deadline_exceeded_before_pack",)


def test_past_the_deadline_what_was_found_and_checked_is_still_packed(state, clock):
    found = Step("find", deed=lambda it: replace(spend(clock, 1.0)(it), hits=(hit(1),), access_checked=True))
    packed = []
    pack = Step("pack", deed=lambda it: (packed.extend(it.hits), it)[1])
    after = Pipeline((found, Step("extra", optional=True), Step("sort"), pack)).run(state)
    assert packed == [hit(1)]
    assert after.degraded == ("late_from_extra", "skipped_extra")


def leg(name, number):
    return Step(
        name,
        gives=frozenset({"rankings"}),
        deed=lambda it: replace(
            it, rankings={**it.rankings, name: (hit(number),)}, notes=(*it.notes, Note(name, "ran"))
        ),
    )


def test_legs_run_side_by_side_and_keep_their_spans(state):
    with ThreadPoolExecutor(2) as executor:
        after = Pipeline((Legs((leg("dense", 1), leg("fulltext", 2)), executor),)).run(state)
    assert set(after.rankings) == {"dense", "fulltext"}
    assert [(span.stage, span.parent, span.hits_out) for span in after.trace] == [
        ("dense", "legs", 1),
        ("fulltext", "legs", 1),
        ("legs", "", 2),
    ]
    assert [note.code for span in after.trace for note in span.notes] == ["dense", "fulltext"]


def test_a_stage_beside_the_legs_gives_what_it_finds_and_is_no_mode(state):
    beside = Step(
        "names",
        gives=frozenset({"asked"}),
        deed=lambda it: replace(it, parts=it.parts_with(QuestionNames(rest="rest"))),
    )
    read = Step("read", needs=frozenset({"rankings", "asked"}))
    with ThreadPoolExecutor(2) as executor:
        whole = Pipeline((Legs((leg("dense", 1), leg("fulltext", 2)), executor, (beside,)), read))
        after, alone = whole.run(state), whole.in_mode("dense").run(state)
    assert whole.legs == ("dense", "fulltext")
    assert (set(after.rankings), after.part(QuestionNames).rest) == ({"dense", "fulltext"}, "rest")
    assert (set(alone.rankings), alone.part(QuestionNames).rest) == ({"dense"}, "rest")
    assert [(span.stage, span.parent) for span in alone.trace] == [
        ("dense", "legs"),
        ("names", "legs"),
        ("legs", ""),
        ("read", ""),
    ]


def test_a_prefetched_leg_does_not_run_again_but_does_for_another_text(state):
    ran = []
    fulltext = replace(leg("fulltext", 2), deed=lambda it: (ran.append("late"), leg("fulltext", 3)(it))[1])
    early = run_alone(leg("fulltext", 2), state)
    with ThreadPoolExecutor(1) as executor:
        legs = Legs((leg("dense", 1), fulltext), executor)
        after = legs(replace(state, prefetch={"fulltext": lambda: early}))
        assert (list(after.rankings), after.rankings["fulltext"], ran) == (["dense", "fulltext"], (hit(2),), [])
        assert [(span.stage, span.parent) for span in after.trace] == [("dense", "legs"), ("fulltext", "legs")]
        assert legs(after).rankings["fulltext"] == (hit(3),)


def test_a_leg_that_could_not_be_prefetched_without_a_connection_runs_here(state):
    def unavailable():
        raise DatabaseUnavailableError

    with ThreadPoolExecutor(1) as executor:
        legs = Legs((leg("dense", 1), leg("fulltext", 2)), executor)
        after = legs(replace(state, prefetch={"fulltext": unavailable}))
    assert after.rankings == {"dense": (hit(1),), "fulltext": (hit(2),)}


def test_a_failing_leg_fails_the_search(state):
    def fail(_):
        raise ValueError("x")

    broken = Step("fulltext", gives=frozenset({"rankings"}), deed=fail)
    with ThreadPoolExecutor(1) as executor, pytest.raises(StageError, match="fulltext"):
        Pipeline((Legs((leg("dense", 1), broken), executor),)).run(state)


def two_legs(executor):
    read = Step("read", needs=frozenset({"rankings"}))
    return Pipeline((Legs((leg("dense", 1), leg("fulltext", 2)), executor), read))


def test_a_mode_runs_one_leg_and_every_other_stage(state):
    with ThreadPoolExecutor(1) as executor:
        whole = two_legs(executor)
        alone = whole.in_mode("fulltext")
        after = alone.run(state)
    assert (whole.legs, alone.legs) == (("dense", "fulltext"), ("fulltext",))
    assert set(after.rankings) == {"fulltext"}
    assert [span.stage for span in after.trace] == ["fulltext", "legs", "read"]
    assert repr(alone) != repr(whole)


def test_the_mode_hybrid_is_the_pipeline_as_it_is(state):
    with ThreadPoolExecutor(1) as executor:
        whole = two_legs(executor)
    assert whole.in_mode("hybrid") is whole


def test_a_mode_without_a_leg_names_those_that_there_are():
    with ThreadPoolExecutor(1) as executor, pytest.raises(UnknownModeError, match="hybrid, dense, fulltext"):
        two_legs(executor).in_mode("graph")
