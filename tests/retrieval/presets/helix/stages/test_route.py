"""What the router makes of questions, with routes that stand at right angles, on the small world."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corecube.access import scope_for
from retrieval.answers.memory.items import Item, remember
from retrieval.engine.deadline import Deadline
from retrieval.engine.query import read_query
from retrieval.engine.state import RequestFilter, SearchState
from retrieval.engine.types import MemoryType
from retrieval.models import Document
from retrieval.presets.helix.router.question import Routing, TimeWindow
from retrieval.presets.helix.router.routes import Router
from retrieval.presets.helix.stages.route import Route, RouteConfig, narrowed

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)
AXES = {"greeting": 0, "episodic": 1, "search": 2}
ROUTER = Router.trained({route: np.eye(3, dtype=np.float32)[place][None] for route, place in AXES.items()})


@pytest.fixture
def asked(world):
    """Return a function that routes a question of Bob's, whose vector is that of a route's example."""

    def ask(text, *, like="search", router=ROUTER, filters_type=0, **more):
        state = SearchState(
            query=read_query(text, characters=500),
            scope=scope_for(world.principal("bob")),
            deadline=Deadline.after(5.0),
            now=NOW,
            top_k=10,
            vector=np.eye(3, dtype=np.float32)[AXES[like]],
        )
        return Route(RouteConfig(filters_type=filters_type), lambda: router)(replace(state, **more))

    return ask


def codes(state):
    return [note.code for note in state.notes]


def test_a_greeting_is_not_searched_for_and_says_why(asked):
    state = asked("Hello there", like="greeting")
    assert (state.part(Routing).skip, codes(state), state.degraded) == (True, ["route_skip"], ())
    assert (
        state.notes[0].text
        == "Nothing was searched: the question matches the route greeting (similarity 1.00), which needs no search."
    )


def test_where_in_doubt_it_is_searched(asked):
    assert not asked("Hello there").part(Routing).skip
    assert not asked("Hello there", like="greeting", router=None).part(Routing).skip
    assert not asked('"Hello there"', like="greeting").part(Routing).skip
    assert not asked("Hello there", like="greeting", vector=None).part(Routing).skip


def test_the_nearest_type_is_told(asked):
    state = asked("Who was in the meeting?", like="episodic")
    assert state.part(Routing).memory_type is MemoryType.EPISODIC
    assert asked("Who was in the meeting?").part(Routing).memory_type is None
    assert next(iter(state.part(Routing).likeness)) == "episodic"


def test_the_nearest_type_filters_only_if_it_is_set_to_and_the_request_names_none(asked):
    state = asked("Who was in the meeting?", like="episodic", filters_type=1)
    assert state.filter == RequestFilter(memory_types=frozenset({MemoryType.EPISODIC}))
    assert (codes(state), state.notes[0].text) == (["route_type"], "Remembered items are limited to episodic memory.")
    assert asked("Who was in the meeting?", like="episodic").filter == RequestFilter()
    wanted = RequestFilter(memory_types=frozenset({MemoryType.CODE}))
    assert asked("Who was in the meeting?", like="episodic", filters_type=1, filter=wanted).filter == wanted


class TestTimes:
    @pytest.fixture(autouse=True)
    def dated(self, world):
        Document.objects.update(modified_at=NOW - timedelta(days=400))
        Document.objects.filter(connection=world.runbooks, external_id="queues.txt").update(
            modified_at=NOW - timedelta(days=3)
        )

    def test_what_is_surely_past_narrows(self, asked):
        state = asked("what about the queue since Monday")
        assert state.filter == RequestFilter(since=datetime(2026, 11, 16, tzinfo=UTC))
        assert state.part(Routing).window.words == "since Monday"
        assert codes(state) == ["route_window"]

    def test_a_year_narrows_only_what_was_written_or_happened_then(self, asked):
        year = RequestFilter(since=datetime(2026, 1, 1, tzinfo=UTC), until=datetime(2027, 1, 1, tzinfo=UTC))
        assert asked("Which film won in 2026?").filter == RequestFilter()
        assert asked("What was decided in 2026?").filter == year
        assert asked("Who was there in 2026?", like="episodic").filter == year

    def test_a_time_that_leaves_nothing_is_let_go(self, asked):
        Document.objects.update(modified_at=NOW - timedelta(days=400))
        state = asked("what about the queue since Monday")
        assert (state.filter, state.part(Routing).window, codes(state)) == (RequestFilter(), None, ["route_let_go"])

    def test_documents_outside_the_scope_do_not_keep_a_time(self, asked, world):
        Document.objects.update(modified_at=NOW - timedelta(days=400))
        Document.objects.filter(connection=world.vault).update(modified_at=NOW)
        assert codes(asked("what about the queue since Monday")) == ["route_let_go"]


class TestProjects:
    @pytest.fixture(autouse=True)
    def remembered(self, world):
        for name, project in (("bob", "atlas-2"), ("alice", "zebra-9")):
            remember(Item(text=f"The pump of {project}.", project=project), principal=world.principal(name))

    def test_a_project_of_the_own_memory_narrows(self, asked):
        state = asked("why does atlas-2 fail")
        assert (state.filter.project, state.part(Routing).project, codes(state)) == (
            "atlas-2",
            "atlas-2",
            ["route_project"],
        )

    def test_nobody_elses_project_is_known(self, asked):
        state = asked("why does zebra-9 fail")
        assert (state.filter, state.notes) == (RequestFilter(), ())

    def test_the_requests_own_project_stays(self, asked):
        assert asked("why does atlas-2 fail", filter=RequestFilter(project="other")).filter.project == "other"


_MOMENTS = st.none() | st.integers(-2000, 2000).map(lambda days: NOW + timedelta(days=days))


@given(own=st.tuples(_MOMENTS, _MOMENTS), said=st.tuples(_MOMENTS, _MOMENTS), moment=_MOMENTS.filter(bool))
def test_a_window_never_widens_what_the_request_left(own, said, moment):
    def holds(since, until):
        return (since is None or since <= moment) and (until is None or moment <= until)

    kept = narrowed(RequestFilter(since=own[0], until=own[1]), TimeWindow(*said), "")
    assert holds(kept.since, kept.until) == (holds(*own) and holds(*said))
