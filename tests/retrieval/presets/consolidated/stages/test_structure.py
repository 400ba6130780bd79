"""Structural routing: when it looks, and what it leaves in the section."""

from dataclasses import replace

import pytest
from django.db import connection as database
from django.utils import timezone

from corecube.access import scope_for
from retrieval.engine.deadline import Deadline
from retrieval.engine.query import read_query
from retrieval.engine.state import RequestFilter, SearchState
from retrieval.errors import SearchTimeoutError
from retrieval.presets.consolidated.evidence.section_state import SectionState
from retrieval.presets.consolidated.stages import structure
from retrieval.presets.consolidated.stages.structure import RouteStructure, StructureConfig
from retrieval.stages.analyze import Analyze
from tests.retrieval.presets.consolidated.stages.sectioned import ask

STAGE = RouteStructure(StructureConfig())


@pytest.fixture
def state_of(world):
    for name, heading in (("rollback.md", "Staging"), ("queues.txt", "Production"), ("breach.md", "Breach of March")):
        with database.cursor() as cursor:
            cursor.execute(
                "UPDATE retrieval_chunk"
                " SET heading_path = %s, search = search || setweight(to_tsvector('english', %s), 'B')"
                " WHERE document_id = (SELECT id FROM retrieval_document WHERE external_id = %s)",
                [[heading], heading, name],
            )

    def made(name, text="staging in production"):
        state = SearchState(
            query=read_query(text, characters=500),
            scope=scope_for(world.principal(name)),
            deadline=Deadline.after(60.0),
            now=timezone.now(),
            top_k=10,
            parts={SectionState: SectionState(ask=ask())},
        )
        return Analyze("english")(state)

    return made


def paths(state):
    return [it.heading_path for it in state.part(SectionState).headings]


def test_headings_that_fit_are_left_in_the_section(state_of):
    after = STAGE(state_of("bob"))
    assert set(paths(after)) == {("Staging",), ("Production",)}
    assert after.events == ({"event": "headings_found", "headings": 2, "chunks": 2},)
    assert [note.code for note in after.notes] == ["structure"]


def test_no_more_than_the_configured_number_is_taken(state_of):
    assert len(paths(RouteStructure(StructureConfig(headings=1))(state_of("alice", "production staging breach")))) == 1


def test_a_hint_takes_its_place_and_nothing_in_scope_leaves_nothing_to_look_for(state_of):
    hinted = replace(state_of("bob"), filter=RequestFilter(hint="table"))
    assert STAGE(hinted) is hinted
    nobody = state_of("charlie")
    assert STAGE(nobody) is nobody
    unasked = replace(state_of("bob"), parts={})
    assert STAGE(unasked) is unasked


def test_headings_out_of_scope_are_not_found(state_of):
    assert paths(STAGE(state_of("alice", "breach of March"))) == [("Breach of March",)]
    assert paths(STAGE(state_of("bob", "breach of March"))) == []


def test_what_takes_too_long_is_done_without(state_of, monkeypatch):
    def too_slow(*_, **__):
        raise SearchTimeoutError

    monkeypatch.setattr(structure, "headings_for", too_slow)
    after = STAGE(state_of("bob"))
    assert paths(after) == []
    assert [(note.code, note.degraded) for note in after.notes] == [("structure_timeout", True)]
