"""A document is lost at each stage in turn: the lifeline names it, and what it says would have helped does help."""

import re

import pytest

from retrieval.engine.types import ScoreType
from retrieval.index.bm25.follower import follower
from retrieval.models import Chunk, TermFrequency
from retrieval.records.lifeline.types import StepState
from retrieval.stages import fulltext
from tests.followers import wait_for_others
from tests.retrieval.records.lifeline.conftest import put

_REMEDY = re.compile(r"An? (\w+\.\w+) of at (?:least|most) ([\d,.]*\d)")


class Rated:
    """A reranker that goes by how long a text is."""

    name = "length"
    score_type = ScoreType.RELEVANCE
    blend_weight = None

    def score(self, _query, texts, *, timeout_seconds):
        assert timeout_seconds > 0
        return [min(1.0, len(text) / 1000) for text in texts]


@pytest.fixture
def bm25(transactional_db, shelf, settings, monkeypatch):
    """The BM25 index of the shelf, from which full text takes its candidates."""
    settings.CORECUBE_BM25 = True
    monkeypatch.setattr(fulltext, "_FEW_CHUNKS", 0)
    wait_for_others()
    follower().rebuild()


@pytest.fixture
def trial(find, lifeline):
    """Return a function that loses a document, takes the remedy at its word, and returns both lifelines."""

    def run(text, document_id, *, overrides=None, remedied=True, **fields):
        before = lifeline(document_id, find(text, overrides=overrides or {}, **fields))
        if not remedied:
            return before
        name, value = _REMEDY.search(before.lost_at.remedy).groups()
        changed = {**(overrides or {}), name: float(value.replace(",", ""))}
        after = lifeline(document_id, find(text, overrides=changed, **fields))
        return before, after

    return run


def step(line, name):
    return next(step for step in line.steps if step.name == name)


def states(line):
    return [step.state for step in line.steps]


def assert_lost_then_through(before, after, name):
    """The one is lost at a step and nowhere before, and the other came through it."""
    place = [step.name for step in before.steps].index(name)
    assert before.lost_at.name == name
    assert set(states(before)[:place]) <= {StepState.PASSED, StepState.MISSED}
    assert set(states(before)[place + 1 :]) <= {StepState.NOT_REACHED}
    assert step(after, name).state is StepState.PASSED


def test_a_document_that_answers_comes_through_every_step(shelf, find, lifeline):
    line = lifeline(shelf["Replacing a gasket"], find("how do I lift an old gasket?"))
    assert set(states(line)) == {StepState.PASSED}
    assert [it.name for it in line.steps] == [
        "indexed",
        "allowed",
        "scope",
        "dense",
        "fulltext",
        "fuse",
        "complete",
        "access",
        "freshness",
        "quality",
        "blend",
        "rerank",
        "ties",
        "floor",
        "dedupe",
        "packed",
    ]
    assert (line.lost_at, line.citation, step(line, "packed").fact[:13]) == (None, 1, "packed as [1]")
    assert step(line, "dense").fact.startswith("rank 1 of 7, cosine 0.")
    assert step(line, "fulltext").fact.endswith(
        "\N{LEFT DOUBLE QUOTATION MARK}gasket\N{RIGHT DOUBLE QUOTATION MARK} in the title"
    )


def test_beyond_the_window_of_the_vector_leg(shelf, trial):
    # Only the vector leg searches, and it returns two of the seven.
    before, after = trial("gasket sizes", shelf["Holiday rota"], overrides={"dense.depth": 2}, mode="dense")
    assert_lost_then_through(before, after, "dense")
    rank = int(re.match(r"vector rank (\d) of 7, cosine -?0\.\d{3}, window 2$", before.lost_at.fact).group(1))
    assert rank > 2
    assert before.lost_at.remedy == f"A dense.depth of at least {rank} would have included it."


def test_beyond_the_window_of_the_full_text_leg(shelf, trial):
    before, after = trial("valve", shelf["Ordering spares"], overrides={"fulltext.depth": 1}, mode="fulltext")
    assert_lost_then_through(before, after, "fulltext")
    assert re.match(r"full-text rank [2-5] of 5, score 0\.\d{3}, window 1$", before.lost_at.fact)


@pytest.mark.usefixtures("bm25")
def test_outside_the_window_of_candidates_from_the_bm25_index(shelf, trial):
    before, after = trial("valve", shelf["Ordering spares"], overrides={"fulltext.depth": 1}, mode="fulltext")
    assert_lost_then_through(before, after, "fulltext")
    assert before.lost_at.fact.endswith("window 1")


def test_without_any_term_of_the_query(shelf, trial):
    line = trial("gasket wedge", shelf["Pump alignment"], mode="fulltext", remedied=False)
    assert line.lost_at.fact == "it contains none of “wedg”, “gasket”"
    assert line.lost_at.remedy == ""


def test_with_some_terms_where_enough_chunks_hold_all(shelf, trial):
    overrides = {"fulltext.relax_below": 1}
    before, after = trial("gasket valve wedge", shelf["Gasket sizes"], overrides=overrides, mode="fulltext")
    assert_lost_then_through(before, after, "fulltext")
    assert re.match(
        r"it contains “gasket”, “valv” \(score \d\.\d{3}, rank [2-5] of 5 by it\), not “wedg”;"
        r" enough chunks contain every",
        before.lost_at.fact,
    )


def test_with_some_terms_where_every_one_is_required(shelf, trial):
    overrides = {"fulltext.cover_density": 1}
    before, after = trial("gasket valve wedge", shelf["Gasket sizes"], overrides=overrides, mode="fulltext")
    assert_lost_then_through(before, after, "fulltext")
    assert before.lost_at.fact.endswith("not “wedg”; every term is required")


def test_with_terms_too_common_to_be_searched_for(world, shelf, trial):
    # Counts as if 500 more chunks stood in the runbooks, all with "valve": 3 hold "gasket", 505 "valve".
    for lexeme in ("valv", ""):
        TermFrequency.objects.create(connection_id=world.runbooks.pk, lexeme=lexeme, chunks=500)
    overrides = {"fulltext.relax_cap": 400}
    before, after = trial("gasket valve", shelf["Valve noise"], overrides=overrides, mode="fulltext")
    assert_lost_then_through(before, after, "fulltext")
    assert re.match(
        r"it contains “valv” \(score 0\.\d{3}, rank \d of 5 by it\), too common to search for;"
        r" searched for “gasket”$",
        before.lost_at.fact,
    )
    assert before.lost_at.remedy == "A fulltext.relax_cap of at least 508 would have searched for these terms too."


def test_below_the_pool(shelf, trial):
    before, after = trial("gasket sizes", shelf["Valve colours"], overrides={"fusion.pool": 2})
    assert_lost_then_through(before, after, "fuse")
    assert re.match(r"fused rank [3-7], window 2$", before.lost_at.fact)


def test_as_boilerplate(shelf, trial):
    Chunk.objects.filter(document_id=shelf["Valve noise"]).update(quality=0.118, quality_parts={"navigation": 0.882})
    before, after = trial("valve noise", shelf["Valve noise"])
    assert_lost_then_through(before, after, "quality")
    assert before.lost_at.fact == "quality 0.12, minimum 0.30: navigation"
    assert before.lost_at.remedy == "A quality.minimum of at most 0.11 would retain it."


def test_beyond_what_the_reranker_reads(shelf, trial):
    before, after = trial(
        "gasket sizes", shelf["Holiday rota"], overrides={"rerank.candidates": 2}, top_k=2, reranker=Rated()
    )
    assert_lost_then_through(before, after, "rerank")


def test_below_the_floor(shelf, trial):
    before, after = trial("gasket sizes", shelf["Holiday rota"], overrides={"floor.blend": 0.9})
    assert_lost_then_through(before, after, "floor")
    assert re.match(r"blend 0\.\d{3}, floor 0\.900$", before.lost_at.fact)


def test_below_the_floor_of_the_reranker(shelf, trial):
    before, after = trial("gasket sizes", shelf["Holiday rota"], overrides={"floor.relevance": 0.9}, reranker=Rated())
    assert_lost_then_through(before, after, "floor")
    assert "floor.relevance" in before.lost_at.remedy


def test_to_a_near_duplicate(world, shelf, trial):
    text = "Seat the new ring flat, oil the thread, turn the nut by hand and then by half a turn with the spanner"
    ids = put(world, {"Ring A": f"{text}.", "Ring B": f"{text} again."})
    lost = {title: trial("seat the new ring flat", ids[title], remedied=False) for title in ("Ring A", "Ring B")}
    (title,) = (title for title, line in lost.items() if line.lost_at)
    before, after = trial("seat the new ring flat", ids[title])
    assert_lost_then_through(before, after, "dedupe")
    other = next(name for name in lost if name != title)
    # 22 and 23 words make 20 runs of three that both have, and one that only one has: 20 / 21 = 0.952.
    assert re.match(
        rf"lost to its near-duplicate “{other}” at 0\.95, which (is fresher|ranks higher)$", before.lost_at.fact
    )


def test_to_the_same_text(world, shelf, trial):
    text = "Seat the new ring flat, oil the thread and turn the nut by hand."
    ids = put(world, {"Ring A": text, "Ring B": text})
    lines = [trial("seat the new ring flat", ids[title], remedied=False) for title in ("Ring A", "Ring B")]
    (lost,) = (line.lost_at for line in lines if line.lost_at)
    assert re.match(r"has the same text as “Ring [AB]”, which ", lost.fact)
    assert lost.remedy == "Only one copy of the same text is returned."


def test_behind_the_hits_wanted(shelf, find, lifeline):
    line = lifeline(shelf["Holiday rota"], find("gasket sizes", top_k=3))
    rank = int(re.match(r"rank (\d), top 3$", line.lost_at.fact).group(1))
    assert (line.lost_at.name, line.lost_at.remedy) == ("packed", f"Requesting {rank} hits would have included it.")
    assert step(lifeline(shelf["Holiday rota"], find("gasket sizes", top_k=rank)), "packed").state is StepState.PASSED


def test_for_want_of_room(shelf, trial):
    before, after = trial("gasket sizes", shelf["Holiday rota"], overrides={"assemble.budget_tokens": 100})
    assert_lost_then_through(before, after, "packed")
    assert re.match(r"would need \d+ tokens, \d+ of 100 were left$", before.lost_at.fact)


def test_the_leg_that_missed_is_told_apart_from_a_loss(shelf, find, lifeline):
    line = lifeline(shelf["Pump alignment"], find("gasket sizes"))
    missed = step(line, "fulltext")
    assert (missed.state, missed.fact) == (StepState.MISSED, "it contains none of “size”, “gasket”")
    assert (line.lost_at, step(line, "dense").state) == (None, StepState.PASSED)


def test_by_both_legs_at_once(shelf, find, lifeline):
    overrides = {"dense.depth": 1, "fulltext.depth": 1}
    line = lifeline(shelf["Pump alignment"], find("gasket sizes", overrides=overrides))
    assert (line.lost_at.name, step(line, "fulltext").state) == ("dense", StepState.DROPPED)
    assert step(line, "fuse").state is StepState.NOT_REACHED
    assert [(way.ended_at, way.chunks) for way in line.ways] == [("", 1)]
