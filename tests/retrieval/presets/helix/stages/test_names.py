"""Reading the names in a question where what it needs is broken: the search goes on without them, and says so."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from django.db import connection

from corecube.access import scope_for
from corecube.errors import ConfigError
from retrieval.engine.deadline import Deadline
from retrieval.engine.query import read_query
from retrieval.engine.state import SearchState
from retrieval.index.reading import read
from retrieval.index.store import VectorIndex
from retrieval.ingest.sync import sync_connection
from retrieval.presets.helix.expansion import GraphConfig
from retrieval.presets.helix.pipeline import prefetch_question
from retrieval.presets.helix.stages.names import LinkEntities, QuestionNames
from retrieval.presets.helix.stages.route import Route, RouteConfig
from retrieval.search import runtime
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from retrieval.stages.analyze import Analyze
from retrieval.stages.dense import Dense, DenseConfig
from tests.fakes import HashEncoder

_QUESTION = "When did Guy of Tuscany leave?"


class HalfAnEncoder(HashEncoder):
    """An encoder that is set up for whole questions alone: what is left of them without their names is too much."""

    def encode_query(self, text):
        if "Guy" not in text:
            raise ConfigError("There is no model for the rest of a question.")
        return super().encode_query(text)


@pytest.fixture
def pages(governed):
    (governed.root / "runbooks" / "guy.md").write_text("# Guy of Tuscany\n\nThe count left at dawn.\n")
    sync_connection(governed.runbooks)
    return governed


@pytest.fixture
def asked(pages):
    return SearchState(
        query=read_query(_QUESTION, characters=500),
        scope=scope_for(pages.principal("bob")),
        deadline=Deadline.after(60.0),
        now=datetime(2026, 6, 1, tzinfo=UTC),
        top_k=10,
    )


def kill_own_server_process():
    """End the database's process that serves this thread, as an administrator would from another one."""
    with runtime.DatabaseThreads(1, thread_name_prefix="kill") as others, connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (process,) = cursor.fetchone()
        others.submit(_terminate, process).result()


def _terminate(process):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 10000)", [process])


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_ahead", [False, True])
def test_a_database_that_goes_leaves_no_names_and_a_note(asked, is_ahead):
    names = LinkEntities(GraphConfig(), HashEncoder(), "english")
    assert [name.text for name in names(asked).part(QuestionNames).known] == ["Guy of Tuscany"]
    try:
        kill_own_server_process()
        ahead = prefetch_question(
            Analyze("english"),
            Route(RouteConfig(), lambda: None),
            Dense(DenseConfig(), VectorIndex(1, 384)),
            names,
            runtime.InlineExecutor(),
        )
        begun = ahead.begun(asked) if is_ahead else asked
        after = names(begun)
    finally:
        connection.close()
    assert after.part(QuestionNames) == QuestionNames()
    assert [(note.code, note.degraded) for note in after.notes] == [("names_failed", True)]


def test_names_that_take_too_long_are_left_out_and_said_so(asked):
    late = replace(asked, deadline=Deadline.after(-1.0))
    names = LinkEntities(GraphConfig(), HashEncoder(), "english")
    after = names(replace(late, prefetch={"names": lambda: _slow(late)}))
    assert after.part(QuestionNames) == QuestionNames()
    assert [note.code for note in after.notes if note.degraded] == ["names_timeout"]


def _slow(state):
    """Read something that takes longer than a leg has."""
    return read("SELECT pg_sleep(5)", {}, timeout_seconds=state.deadline.leg_seconds)


def test_a_search_goes_on_without_names(pages):
    tools = replace(runtime.resources(), encoder=HalfAnEncoder(), parts={})
    request = SearchRequest(text=_QUESTION, preset="helix")
    outcome = search(request, principal=pages.principal("bob"), resources=tools)
    assert "names_failed" in outcome.state.degraded
    assert [hit.chunk.title for hit in outcome.hits][:1] == ["Guy of Tuscany"]
    (span,) = [span for span in outcome.trace if span.stage == "names"]
    assert (span.parent, [note.code for note in span.notes]) == ("legs", ["names_failed"])
