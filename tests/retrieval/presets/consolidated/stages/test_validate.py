"""Validation: what is said of a scope, a vector and documents that are not there."""

import uuid
from dataclasses import replace

import pytest
from django.utils import timezone

from corecube.access import scope_for
from retrieval.engine.deadline import Deadline
from retrieval.engine.query import read_query
from retrieval.engine.state import RequestFilter, SearchState
from retrieval.models import Document
from retrieval.presets.consolidated.stages.validate import ValidateScope
from tests.fakes import HashEncoder


@pytest.fixture
def validated(world):
    def run(name, documents=(), *, has_vector=True):
        state = SearchState(
            query=read_query("rollback", characters=500),
            scope=scope_for(world.principal(name)),
            deadline=Deadline.after(60.0),
            now=timezone.now(),
            top_k=10,
            filter=RequestFilter(documents=frozenset(documents)),
            vector=HashEncoder().encode_query("rollback") if has_vector else None,
        )
        after = ValidateScope()(state)
        assert replace(after, notes=()) == replace(state, notes=())
        return [(note.code, note.text) for note in after.notes]

    return run


def test_all_is_well(validated):
    assert validated("bob") == []
    assert validated("bob", [Document.objects.get(external_id="queues.txt").pk]) == []


def test_hidden_documents_and_those_that_never_were_are_told_alike(world, validated):
    own = Document.objects.get(external_id="queues.txt").pk
    hidden = Document.objects.get(connection=world.vault).pk
    told = [validated("bob", [own, other]) for other in (hidden, uuid.uuid4())]
    assert told[0] == told[1] == [("documents_missing", "1 of the 2 requested documents were not found.")]
    assert validated("alice", [own, hidden]) == []


def test_the_filter_stays_where_none_of_its_documents_is_there(world, validated):
    # `validated` looks that nothing but the notes changed.
    assert validated("bob", [uuid.uuid4(), uuid.uuid4()]) == [
        ("documents_missing", "2 of the 2 requested documents were not found.")
    ]


def test_an_empty_scope_is_said_alone(validated):
    told = validated("charlie", [uuid.uuid4()], has_vector=False)
    assert [code for code, _ in told] == ["no_compartment"]


def test_without_a_vector_the_words_are_searched_for_alone(validated):
    assert [code for code, _ in validated("bob", has_vector=False)] == ["words_alone"]
