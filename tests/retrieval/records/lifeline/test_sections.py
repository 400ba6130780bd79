"""A document is lost in a search for a section: the lifeline names the floor or the cut, and what would have helped."""

import re
from dataclasses import replace

import pytest

from retrieval.engine.state import RequestFilter
from retrieval.models import Chunk
from retrieval.presets.consolidated.evidence.section_reading import shipped
from retrieval.presets.consolidated.evidence.section_state import SectionAsk
from retrieval.records.lifeline.types import StepState
from tests.retrieval.records.lifeline.conftest import put

REPORT = shipped("report")
#: All that the shelf's words come to, so that neither a floor nor the depth drops anything by itself.
OPEN = replace(REPORT.section("overview"), score_floor=0.0, quality_floor=0.0, template="{subject}")


@pytest.fixture
def gathered(find):
    """Return a function that searches for a section with some of its policy changed."""

    def run(subject, *, kept=None, overrides=None, **policy):
        section = replace(OPEN, **policy)
        section_set = replace(REPORT, sections=(section,))
        ask = SectionAsk(section_set=section_set, section=section, subject=subject)
        fields = {"filter": kept} if kept else {}
        return find(
            section.query(subject), preset="consolidated", section=ask, overrides=overrides or {}, top_k=20, **fields
        )

    return run


def lost(line):
    return line.lost_at and (line.lost_at.name, line.lost_at.fact, line.lost_at.remedy)


def test_a_document_that_is_evidence_comes_through_every_step(shelf, gathered, lifeline):
    line = lifeline(shelf["Valve noise"], gathered("valve gasket"))
    assert line.lost_at is None
    assert {"floors", "quota", "sources", "tighten", "rerank", "protect", "precedence", "fairness"} <= {
        step.name for step in line.steps if step.state is StepState.PASSED
    }


def test_a_score_floor_is_named_as_the_section_has_it(shelf, gathered, lifeline):
    before = gathered("valve gasket", score_floor=0.9)
    dropped = next(hit for hit in before.state.drops if hit.reason == "below_floor")
    line = lifeline(dropped.chunk_id.document_id, before)
    name, fact, remedy = lost(line)
    assert (name, "floor" in fact) == ("floors", True)
    assert remedy.startswith("A score floor of at most ")
    assert remedy.endswith(" in overview would retain it.")
    minimum = float(remedy.split("at most ")[1].split()[0])
    after = lifeline(dropped.chunk_id.document_id, gathered("valve gasket", score_floor=minimum))
    assert next(step for step in after.steps if step.name == "floors").state is StepState.PASSED


def test_a_plain_questions_floor_is_a_number_of_the_preset(shelf, find, lifeline):
    outcome = find("valve gasket", preset="consolidated", overrides={"question.score_floor": 0.9})
    dropped = next(hit for hit in outcome.state.drops if hit.reason == "below_floor")
    assert "question.score_floor of at most " in lost(lifeline(dropped.chunk_id.document_id, outcome))[2]


def test_a_quality_floor_keeps_a_chunk_from_being_searched(shelf, gathered, lifeline):
    Chunk.objects.filter(document_id=shelf["Valve noise"]).update(quality=0.126)
    name, fact, remedy = lost(lifeline(shelf["Valve noise"], gathered("valve gasket", quality_floor=0.5)))
    assert (name, fact) == ("dense", "quality 0.13, below the minimum 0.50")
    assert remedy == "A quality floor of at most 0.12 in overview would have included it in the search."


def test_what_was_not_asked_for_says_so(shelf, gathered, lifeline):
    kept = RequestFilter(documents=frozenset({shelf["Valve noise"]}))
    line = lifeline(shelf["Valve colours"], gathered("valve gasket", kept=kept, overrides={"retry.below": 0}))
    assert lost(line)[:2] == ("dense", "not one of the requested documents")


def test_what_the_section_does_not_keep_is_lost_at_the_protection(world, shelf, gathered, lifeline):
    put(world, {f"Valve {number}": f"A valve of size {number} hums and drips." for number in range(30)})
    before = gathered("valve", keep=2)
    dropped = next(hit for hit in before.state.drops if hit.reason == "rerank_cut")
    name, fact, remedy = lost(lifeline(dropped.chunk_id.document_id, before))
    assert name == "protect"
    wanted = int(remedy.removeprefix("A keep of at least ").split()[0])
    assert f"rank {wanted}" in fact
    line = lifeline(dropped.chunk_id.document_id, gathered("valve", keep=wanted))
    assert next(step for step in line.steps if step.name == "protect").state is StepState.PASSED


def numbers_of(remedy):
    """Return what a remedy says to raise, by name."""
    return {name: int(value.replace(",", "")) for name, value in re.findall(r"(\w+) of at least ([\d,]+)", remedy)}


@pytest.mark.parametrize(("stage", "fact"), [("fuse", "fused rank "), ("quota", "rank ")])
def test_what_a_window_leaves_out_would_have_come_in_with_the_depth_that_is_named(
    world, shelf, gathered, lifeline, stage, fact
):
    put(world, {f"Valve {number}": f"A valve of size {number} hums and drips." for number in range(60)})
    policy = {"complexity": 8, "cap": 20, "keep": 4}
    before = gathered("valve", **policy)
    span = next(it for it in before.trace if it.stage == stage)
    dropped = span.drops[-1]
    name, said, remedy = lost(lifeline(dropped.chunk_id.document_id, before))
    assert (name, said.startswith(fact)) == (stage, True)
    assert remedy.endswith(" in overview would have included it.")
    named = numbers_of(remedy)
    assert set(named) <= {"complexity", "cap"}
    after = gathered("valve", **{**policy, **named})
    assert dropped.chunk_id not in {it.chunk_id for it in next(it for it in after.trace if it.stage == stage).drops}


def test_a_plain_questions_depth_is_numbers_of_the_preset(world, shelf, find, lifeline):
    put(world, {f"Valve {number}": f"A valve of size {number} hums and drips." for number in range(60)})
    outcome = find("valve", preset="consolidated", overrides={"question.score_floor": 0.0})
    dropped = next(it for it in outcome.trace if it.stage == "fuse").drops[-1]
    assert "question.complexity of at least " in lost(lifeline(dropped.chunk_id.document_id, outcome))[2]


def test_the_pool_of_a_section_is_told_without_a_number_that_it_does_not_go_by(shelf, gathered, lifeline):
    line = lifeline(shelf["Valve noise"], gathered("valve gasket"))
    assert "pool" not in next(step for step in line.steps if step.name == "fuse").fact
