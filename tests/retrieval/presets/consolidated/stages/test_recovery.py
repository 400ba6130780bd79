import uuid
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from django.db import connection as database
from pgvector import HalfVector

from retrieval.engine.admission import Admission, ProcessHooks
from retrieval.engine.admission_ladder import Refusal
from retrieval.engine.state import Note, RequestFilter, Span
from retrieval.index.types import RoutedRange
from retrieval.ingest.sync import sync_connection
from retrieval.models import Chunk, EmbeddingIndex
from retrieval.presets.consolidated.config import ConsolidatedConfig
from retrieval.presets.consolidated.evidence.cascade import Tier
from retrieval.presets.consolidated.evidence.recovery import is_beyond_filter
from retrieval.presets.consolidated.evidence.section_state import SectionState
from retrieval.presets.consolidated.pipeline import build_consolidated
from retrieval.presets.consolidated.recovery_tiers import OtherIndexes
from retrieval.presets.consolidated.reference import build_consolidated_reference
from retrieval.search import runtime
from tests.fakes import HashEncoder
from tests.retrieval.presets.consolidated.stages.recovering import LENIENT, ask_for, stage_named, state_of

NOWHERE = RequestFilter(documents=frozenset({uuid.UUID(int=1)}))
NEVER = RequestFilter(since=datetime(2999, 1, 1, tzinfo=UTC))
TOLD = "recovery_tier_result"


@pytest.fixture
def waits():
    return []


@pytest.fixture
def recover(waits, world):
    """Return a function that runs the preset's stage, its waits written down instead of waited for."""

    def run(state, resources=None):
        return replace(stage_named("recovery", resources), wait=waits.append, draw=lambda: 0.5)(state)

    return run


def tiers(state):
    return [(it["tier"], it["accepted"]) for it in state.events if it["event"] == TOLD]


def codes(state):
    return [note.code for note in state.notes]


def without_vectors(index=None):
    with database.cursor() as cursor:
        cursor.execute("DELETE FROM retrieval_embedding WHERE %s IN (0, index_id)", [index or 0])


def add_index(model, connections):
    """Add an embedding index of another model with the vectors of these connections' chunks, and return it."""
    row = EmbeddingIndex.objects.create(
        model=model.name, weights=model.weights, dim=model.dim, source="local:other", status="previous"
    )
    chunks = Chunk.objects.filter(connection_id__in=[it.pk for it in connections])
    vectors = model.encode_documents([chunk.text for chunk in chunks])
    with database.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO retrieval_embedding (document_id, ordinal, index_id, connection_id, vector)"
            " VALUES (%s, %s, %s, %s, %s::halfvec)",
            [
                (chunk.document_id, chunk.ordinal, row.pk, chunk.connection_id, HalfVector(vector).to_text())
                for chunk, vector in zip(chunks, vectors, strict=True)
            ],
        )
    return row


@pytest.fixture
def other_model(monkeypatch, world):
    """Make a model of its own kind the one of a second embedding index."""
    model = HashEncoder(dim=32)
    model.name = "other"

    class Choice:
        service = None

        @staticmethod
        def load():
            return model

    monkeypatch.setattr("retrieval.encoders.embedders.of_index", lambda _: Choice)
    return model


def test_a_pool_with_hits_is_left_as_it_is(world, recover):
    state = recover(state_of(world.principal("bob"), "rollback"))
    assert recover(state) is state


def test_an_empty_scope_is_not_searched_again(world, waits, django_assert_num_queries):
    state = state_of(world.principal("charlie"), "rollback", asked=NOWHERE)
    stage = replace(stage_named("recovery"), wait=waits.append)
    with django_assert_num_queries(0):
        after = stage(state)
    assert waits == []
    assert after.events == ({"event": "fallback_exhausted", "tiers": 0, "level": "warning"},)
    assert codes(after) == [*codes(state), "fallback_exhausted"]
    assert (after.hits, after.degraded) == ((), ())


def test_documents_that_are_not_there_are_given_up_first_and_at_once(world, recover, waits):
    state = recover(state_of(world.principal("bob"), "rollback staging database", asked=NOWHERE))
    assert tiers(state) == [("document_filter_relaxation", True)]
    assert waits == []
    assert state.access_checked
    assert state.hits
    assert all(map(is_beyond_filter, state.hits))
    assert codes(state)[-1] == "recovered_pool"
    assert f"{len(state.hits)} of them outside" in state.notes[-1].text


def test_the_requests_other_conditions_hold_while_its_documents_are_given_up(world, recover, waits):
    asked = replace(NOWHERE, since=NEVER.since)
    state = recover(state_of(world.principal("bob"), "rollback", asked=asked))
    assert tiers(state) == [("document_filter_relaxation", False), ("compartment_sweep", True)]
    assert waits == [0.5]
    assert all(map(is_beyond_filter, state.hits))


def test_what_the_request_asked_for_is_not_marked(world, recover):
    own = world.runbooks.documents.get(title="Rolling back")
    asked = RequestFilter(documents=frozenset({own.pk}))
    state = recover(
        state_of(world.principal("bob"), "Rolling back staging: draining the queue takes minutes", asked=asked)
    )
    beyond = {hit.chunk_id.document_id: is_beyond_filter(hit) for hit in state.hits}
    assert beyond.pop(own.pk) is False
    assert set(beyond.values()) == {True}


def test_a_sweep_without_any_filter_marks_nothing(world, recover):
    state = recover(state_of(world.principal("bob"), "rollback"))
    assert tiers(state) == [("compartment_sweep", True)]
    assert state.hits
    assert not any(map(is_beyond_filter, state.hits))


def test_three_chunks_under_the_routed_headings_make_the_sweep_needless(world, recover):
    (world.root / "runbooks" / "long.md").write_text(
        "# Long\n\n" + "".join(f"## Part {it}\n\n{'The rollback of part ' * 200}{it}.\n\n" for it in range(6))
    )
    sync_connection(world.runbooks)
    document = world.runbooks.documents.get(title="Long")
    last = document.chunks.count() - 1
    assert last >= 3
    routed = RoutedRange(document_id=document.pk, heading_path=("Long",), start=1, end=last, score=1.0)
    state = recover(state_of(world.principal("bob"), "rollback part", asked=NEVER, headings=(routed, routed)))
    assert tiers(state) == [("structure_scoped", True)]
    assert sorted(hit.chunk_id.ordinal for hit in state.hits) == list(range(1, last + 1))
    few = replace(routed, end=2)
    state = recover(state_of(world.principal("bob"), "rollback part", asked=NEVER, headings=(few,)))
    assert tiers(state) == [("structure_scoped", False), ("compartment_sweep", True)]
    assert {hit.chunk_id.ordinal for hit in state.hits[:2]} == {1, 2}


def test_another_models_index_is_searched_with_its_own_vector_of_the_query(world, recover, other_model):
    without_vectors()
    row = add_index(other_model, [world.runbooks])
    resources = runtime.resources()
    assert resources.other_indexes == OtherIndexes(resources.index)
    state = recover(state_of(world.principal("bob"), "Draining the queue takes four minutes"), resources)
    assert tiers(state) == [("compartment_sweep", False), ("index_sweep", True)]
    assert state.hits[0].ranks == {f"index_{row.pk}": 1}
    assert "Draining the queue" in state.hits[0].chunk.text


@pytest.mark.parametrize(("build", "swept"), [(build_consolidated, 2), (build_consolidated_reference, 3)])
def test_every_other_index_is_swept_and_those_of_services_by_the_reference_alone(
    world, other_model, monkeypatch, build, swept
):
    rows = [add_index(other_model, [world.runbooks]) for _ in range(3)]

    def choice(row):
        return SimpleNamespace(service="voyage" if row.pk == rows[2].pk else None, load=lambda: other_model)

    monkeypatch.setattr("retrieval.encoders.embedders.of_index", choice)
    without_vectors(runtime.resources().index.id)
    pipeline = build(ConsolidatedConfig(), runtime.resources())
    recovery = next(stage for stage in pipeline.stages if stage.name == "recovery")
    state = state_of(world.principal("bob"), "Draining the queue takes four minutes")
    hits = recovery.tiers.found(Tier.INDEXES, state, state.part(SectionState))
    assert hits[0].ranks == {f"index_{row.pk}": 1 for row in rows[:swept]}
    assert ("cosine_noise" in hits[0].signals) == (build is build_consolidated)


def test_words_alone_are_the_last_to_be_tried(world, recover, waits):
    without_vectors()
    state = recover(state_of(world.principal("bob"), "draining the queue"))
    assert tiers(state) == [("compartment_sweep", False), ("index_sweep", False), ("lexical", True)]
    assert waits == [0.5, 1.0]
    assert "Draining the queue" in state.hits[0].chunk.text


def test_nothing_anywhere_ends_with_the_terminal_event(world, recover, waits):
    without_vectors()
    state = recover(state_of(world.principal("bob"), "zzz qqq", asked=NOWHERE))
    assert not state.hits
    assert [name for name, _ in tiers(state)] == [
        "document_filter_relaxation",
        "compartment_sweep",
        "index_sweep",
        "lexical",
    ]
    assert waits == [0.5, 1.0, 2.0]
    assert state.events[-1]["event"] == "fallback_exhausted"
    assert (codes(state)[-1], state.notes[-1].degraded) == ("fallback_exhausted", False)


def test_what_the_gate_rejects_is_no_evidence(world, recover):
    strict = replace(LENIENT, quality_floor=1.0)
    Chunk.objects.update(quality=0.9)
    state = recover(state_of(world.principal("bob"), "rollback", ask=ask_for(strict)))
    assert not state.hits
    assert {it["passed"] for it in state.events if it["event"] == TOLD} == {0}
    assert max(it["found"] for it in state.events if it["event"] == TOLD) > 0


@pytest.mark.parametrize("tier", [*Tier])
def test_no_tier_leaves_the_scope(world, other_model, tier):
    """Bob sees the runbooks alone; what he asks for stands in the vault and the ledger, word for word."""
    add_index(other_model, [world.runbooks, world.vault, world.ledger])
    hidden = [*world.vault.documents.all(), *world.ledger.documents.all()]
    headings = tuple(
        RoutedRange(document_id=it.pk, heading_path=(), start=0, end=9, score=1.0)
        for it in (*hidden, *world.runbooks.documents.all())
    )
    asked = RequestFilter(documents=frozenset(it.pk for it in hidden))
    text = "the stolen passphrase was zanzibar, rollback failed; the codeword tangerine"
    found = {}
    for name in ("bob", "alice"):
        state = state_of(world.principal(name), text, asked=asked, headings=headings)
        found[name] = stage_named("recovery").tiers.found(tier, state, state.part(SectionState))
    assert {hit.chunk.connection_id for hit in found["bob"]} == {world.runbooks.pk}
    assert {hit.chunk.connection_id for hit in found["alice"]} > {world.runbooks.pk}


def test_it_ends_before_a_wait_that_would_outlast_the_time(world, recover, waits):
    without_vectors()
    state = recover(state_of(world.principal("bob"), "zzz qqq", asked=NOWHERE, seconds=0.5))
    assert len(tiers(state)) <= 1
    assert waits == []
    assert state.events[-1]["event"] == "out_of_time"
    assert state.notes[-1].code == "recovery_out_of_time"
    assert state.notes[-1].degraded


def crowded(active):
    """Return the resources of a process where so many of 96 connections are at work."""
    return replace(runtime.resources(), admission=Admission(world=ProcessHooks(lambda: active)))


def broken_off(state):
    """Return the state of a search whose vector leg ran out of time."""
    note = Note("dense_timeout", "The vector leg ran out of time.", degraded=True)
    return replace(state, trace=(Span("dense", 0.1, 0, 0, notes=(note,)),))


@pytest.mark.parametrize(("active", "skipped"), [(87, 0), (88, 1)])  # 92 % of 96 are 88.3, so 88
def test_a_pool_that_was_broken_off_is_left_alone_in_a_crowd(world, recover, active, skipped):
    tools = crowded(active)
    state = recover(broken_off(state_of(world.principal("alice"), "rollback", asked=NOWHERE)), tools)
    assert bool(state.hits) is not bool(skipped)
    assert ("recovery_skipped" in codes(state)) is bool(skipped)
    assert tools.admission.load().recovery_skipped == skipped


def test_a_pool_that_is_empty_by_itself_is_looked_for_in_a_crowd(world, recover):
    tools = crowded(88)
    assert recover(state_of(world.principal("alice"), "rollback", asked=NOWHERE), tools).hits
    assert tools.admission.load().recovery_skipped == 0


def test_every_tier_asks_for_a_slot_of_recovery(world, recover):
    tools = crowded(96)
    state = recover(state_of(world.principal("alice"), "rollback", asked=NOWHERE), tools)
    assert not state.hits
    assert {it["error"] for it in state.events if it["event"] == TOLD} == {"OverloadedError"}
    assert tools.admission.load().refused == {Refusal.POOL_FULL: len(tiers(state))}
