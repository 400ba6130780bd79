import threading
from dataclasses import replace

import pytest

from corecube.models import Compartment, Connection
from corecube.scope import Sensitivity
from retrieval.engine.admission import Admission, ProcessHooks
from retrieval.engine.admission_ladder import Refusal
from retrieval.engine.state import RequestFilter
from retrieval.errors import SearchTimeoutError
from retrieval.index import recovery
from retrieval.presets.consolidated.evidence.recovery import Diagnoses, is_recovered
from retrieval.presets.consolidated.stages.sources import SourceRecoveryConfig
from retrieval.search import runtime
from retrieval.stages.access import CheckAccess
from retrieval.stages.complete import Complete
from tests.retrieval.presets.consolidated.stages.recovering import REPORT, ask_for, stage_named, state_of

FIGURES = REPORT.section("facts_and_figures")
TABLE = "region,crowns\n" + "".join(f"harbour {number},{number * 100}\n" for number in range(3))


@pytest.fixture
def probes(monkeypatch):
    """Return the list of the compartments' scopes that the store was probed with, in order."""
    asked = []
    whole = recovery.of_source_types

    def probe(source_types, **facts):
        asked.append((tuple(source_types), tuple(facts["scope"].connection_ids)))
        return whole(source_types, **facts)

    monkeypatch.setattr(recovery, "of_source_types", probe)
    return asked


@pytest.fixture
def write(world, sync_once):
    """Return a function that adds a file to a connection and has it taken in."""

    def write(connection, name, text):
        (world.root / connection.slug / name).write_text(text)
        sync_once(connection)

    return write


def with_pool(state, *titles):
    """Return the state with the chunks of the documents with these titles as its pool, read and checked."""
    from retrieval.engine.types import ChunkId, Hit, ScoreType
    from retrieval.models import Chunk

    rows = Chunk.objects.filter(document__title__in=titles).values_list("document_id", "ordinal")
    state = replace(state, hits=tuple(Hit(ChunkId(*row), 0.5, ScoreType.RRF) for row in rows))
    complete = next(it for it in stage_named("sources").completing if isinstance(it, Complete))
    return CheckAccess()(complete(state))


def bobs(world, text="rollback costs by region", section=FIGURES, *, asked=None, **fields):
    state = state_of(world.principal("bob"), text, ask=ask_for(section, **fields), asked=asked)
    return with_pool(state, "Rolling back")


def events(state):
    return [(it["source_type"], place(it, state.scope), it["found"], it["diagnosis"]) for it in state.events]


def place(event, scope):
    """Return the name of the compartment that an event's connections are of."""
    (name,) = {it.connection.compartment for it in scope.included if it.connection.id in event["connections"]}
    return name


def test_a_missing_type_is_added_behind_the_pool(world, write):
    write(world.runbooks, "crowns.csv", TABLE)
    before = bobs(world)
    state = stage_named("sources")(before)
    added = state.hits[len(before.hits) :]
    assert state.hits[: len(before.hits)] == before.hits
    assert {hit.chunk.source_type for hit in added} == {"csv"}
    assert all(map(is_recovered, added))
    assert all("cosine" in hit.signals for hit in added)
    assert events(state) == [("excel", "Engineering", len(added), "recovered")]
    assert state.notes[-1].code == "source_recovered"


def test_what_the_pool_has_is_not_looked_for(world, write, probes):
    write(world.runbooks, "crowns.csv", TABLE)
    state = with_pool(bobs(world, section=replace(FIGURES, quantity_floors={})), "Rolling back", "Crowns")
    assert {hit.chunk.source_type for hit in state.hits} == {"markdown", "csv"}
    assert stage_named("sources")(state) is state
    assert probes == []


def test_nothing_is_looked_for_where_nothing_is_missing_or_the_pool_is_empty(world, probes):
    stage = stage_named("sources")
    for state in (bobs(world, section=REPORT.section("overview")), replace(bobs(world), hits=())):
        assert stage(state) is state
    assert probes == []


def test_optional_types_are_never_looked_for(world, write, probes):
    write(world.runbooks, "crowns.csv", TABLE)
    section = replace(FIGURES, required=(), optional=("excel",), quantity_floors={}, survivor_floors={})
    stage_named("sources")(bobs(world, section=section))
    assert probes == []


def test_no_more_than_the_most_that_are_protected_are_added(world, write):
    rows = "".join(f"harbour {number}," + "long words of a figure " * 60 + "\n" for number in range(40))
    write(world.runbooks, "crowns.csv", "region,crowns\n" + rows)
    config = SourceRecoveryConfig()
    for floor, added in ((1, 2), (3, 6), (30, config.max_protected)):
        section = replace(FIGURES, quantity_floors={"excel": floor}, survivor_floors={}, cap=40)
        before = bobs(world, section=section)
        assert len(stage_named("sources")(before).hits) - len(before.hits) == added
    section = replace(FIGURES, quantity_floors={}, survivor_floors={"excel": 5})
    before = bobs(world, section=section)
    assert len(stage_named("sources")(before).hits) - len(before.hits) == 5


def test_a_type_that_is_absent_is_probed_once_a_compartment_and_not_once_a_section(world, probes):
    """Alice sees both compartments: two probes, however many sections require the type."""
    diagnoses, stage = Diagnoses(), stage_named("sources")
    said = []
    for number in range(4):
        ask = ask_for(replace(FIGURES, name=f"section_{number}"), diagnoses=diagnoses)
        state = with_pool(state_of(world.principal("alice"), "rollback", ask=ask), "Rolling back")
        said.append([it["diagnosis"] for it in stage(state).events])
    assert said == [["absent", "absent"], *[["known_absent", "known_absent"]] * 3]
    assert probes == [(("excel", "csv"), (world.runbooks.pk, world.vault.pk)), (("excel", "csv"), (world.ledger.pk,))]


def test_what_is_absent_in_one_compartment_is_found_in_another(world, write):
    write(world.ledger, "crowns.csv", TABLE)
    state = with_pool(state_of(world.principal("alice"), "rollback", ask=ask_for(FIGURES)), "Rolling back")
    state = stage_named("sources")(state)
    assert events(state) == [("excel", "Engineering", 0, "absent"), ("excel", "Finance", 1, "recovered")]
    assert state.hits[-1].chunk.connection_id == world.ledger.pk


def test_what_is_out_of_scope_stays_there(world, write):
    for hidden in (world.vault, world.ledger):
        write(hidden, "crowns.csv", TABLE + "rollback costs by region,zanzibar\n")
    before = bobs(world)
    state = stage_named("sources")(before)
    assert state.hits == before.hits
    assert events(state) == [("excel", "Engineering", 0, "absent")]
    assert "Finance" not in str(state.events)
    assert state.notes[-1].code == "source_missing"
    assert not state.notes[-1].degraded


def test_compartments_of_one_name_are_probed_as_one(world, probes):
    twin = Compartment.objects.create(slug="engineering-2", name="Engineering")
    other = Connection.objects.create(
        slug="twin", name="Twin", kind="folder", config={"path": str(world.root)}, compartment=twin
    )
    from corecube.models import Grant

    Grant.objects.create(user=world.bob, compartment=twin, clearance=Sensitivity.RESTRICTED)
    stage_named("sources")(bobs(world))
    assert probes == [(("excel", "csv"), (world.runbooks.pk, other.pk))]


def test_a_probe_keeps_to_what_the_request_asked_for(world, write):
    write(world.runbooks, "crowns.csv", TABLE)
    own = world.runbooks.documents.get(title="Rolling back")
    state = stage_named("sources")(bobs(world, asked=RequestFilter(documents=frozenset({own.pk}))))
    assert events(state) == [("excel", "Engineering", 0, "absent")]


def test_without_a_vector_words_come_first_and_then_the_newest(world, write):
    write(world.runbooks, "crowns.csv", TABLE)
    write(world.runbooks, "ports.csv", "port,master\nSaltholm,Ines Rollback\n")
    state = stage_named("sources")(replace(bobs(world, "rollback"), vector=None))
    added = [hit for hit in state.hits if is_recovered(hit)]
    assert "Saltholm" in added[0].chunk.text
    assert len(added) == 2


def test_a_probe_that_is_not_begun_in_time_fails_and_is_told(world, write):
    """Every place of recovery is held by somebody else."""
    write(world.runbooks, "crowns.csv", TABLE)
    admission, held, leave = Admission(), threading.Barrier(13), threading.Event()
    from retrieval.engine.admission_ladder import Purpose

    def hold():
        with admission.query(Purpose.RECOVERY, budget_seconds=10):
            held.wait(10)
            leave.wait(10)

    threads = [threading.Thread(target=hold) for _ in range(admission.load().recovery_slots)]
    held = threading.Barrier(len(threads) + 1)
    for thread in threads:
        thread.start()
    held.wait(10)
    stage = stage_named("sources", replace(runtime.resources(), admission=admission))
    before = bobs(world)
    state = replace(stage, config=SourceRecoveryConfig(ceiling_seconds=0.1))(before)
    leave.set()
    for thread in threads:
        thread.join()
    assert state.hits == before.hits
    assert events(state) == [("excel", "Engineering", 0, "failed")]
    assert state.events[0]["error"] == "OverloadedError"
    assert (state.notes[-1].code, state.notes[-1].degraded) == ("source_not_looked_for", True)


def test_a_full_pool_of_searches_does_not_hold_it_up(world, write):
    write(world.runbooks, "crowns.csv", TABLE)
    admission = Admission(turns=1)
    stage = stage_named("sources", replace(runtime.resources(), admission=admission))
    with admission.query(budget_seconds=10):
        state = stage(bobs(world))
    assert events(state)[0][3] == "recovered"


def test_a_store_that_takes_too_long_tells_nothing_of_the_type(world, monkeypatch):
    diagnoses = Diagnoses()

    def slow(*_, **__):
        raise SearchTimeoutError

    with monkeypatch.context() as patched:
        patched.setattr(recovery, "of_source_types", slow)
        state = stage_named("sources")(bobs(world, diagnoses=diagnoses))
    assert state.events[0]["error"] == "SearchTimeoutError"
    assert not diagnoses.is_absent("Engineering", "excel")


@pytest.mark.parametrize(
    ("active", "seconds", "titles", "refused"),
    [
        # 88 % of 96 connections turn new searches away, and no look for a type that is missing or thin.
        (84, 60, ("Rolling back",), None),
        (84, 60, ("Rolling back", "Crowns"), None),
        # From 90 % on a look that has less than 12 s is for a type that is not there at all.
        (87, 10, ("Rolling back",), None),
        (87, 10, ("Rolling back", "Crowns"), Refusal.SHORT_BUDGET),
    ],
)
def test_a_thin_type_is_turned_away_before_one_that_is_absent(world, write, active, seconds, titles, refused):
    write(world.runbooks, "crowns.csv", TABLE)
    write(world.runbooks, "tolls.csv", TABLE.replace("harbour", "toll"))
    admission = Admission(world=ProcessHooks(lambda: active))
    state = state_of(world.principal("bob"), "rollback costs by region", ask=ask_for(FIGURES), seconds=seconds)
    after = stage_named("sources", replace(runtime.resources(), admission=admission))(with_pool(state, *titles))
    assert admission.load().refused == ({refused: 1} if refused else {})
    assert any(map(is_recovered, after.hits)) is (refused is None)
