"""The preset `consolidated` with one leg alone, with other ways to put the question, and what it may not show."""

from dataclasses import replace

import pytest
from django.db import transaction

from retrieval.engine.pipeline import Legs
from retrieval.engine.state import RequestFilter
from retrieval.engine.stored_filter import filter_of
from retrieval.errors import UnknownModeError
from retrieval.index.bm25.follower import follower
from retrieval.ingest.sync import sync_connection
from retrieval.models import Document, SearchRecord
from retrieval.presets.consolidated.config import ConsolidatedConfig
from retrieval.presets.consolidated.evidence.recovery import is_beyond_filter
from retrieval.presets.consolidated.evidence.section_reading import shipped
from retrieval.presets.consolidated.evidence.section_state import SectionAsk, SectionState
from retrieval.presets.consolidated.pipeline import build_consolidated
from retrieval.search import runtime
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

REPORT = shipped("report")


@pytest.fixture
def find(world, settings):
    settings.CORECUBE_BM25 = True
    follower().rebuild()

    def run(name="alice", text="rollback queue staging", section="", **fields):
        ask = SectionAsk(section_set=REPORT, section=REPORT.section(section)) if section else None
        request = SearchRequest(text=text, preset="consolidated", section=ask, **fields)
        return search(request, principal=world.principal(name))

    return run


def codes(outcome):
    return [note.code for span in outcome.trace for note in span.notes]


def legs_in(stage):
    """Return the names of the legs that a stage runs again."""
    held = (*getattr(stage, "primary", ()), *getattr(getattr(stage, "tiers", None), "search", ()))
    return {leg.name for it in held if isinstance(it, Legs) for leg in it.legs}


@pytest.mark.parametrize("mode", ["dense", "bm25"])
def test_a_mode_searches_by_one_leg_the_first_time_and_again(find, mode):
    outcome = find(mode=mode)
    assert set(outcome.state.rankings) == {mode}
    assert outcome.hits
    assert all(set(hit.ranks) == {mode} for hit in outcome.hits)
    pipeline = build_consolidated(ConsolidatedConfig(), runtime.resources()).in_mode(mode)
    again = {stage.name: legs_in(stage) for stage in pipeline.stages if legs_in(stage)}
    assert again == {"chunk_retry": {mode}, "recovery": {mode}}
    assert [phase.name for phase in pipeline.phases][-2:] == ["assembly", "packing"]


def test_there_are_no_other_modes(find):
    with pytest.raises(UnknownModeError, match="modes: hybrid, dense, bm25"):
        find(mode="fulltext")


def test_the_fingerprint_is_that_of_the_stages_and_numbers(find):
    assert find().preset_version == find("bob").preset_version
    assert find().preset_version != find(mode="dense").preset_version
    assert find().preset_version != find(overrides={"retry.below": 1}).preset_version


def test_other_ways_to_put_the_question_are_searched_for_too(find):
    outcome = find(text="staging", variants=("drain the queue",))
    assert {"dense", "bm25", "dense_2", "bm25_2"} <= set(outcome.state.rankings)
    assert "variants" in codes(outcome)
    assert [span.stage for span in outcome.trace if not span.parent][-1] == "answerability"


def test_documents_that_are_named_come_first_and_what_lies_beyond_them_is_marked(find, world):
    own = Document.objects.get(external_id="queues.txt").pk
    hidden = Document.objects.get(connection=world.vault).pk
    text = "draining the queue takes four minutes, worker is stuck"
    outcome = find("bob", text, filter=RequestFilter(documents=frozenset({own, hidden})))
    first, *others = outcome.hits
    assert first.chunk_id.document_id == own
    assert not is_beyond_filter(first)
    assert others
    for hit in others:
        assert is_beyond_filter(hit)
        assert hit.chunk_id.document_id not in {own, hidden}
    assert {"documents_missing", "chunk_retry_beyond"} <= set(codes(outcome))
    stored = SearchRecord.objects.order_by("at").last().trace["filter"]
    assert filter_of(stored).filter == RequestFilter(documents=frozenset({own, hidden}))


def test_nothing_in_scope_finds_nothing_and_says_so(find):
    outcome = find("charlie", section="overview")
    assert (outcome.hits, outcome.passages) == ((), ())
    assert "no_compartment" in codes(outcome)


def told(outcome):
    """Return all that a search tells but for times: ages move the scores a little."""
    spans = [(span.stage, span.hits_out, span.notes, span.drops) for span in outcome.trace]
    events = [{name: it for name, it in event.items() if name != "ms"} for event in outcome.state.events]
    hits = [(hit.chunk_id, hit.ranks, hit.provider, hit.matches) for hit in outcome.hits]
    return spans, events, hits, outcome.state.part(SectionState)


@pytest.mark.parametrize("section", ["", "facts_and_figures", "how_it_works"])
def test_what_is_hidden_changes_nothing(find, world, section):
    before = told(find("bob", section=section))
    with transaction.atomic():
        for connection in (world.vault, world.ledger):
            folder = world.root / connection.slug
            (folder / "more.md").write_text("# Rollback\n\nThe rollback of the queue in staging.\n")
            (folder / "more.csv").write_text("rollback,queue\n" + "1,2\n" * 20)
            sync_connection(connection)
        after = told(find("bob", section=section))
    own = set(Document.objects.filter(connection=world.runbooks).values_list("pk", flat=True))
    assert after == before
    assert {chunk_id.document_id for chunk_id, *_ in after[2]} <= own


def test_a_run_without_time_shows_nothing_that_was_not_checked(find):
    outcome = find(overrides={"deadline_ms": 50}, section="overview")
    state = outcome.state
    assert state.access_checked or not outcome.hits
    assert replace(state, hits=()).access_checked is state.access_checked
