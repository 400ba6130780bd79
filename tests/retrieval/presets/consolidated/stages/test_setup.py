"""Setup: how many chunks a section asks for, and which filters go along."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from corecube.access import scope_for
from retrieval.engine.deadline import Deadline
from retrieval.engine.query import read_query
from retrieval.engine.state import RequestFilter, SearchState
from retrieval.models import Chunk, Document, SearchRecord
from retrieval.presets.consolidated.config import ConsolidatedConfig
from retrieval.presets.consolidated.evidence.depth import DepthConfig, Health
from retrieval.presets.consolidated.evidence.section_reading import shipped
from retrieval.presets.consolidated.evidence.section_state import SectionState
from retrieval.presets.consolidated.stages import setup
from retrieval.presets.consolidated.stages.setup import SetUpSection, narrowed_by, question_ask
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.retrieval.presets.consolidated.stages.sectioned import ask
from tests.retrieval.presets.test_consolidated_reference import TOP_K

CONFIG = ConsolidatedConfig()
#: A compartment is sparse below no chunk at all, so that small worlds are in good health.
ROOMY = replace(CONFIG, depth=DepthConfig(sparse_below=0))


@pytest.fixture
def set_up(world):
    def run(section=None, *, name="alice", config=ROOMY, kept=None, top_k=10, seconds=60.0):
        kept = kept or RequestFilter()
        state = SearchState(
            query=read_query("rollback", characters=500),
            scope=scope_for(world.principal(name)),
            deadline=Deadline.after(seconds),
            now=timezone.now(),
            top_k=top_k,
            filter=kept,
            is_admin=world.principal(name).is_admin,
            parts={SectionState: SectionState(ask=section, request_filter=kept)} if section else {},
        )
        return SetUpSection(config.question, config.depth)(state)

    return run


def add_documents(world, count):
    Document.objects.bulk_create(
        Document(
            connection=world.runbooks,
            external_id=f"more {number}",
            source_type="text",
            byte_size=0,
            synced_at=timezone.now(),
            id=f"00000000-0000-0000-0000-{number:012x}",
        )
        for number in range(count)
    )


def note(state, code="setup"):
    return next(it.text for it in state.notes if it.code == code)


def test_a_section_asks_for_its_complexity_times_the_documents_factor(world, set_up):
    # Alice sees 4 documents: 28 x 1.0, read 28 x 1.5 = 42.
    state = set_up(ask(complexity=28, cap=60, keep=16))
    assert (state.part(SectionState).top_k, state.part(SectionState).fetched, state.top_k) == (28, 42, 16)
    assert (state.part(SectionState).documents, state.part(SectionState).health) == (4, Health.GOOD)
    assert note(state) == "Requests 28 chunks (base 28, 4 documents x 1, good x 1, cap 60), reads 42."
    # Bob sees 2: 28 x 1.75 = 49, read as many as the cap lets.
    state = set_up(ask(complexity=28, cap=60, keep=16), name="bob")
    assert (state.part(SectionState).top_k, state.part(SectionState).fetched) == (49, 60)
    add_documents(world, 20)
    # 24 documents: 28 x 1.5 = 42, read 63 and no more than 60.
    state = set_up(ask(complexity=28, cap=60, keep=16))
    assert (state.part(SectionState).top_k, state.part(SectionState).fetched) == (42, 60)
    assert "more than 10 documents x 1.5" in note(state)


def test_only_what_the_request_leaves_is_counted(world, set_up):
    named = frozenset(
        Document.objects.filter(external_id__in=["rollback.md", "queues.txt"]).values_list("pk", flat=True)
    )
    state = set_up(ask(complexity=28, cap=60), kept=RequestFilter(documents=named))
    assert (state.part(SectionState).documents, state.part(SectionState).top_k) == (2, 49)
    counted = set_up(config=CONFIG, kept=RequestFilter(documents=named)).part(SectionState).chunks
    assert counted == Chunk.objects.filter(document_id__in=named).count()
    state = set_up(ask(complexity=28, cap=60), kept=RequestFilter(source_types=frozenset({"markdown"})))
    assert state.part(SectionState).documents == 3
    assert set_up(kept=RequestFilter(since=timezone.now() + timedelta(days=1))).part(SectionState).documents == 0
    Chunk.objects.update(hints=["table"])
    held = RequestFilter(hint="table", min_quality=0.1)
    assert set_up(config=CONFIG, kept=held).part(SectionState).chunks == Chunk.objects.count()
    assert set_up(config=CONFIG, kept=RequestFilter(hint="list")).part(SectionState).chunks == 0


def test_what_is_hidden_changes_no_number(world, set_up):
    before = set_up(ask(), name="bob", config=CONFIG)
    Document.objects.filter(connection=world.vault).update(source_type="pdf")
    Chunk.objects.filter(connection_id=world.vault.pk).delete()
    SearchRecord.objects.bulk_create(record([world.vault.pk], ["dense_timeout"]) for _ in range(9))
    after = set_up(ask(), name="bob", config=CONFIG)
    assert (after.part(SectionState), after.notes, after.events) == (
        before.part(SectionState),
        before.notes,
        before.events,
    )


def test_a_sparse_compartment_is_asked_for_more(set_up):
    # 20 x 1.25, and everyone's compartments are sparse.
    state = set_up(ask(complexity=20, cap=60), config=CONFIG)
    assert (state.part(SectionState).health, state.part(SectionState).top_k) == (Health.SPARSE, 25)


def test_a_scope_is_sparse_where_all_of_its_compartments_are(set_up):
    # Engineering has 3 chunks, Finance 1.
    for below, health in ((1, Health.GOOD), (2, Health.GOOD), (3, Health.GOOD), (4, Health.SPARSE)):
        config = replace(CONFIG, depth=DepthConfig(sparse_below=below))
        assert set_up(ask(), config=config).part(SectionState).health is health, below


def record(connections, degraded, *, is_ordinary=True):
    return SearchRecord(
        is_ordinary=is_ordinary,
        preset="consolidated",
        preset_version="v",
        connection_ids=connections,
        milliseconds=1.0,
        hit_count=0,
        degraded=degraded,
    )


@pytest.mark.parametrize(
    ("failed", "fine", "health"),
    [(5, 0, Health.DEGRADED), (4, 0, Health.GOOD), (3, 3, Health.DEGRADED), (3, 4, Health.GOOD), (0, 9, Health.GOOD)],
)
def test_a_compartment_whose_last_searches_ran_out_of_time_is_asked_for_more(world, set_up, failed, fine, health):
    own = [world.runbooks.pk, 4711]
    SearchRecord.objects.bulk_create(record(own, ["timed_out_in_complete"]) for _ in range(failed))
    SearchRecord.objects.bulk_create(record(own, ["bm25_unavailable", "rerank_skipped"]) for _ in range(fine))
    state = set_up(ask(complexity=20, cap=60))
    assert state.part(SectionState).health is health
    assert state.part(SectionState).top_k == (30 if health is Health.DEGRADED else 20)


def test_searches_with_less_time_or_numbers_of_their_own_tell_nothing(world, set_up):
    late = ["timed_out_in_complete"]
    SearchRecord.objects.bulk_create(record([world.runbooks.pk], late, is_ordinary=False) for _ in range(9))
    assert set_up(ask()).part(SectionState).health is Health.GOOD


@pytest.mark.parametrize(
    ("more", "is_ordinary"),
    [
        ({}, True),
        ({"overrides": {"deadline_ms": 900}}, False),
        ({"overrides": {"question.score_floor": 1.0}}, False),
        ({"mode": "dense"}, False),
    ],
)
def test_a_search_is_ordinary_where_it_runs_as_its_preset_does(world, more, is_ordinary):
    found = search(SearchRequest(text="rollback", preset="consolidated", **more), principal=world.principal("bob"))
    assert SearchRecord.objects.get(pk=found.id).is_ordinary is is_ordinary


def test_a_section_with_less_time_than_the_preset_has_is_no_ordinary_search(world):
    hurried = SearchRequest(text="rollback", preset="consolidated", section=replace(ask(), seconds=0.5))
    assert not SearchRecord.objects.get(pk=search(hurried, principal=world.principal("bob")).id).is_ordinary


def test_a_busy_compartment_does_not_hide_how_another_one_fares(world, set_up):
    SearchRecord.objects.bulk_create(record([world.ledger.pk], ["timed_out_in_complete"]) for _ in range(5))
    SearchRecord.objects.bulk_create(record([world.runbooks.pk], []) for _ in range(150))
    assert set_up(ask()).part(SectionState).health is Health.DEGRADED
    assert set_up(ask(), name="bob").part(SectionState).health is Health.GOOD


def test_only_an_admin_is_told_that_searches_of_others_failed(world, set_up):
    SearchRecord.objects.bulk_create(record([world.runbooks.pk], ["timed_out_in_complete"]) for _ in range(5))
    told, untold = set_up(ask()), set_up(ask(), name="bob")
    assert told.part(SectionState).health is untold.part(SectionState).health is Health.DEGRADED
    assert "degraded x 1.5" in note(told)
    assert told.events[0]["health"] == "degraded"
    assert "degraded" not in note(untold)
    assert untold.events[0]["health"] == ""


def test_searches_of_long_ago_and_of_other_compartments_tell_nothing(world, set_up):
    SearchRecord.objects.bulk_create(record([world.ledger.pk], ["fallback_exhausted"]) for _ in range(9))
    assert set_up(ask(), name="bob").part(SectionState).health is Health.GOOD
    assert set_up(ask()).part(SectionState).health is Health.DEGRADED
    SearchRecord.objects.update(at=timezone.now() - timedelta(minutes=11))
    assert set_up(ask()).part(SectionState).health is Health.GOOD


def test_the_sections_filters_stand_beside_the_requests(set_up):
    kept = RequestFilter(documents=frozenset(Document.objects.values_list("pk", flat=True)))
    state = set_up(ask(hint="table", quality_floor=0.35), kept=kept)
    assert state.filter == replace(kept, hint="table", min_quality=0.35)
    assert state.part(SectionState).request_filter == kept


def test_the_higher_floor_and_the_requests_own_kind_of_content_hold():
    section = ask(hint="table", quality_floor=0.35).section
    assert narrowed_by(section, RequestFilter(min_quality=0.5, hint="list")) == RequestFilter(
        min_quality=0.5, hint="list"
    )
    assert narrowed_by(section, RequestFilter(min_quality=0.2)).min_quality == 0.35


def test_a_plain_question_has_a_policy_that_asks_for_at_least_what_is_wanted(set_up):
    state = set_up(top_k=5)
    assert (state.part(SectionState).ask.name, state.part(SectionState).top_k, state.top_k) == (
        "question/question",
        10,
        5,
    )
    assert (state.filter.min_quality, state.part(SectionState).score_floor) == (0.25, 0.18)
    state = set_up(top_k=100)
    assert (state.part(SectionState).top_k, state.part(SectionState).fetched, state.top_k) == (100, 100, 100)
    assert question_ask(CONFIG.question, keep=30).section.complexity == 30
    assert state.part(SectionState).ask.section_set.canonical("csv") == "excel"


def test_an_empty_scope_is_counted_without_asking_the_store(set_up, django_assert_num_queries):
    with django_assert_num_queries(1):  # whose scope it is
        state = set_up(ask(), name="charlie")
    assert (state.part(SectionState).documents, state.part(SectionState).chunks) == (0, 0)


def test_where_counting_takes_too_long_a_middling_number_is_taken(world, set_up, monkeypatch):
    from retrieval.errors import SearchTimeoutError

    def too_slow(*_, **__):
        raise SearchTimeoutError

    monkeypatch.setattr(setup, "scope_counts", too_slow)
    state = set_up(ask(complexity=28, cap=60), config=CONFIG)
    assert (state.part(SectionState).top_k, state.part(SectionState).health) == (28, Health.GOOD)
    assert [it.code for it in state.notes if it.degraded] == ["setup_timeout"]


@pytest.mark.parametrize(("name", "top_k"), TOP_K.items())
def test_what_setup_derives_is_aligned_with_the_measured_table(world, set_up, name, top_k):
    """Alice sees four documents, which is a middling number."""
    memo = shipped("property_memo")
    state = set_up(replace(ask(), section_set=memo, section=memo.section(name)))
    assert (state.part(SectionState).top_k, state.part(SectionState).fetched) == (
        top_k,
        min(memo.section(name).cap, 3 * top_k // 2),
    )
