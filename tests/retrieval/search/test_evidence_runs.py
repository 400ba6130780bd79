"""Gathering evidence for sections: the matrix, the budget, narrowing, and sections that fail."""

import uuid
from dataclasses import replace

import pytest
from django.db import OperationalError

from corecube.access import Principal, ScopeRequest
from corecube.errors import InvalidRequestError, NotPermittedError, UnknownConnectionError
from corecube.models import ApiKey, Compartment
from retrieval.engine.state import Note, Span
from retrieval.errors import (
    EmptyQueryError,
    OverridesError,
    SearchTimeoutError,
    UnknownSectionError,
    UnknownSectionSetError,
    UnknownVersionError,
)
from retrieval.models import Document, SearchRecord
from retrieval.presets.consolidated.evidence.recovery import Cell, Presence, cells_of, looked_for, merged
from retrieval.presets.consolidated.evidence.section_reading import read_section_set
from retrieval.presets.consolidated.evidence.section_state import SectionState
from retrieval.presets.consolidated.stages.sources import RecoverSources
from retrieval.search import prepare
from retrieval.search.evidence_runs import (
    NO_TIME,
    EvidenceRequest,
    UnknownCompartmentError,
    gather,
    lines_of,
    within_compartments,
)
from retrieval.search.section_sets import save_section_set
from tests.retrieval.conftest import hit

#: Sections without floors, which the encoder of tests gives no use for.
WRITTEN = {
    "name": "audit",
    "title": "Audit",
    "source_types": [{"name": "excel", "also": ["csv"]}, {"name": "pdf"}, {"name": "markdown"}],
    "sections": [
        {"name": "events", "title": "Events", "template": "{subject} rollback release", "optional": ["markdown"]},
        {"name": "costs", "title": "Costs", "template": "{subject} rollback amount", "required": ["excel"]},
        {"name": "bare", "title": "Bare", "template": "{subject}", "required": ["pdf"]},
    ],
}
AUDIT = read_section_set(WRITTEN)


@pytest.fixture
def costs(world, sync_once):
    """Have a section set, and a spreadsheet in the ledger, which Alice may see and Bob may not."""
    (world.root / "ledger" / "costs.csv").write_text("item,amount\nrollback in March,48200\nrollback in May,120\n")
    sync_once(world.ledger)
    save_section_set(WRITTEN, actor=world.alice)
    return world


def ask(world, name="alice", **more):
    return gather(EvidenceRequest(section_set="audit", **more), principal=world.principal(name))


def connections(evidence):
    scopes = [it.outcome.state.scope for it in evidence.sections if it.outcome]
    return {included.connection.slug for scope in scopes for included in scope.included}


def test_every_section_is_a_search_of_its_own_with_its_trace(costs):
    evidence = ask(costs, subject="March")
    assert [it.section.name for it in evidence.sections] == ["events", "costs", "bare"]
    records = [SearchRecord.objects.get(pk=it.outcome.id) for it in evidence.sections]
    assert [it.trace["section"] for it in records] == ["audit/events", "audit/costs", "audit/bare"]
    assert [it.query for it in records] == ["March rollback release", "March rollback amount", "March"]
    assert {(it.user, it.preset, it.surface) for it in records} == {
        (costs.alice, "consolidated", SearchRecord.Surface.EVIDENCE)
    }
    assert not SearchRecord.objects.asked().exists()


def test_one_section_can_be_asked_for(costs):
    evidence = ask(costs, section="costs")
    assert [it.section.name for it in evidence.sections] == ["costs"]
    assert SearchRecord.objects.count() == 1
    assert len(evidence.sections[0].outcome.hits) <= evidence.sections[0].section.keep


def test_the_matrix_says_what_is_there_and_what_is_not(costs):
    evidence = ask(costs, subject="March")
    assert evidence.source_types[:3] == ("excel", "pdf", "markdown")
    rows = {found.section.name: dict(zip(evidence.source_types, row, strict=True)) for found, row in lines_of(evidence)}
    assert rows["costs"]["excel"].presence in {Presence.FOUND, Presence.RECOVERED}
    assert rows["costs"]["excel"].count == 1
    assert rows["bare"]["pdf"] == Cell(Presence.MISSING)
    assert rows["events"]["pdf"] == Cell(Presence.NONE)
    assert rows["events"]["markdown"].presence is Presence.OPTIONAL


def test_what_a_viewer_may_not_see_is_missing_for_them(costs):
    evidence = ask(costs, "bob", subject="March")
    cells = {it.section.name: it.cells for it in evidence.sections}
    assert cells["costs"]["excel"] == Cell(Presence.MISSING)
    assert all(it.cells["excel"].count == 0 for it in evidence.sections)
    assert connections(evidence) == {"runbooks"}


def test_cells_count_by_canonical_type_and_mark_what_was_recovered():
    def typed(number, source_type):
        found = hit(number)
        return replace(found, facts=replace(found.facts, source_type=source_type))

    pool = (typed(1, "markdown"), typed(2, "csv"), typed(3, "text"))
    section = AUDIT.section("costs")
    found = cells_of(section, AUDIT, pool, ())
    assert found == {
        "excel": Cell(Presence.FOUND, 1),
        "pdf": Cell(Presence.NONE),
        "markdown": Cell(Presence.OPTIONAL, 1),
        "text": Cell(Presence.OPTIONAL, 1),
    }
    assert list(found) == ["excel", "pdf", "markdown", "text"]
    with_more = cells_of(section, AUDIT, merged(pool, (typed(4, "excel"),)), ())
    assert with_more["excel"] == Cell(Presence.RECOVERED, 2, 1)
    assert cells_of(section, AUDIT, (), {"excel"})["excel"] == Cell(Presence.MISSING)
    assert cells_of(section, AUDIT, (), ())["excel"] == Cell(Presence.NOT_LOOKED_FOR)


def test_less_than_the_quantity_floor_is_too_little_and_no_more_is_asked_for_than_is_kept():
    def csv(*found):
        return tuple(replace(hit(it), facts=replace(hit(it).facts, source_type="csv")) for it in found)

    section = replace(AUDIT.section("costs"), quantity_floors={"excel": 4})
    presences = [cells_of(section, AUDIT, csv(*range(count)), ())["excel"].presence for count in (1, 3, 4)]
    assert presences == [Presence.THIN, Presence.THIN, Presence.FOUND]
    assert cells_of(section, AUDIT, merged(csv(1), csv(2)), ())["excel"] == Cell(Presence.THIN, 2, 1)
    assert cells_of(replace(section, keep=2), AUDIT, csv(1, 2), ())["excel"].presence is Presence.FOUND


PROBED = {"event": "source_recovery_result", "source_type": "excel"}
EXHAUSTED = {"event": "fallback_exhausted", "tiers": 3}


@pytest.mark.parametrize(
    ("spans", "events", "is_known"),
    [
        ([("sources", 5)], [{**PROBED, "diagnosis": "absent"}, {**PROBED, "diagnosis": "known_absent"}], True),
        ([("sources", 5)], [{**PROBED, "diagnosis": "absent"}, {**PROBED, "diagnosis": "failed"}], False),
        ([("sources", 5)], [{**PROBED, "diagnosis": "still_looking"}], False),
        # Found, and not read in time.
        ([("sources", 5)], [{**PROBED, "diagnosis": "recovered"}], False),
        ([("sources", 5)], [{**PROBED, "source_type": "pdf", "diagnosis": "failed"}], True),
        ([("sources", 5, "timed_out_in_sources")], [], False),
        ([("rerank", 5)], [], False),
        # An empty pool is the cascade's.
        ([("sources", 0)], [EXHAUSTED], True),
        ([("sources", 0)], [{"event": "recovery_tier_result", "error": "SearchTimeoutError"}, EXHAUSTED], False),
        ([("sources", 0)], [{"event": "out_of_time", "tiers": 1}], False),
        ([], [], False),
    ],
)
def test_a_type_is_known_not_to_be_there_where_everybody_who_looked_could_look(spans, events, is_known):
    trace = [
        Span(stage, 0.0, hits_in, hits_in, notes=tuple(Note(code, "", degraded=True) for code in codes))
        for stage, hits_in, *codes in spans
    ]
    assert looked_for(AUDIT.section("costs"), trace, events) == (frozenset({"excel"}) if is_known else frozenset())


def test_a_section_that_ran_out_of_time_says_that_nobody_looked(costs, monkeypatch):
    def too_slow(self, state):
        raise SearchTimeoutError

    monkeypatch.setattr(RecoverSources, "__call__", too_slow)
    (found,) = ask(costs, "bob", section="costs", subject="March").sections
    assert found.outcome.hits
    assert found.cells["excel"] == Cell(Presence.NOT_LOOKED_FOR)


def test_a_section_that_fails_leaves_the_others(costs):
    evidence = ask(costs, subject="")
    failed = evidence.sections[2]
    assert (failed.outcome, failed.cells, failed.code) == (None, {}, "empty_query")
    assert failed.problem
    assert [it.code for it in evidence.sections[:2]] == ["", ""]
    assert [row for _, row in lines_of(evidence)][2] == (Cell(Presence.NONE),) * len(evidence.source_types)
    assert SearchRecord.objects.count() == 2


@pytest.mark.parametrize(
    ("error", "code"),
    [(OperationalError("no connection"), "database_unavailable"), (RuntimeError("secret"), "internal_error")],
)
def test_an_error_that_nobody_raised_on_purpose_leaves_the_other_sections(costs, monkeypatch, error, code):
    whole, calls = prepare.scope_for, []

    def second_fails(*args, **more):
        calls.append(args)
        if len(calls) == 2:
            raise error
        return whole(*args, **more)

    monkeypatch.setattr(prepare, "scope_for", second_fails)
    sections = ask(costs, subject="March").sections
    assert [it.code for it in sections] == ["", code, ""]
    assert "secret" not in sections[1].problem


def test_where_every_section_fails_the_error_is_raised(costs):
    with pytest.raises(EmptyQueryError):
        ask(costs, section="bare", subject="")


def test_sections_without_time_are_reported_and_not_searched_for(costs):
    evidence = ask(costs, subject="March", budget_seconds=0.0)
    assert {(it.code, it.outcome) for it in evidence.sections} == {(NO_TIME, None)}
    assert not SearchRecord.objects.exists()


def test_a_budget_gives_every_section_a_deadline_within_it(costs):
    evidence = ask(costs, subject="March", budget_seconds=9.0)
    asks = [it.outcome.state.part(SectionState).ask for it in evidence.sections]
    assert asks[0].seconds <= 3.0
    assert asks[1].seconds > asks[0].seconds
    assert all(0 < it.seconds <= 9.0 for it in asks)
    assert [it.outcome.state.part(SectionState).ask.seconds for it in ask(costs, subject="March").sections] == [
        None
    ] * 3


def test_sections_share_what_is_known_to_be_absent_and_runs_do_not(costs):
    first, second = ask(costs, subject="March"), ask(costs, subject="March")
    shared = {id(it.outcome.state.part(SectionState).ask.diagnoses) for it in first.sections}
    assert len(shared) == 1
    assert shared != {id(it.outcome.state.part(SectionState).ask.diagnoses) for it in second.sections}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, {"runbooks", "vault", "ledger"}),
        ({"compartments": ("engineering",)}, {"runbooks", "vault"}),
        ({"compartments": ("engineering", "finance")}, {"runbooks", "vault", "ledger"}),
        ({"compartments": ("engineering",), "narrowing": ScopeRequest(exclude=("vault",))}, {"runbooks"}),
        ({"compartments": ("finance",), "narrowing": ScopeRequest(include=("vault", "ledger"))}, {"ledger"}),
        ({"compartments": ("finance",), "narrowing": ScopeRequest(include=("vault",))}, set()),
        ({"narrowing": ScopeRequest(include=("vault",))}, {"vault"}),
    ],
)
def test_a_request_narrows_its_scope(costs, more, expected):
    assert connections(ask(costs, section="events", subject="March", **more)) == expected


def test_an_unknown_compartment_and_a_hidden_one_are_refused_alike(costs):
    Compartment.objects.create(slug="empty", name="Empty")
    said = set()
    for slug in ("finance", "empty", "nope", "", "\0"):
        with pytest.raises(UnknownCompartmentError) as error:
            ask(costs, "bob", compartments=("engineering", slug))
        said.add((str(error.value), error.value.status, error.value.code))
    assert len(said) == 1
    assert not SearchRecord.objects.exists()


def test_a_key_sees_no_compartment_beyond_its_narrowing(costs):
    key, _ = ApiKey.issue(user=costs.alice, name="narrow")
    key.compartments.add(costs.runbooks.compartment)
    narrow = Principal(costs.alice, key)
    with pytest.raises(UnknownCompartmentError):
        within_compartments(narrow, ScopeRequest(), ("finance",))
    assert within_compartments(narrow, ScopeRequest(), ("engineering",)).include == ("runbooks", "vault")


def test_documents_that_are_hidden_and_that_are_not_there_give_the_same(costs):
    hidden = Document.objects.get(connection=costs.ledger, source_type="csv").pk
    found = [ask(costs, "bob", section="costs", documents=frozenset({it})) for it in (hidden, uuid.uuid4())]
    hits = [[hit.chunk_id for hit in it.sections[0].outcome.hits] for it in found]
    assert hits[0] == hits[1]
    assert hidden not in {chunk.document_id for chunk in hits[0]}


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"section_set": "nope"}, UnknownSectionSetError),
        ({"section": "nope"}, UnknownSectionError),
        ({"narrowing": ScopeRequest(include=("nope",))}, UnknownConnectionError),
        ({"compartments": ("engineering",), "narrowing": ScopeRequest(exclude=("nope",))}, UnknownConnectionError),
        ({"subject": "x" * 201}, InvalidRequestError),
        ({"overrides": {"nope": 1}}, OverridesError),
        ({"draft": True}, UnknownVersionError),
    ],
)
def test_what_is_wrong_with_a_request_as_a_whole_is_raised_before_anything_is_searched(costs, more, error):
    with pytest.raises(error):
        gather(EvidenceRequest(**{"section_set": "audit", **more}), principal=costs.principal("alice"))
    assert not SearchRecord.objects.exists()


def test_a_draft_is_for_admins(costs):
    with pytest.raises(NotPermittedError):
        ask(costs, "bob", draft=True)


def test_a_key_that_may_not_use_the_preset_is_told_nothing_else(costs):
    key, _ = ApiKey.issue(user=costs.alice, name="narrow")
    key.presets = ["corecube"]
    for name in ("audit", "nope"):
        with pytest.raises(NotPermittedError):
            gather(EvidenceRequest(section_set=name), principal=Principal(costs.alice, key))
