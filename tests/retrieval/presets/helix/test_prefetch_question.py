"""Reading a question's terms, projects and names while it is embedded."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from corecube.access import scope_for
from corecube.errors import DatabaseUnavailableError
from retrieval.answers.memory.items import Item, remember
from retrieval.engine.deadline import Deadline
from retrieval.engine.query import read_query
from retrieval.engine.state import SearchState
from retrieval.engine.types import QueryTerms
from retrieval.errors import SearchTimeoutError
from retrieval.index.reading import read
from retrieval.index.store import VectorIndex
from retrieval.presets.helix.expansion import GraphConfig
from retrieval.presets.helix.pipeline import prefetch_question
from retrieval.presets.helix.router.question import Routing
from retrieval.presets.helix.stages.names import LinkEntities, QuestionNames
from retrieval.presets.helix.stages.route import Route, RouteConfig
from retrieval.search import runtime
from retrieval.stages.analyze import Analyze
from retrieval.stages.dense import Dense, DenseConfig
from tests.fakes import HashEncoder


class SlowAnalyze(Analyze):
    """Takes longer than it may."""

    def read(self, state):
        return read("SELECT pg_sleep(5)", {}, timeout_seconds=state.deadline.read_seconds / 1000)


class SlowRoute(Route):
    """Takes longer than it may to read the projects."""

    def projects(self, state):
        return read("SELECT pg_sleep(5)", {}, timeout_seconds=state.deadline.leg_seconds / 1000)


@pytest.fixture
def stages():
    return Analyze("english"), Route(RouteConfig(), lambda: None), LinkEntities(GraphConfig(), HashEncoder(), "english")


@pytest.fixture
def asked(world):
    return SearchState(
        query=read_query("rolling back the staging database", characters=500),
        scope=scope_for(world.principal("bob")),
        deadline=Deadline.after(60.0),
        now=datetime(2026, 6, 1, tzinfo=UTC),
        top_k=10,
    )


def begun(stages, state, executor=None):
    analyze, route, names = stages
    dense = Dense(DenseConfig(), VectorIndex(1, 384))
    return prefetch_question(analyze, route, dense, names, executor or runtime.InlineExecutor()).begun(state)


def after_all(stages, state):
    """Return the state after the stages that wait for the terms, the projects and the names."""
    analyze, route, names = stages
    return names(route(analyze(state)))


def test_it_reads_what_the_stages_would_read_by_themselves(stages, asked):
    ahead = begun(stages, asked)
    assert ahead.terms == QueryTerms()
    after, alone = after_all(stages, ahead), after_all(stages, asked)
    assert after.terms == alone.terms
    assert (after.part(QuestionNames).known, after.part(QuestionNames).rest) == (
        alone.part(QuestionNames).known,
        alone.part(QuestionNames).rest,
    )
    assert [name.text for name in after.part(QuestionNames).known] == ["Rolling back"]
    assert {term.lexeme for term in after.terms.terms} >= {"stage", "databas"}


@pytest.mark.django_db(transaction=True)
def test_the_terms_are_there_before_the_names_are(stages, asked):
    with runtime.DatabaseThreads(1, thread_name_prefix="ahead") as threads:
        ahead = begun(stages, asked, threads)
        assert ahead.prefetch["analyze"]() == after_all(stages, asked).terms
        assert ahead.prefetch["names"]().known == after_all(stages, asked).part(QuestionNames).known


def test_terms_that_were_read_ahead_are_not_those_of_another_text(stages, asked):
    analyze, *_ = stages
    after = analyze(begun(stages, asked))
    other = analyze(replace(after, query=read_query("queues", characters=500)))
    assert {term.lexeme for term in other.terms.terms} == {"queue"}


def test_without_terms_there_is_no_search_and_without_names_there_is_one(stages, asked):
    _, route, names = stages
    slow = SlowAnalyze("english")
    ahead = begun((slow, route, names), asked)
    with pytest.raises(SearchTimeoutError):
        slow(ahead)
    assert [note.code for note in names(ahead).notes] == ["names_timeout"]
    assert [note.code for note in route(ahead).notes] == ["route_timeout"]


def test_projects_that_take_too_long_leave_the_names(stages, asked):
    analyze, route, names = stages
    slow = SlowRoute(route.config, route.router)
    ahead = begun((analyze, slow, names), asked)
    assert [note.code for note in slow(analyze(ahead)).notes] == ["route_timeout"]
    assert [name.text for name in names(ahead).part(QuestionNames).known] == ["Rolling back"]


@pytest.fixture
def of_a_project(asked, world):
    """A question that names a project of Bob's memory."""
    bob = world.principal("bob")
    remember(Item(text="The pump of atlas-2.", project="atlas-2"), principal=bob)
    return replace(asked, query=read_query("why does atlas-2 fail", characters=500), scope=scope_for(bob))


def test_a_project_that_was_read_ahead_narrows(stages, of_a_project):
    ahead = begun(stages, of_a_project)
    assert ahead.prefetch["route"]() == ["atlas-2"]
    assert after_all(stages, ahead).part(Routing) == after_all(stages, of_a_project).part(Routing)
    assert after_all(stages, ahead).part(Routing).project == "atlas-2"


def test_without_a_connection_for_the_other_thread_this_one_reads(stages, of_a_project):
    def unavailable():
        raise DatabaseUnavailableError

    state = after_all(stages, replace(of_a_project, prefetch={"analyze": unavailable, "route": unavailable}))
    assert {term.lexeme for term in state.terms.terms} >= {"fail"}
    assert state.part(Routing).project == "atlas-2"
