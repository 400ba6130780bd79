"""Routing the question: what to search, if anything."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Final

from retrieval.engine.about import About, BaseStage, StageGroup
from retrieval.engine.state import Note, RequestFilter, SearchState
from retrieval.engine.tunables import Tunables, tunable
from retrieval.engine.types import MemoryType
from retrieval.errors import SearchTimeoutError
from retrieval.index.filters import holds_any, known_projects
from retrieval.presets.helix.router.question import Routing, TimeWindow, project_in, time_in
from retrieval.presets.helix.router.routes import Likeness, Router

#: Words of writing, deciding or happening: a time next to them is when that was done.
_DONE: Final = re.compile(
    r"\b(?:written|wrote|changed?|updated?|edited|added|created|published|posted|modified|uploaded|remember(?:ed)?|noted|"
    r"decided?|discuss(?:ed)?|agreed?|happen(?:ed)?|met|meetings?|incidents?|outages?)\b",
    re.IGNORECASE,
)
_ALL: Final = frozenset[MemoryType]()  #: A filter's value for all memory types.


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteConfig(Tunables, label="Router"):
    """When the router narrows or skips a search. A route applies only if it is clearly the nearest."""

    skip_from: float = tunable(
        0.4, low=0.0, high=1.01, unit="cosine", help="Minimum similarity to a no-search route for skipping the search."
    )
    skip_margin: float = tunable(
        0.3, low=0.0, high=2.0, unit="cosine", help="Minimum lead of a no-search route over every other route."
    )
    type_from: float = tunable(
        0.3,
        low=0.0,
        high=1.01,
        unit="cosine",
        help="Minimum similarity to a memory type's route for its weights to apply.",
    )
    filters_type: int = tunable(
        0, low=0, high=1, help="1 limits remembered items to the memory type of the question's route; 0 does not."
    )


@dataclass(frozen=True, slots=True)
class Route(BaseStage, name="route", needs={"query", "vector", "scope"}, gives={"routing"}):
    """Decide whether to search, and for which memory type, time and project; in doubt change nothing.

    A time or a project narrows the filter. One that leaves nothing is ignored.
    """

    config: RouteConfig
    #: Returns None while the routes are trained: then no search is skipped, and no type is known.
    router: Callable[[], Router | None]

    about: ClassVar[About] = About(
        "routed",
        "Decides from the question whether to search, and which memory type, time and project to use.",
        group=StageGroup.QUESTION,
        unit="",
        section="route",
        notes={
            "route_skip": "no search needed",
            "route_window": "time read from the question",
            "route_project": "project read from the question",
            "route_type": "memory type read from the question",
            "route_let_go": "time or project ignored",
        },
        badges=frozenset({"route_skip", "route_window", "route_project", "route_type", "route_let_go"}),
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with its routing and narrowed filter, and a note for each decision."""
        # Without a vector the model may be down: do not train the routes now.
        router = None if state.vector is None else self.router()
        likeness = Likeness({}) if router is None or state.vector is None else router.likeness(state.vector)
        shown = dict(list(likeness.by_route.items())[:4])
        skip = likeness.skip(minimum=self.config.skip_from, margin=self.config.skip_margin)
        if skip and not state.query.operators:
            matched = f"{skip} (similarity {likeness.by_route[skip]:.2f})"
            text = f"Nothing was searched: the question matches the route {matched}, which needs no search."
            finished = replace(state, is_finished=True, parts=state.parts_with(Routing(skip=True, likeness=shown)))
            return finished.noted(Note("route_skip", text))
        memory_type = likeness.memory_type(minimum=self.config.type_from)
        routing = Routing(memory_type=memory_type, likeness=shown)
        try:
            return self._narrowed(replace(state, parts=state.parts_with(routing)), routing)
        except SearchTimeoutError:
            note = Note("route_timeout", "Reading times and projects from the question timed out.", degraded=True)
            return replace(state, parts=state.parts_with(routing)).noted(note)

    def projects(self, state: SearchState) -> Sequence[str]:
        """Return the known projects; raise SearchTimeoutError, DatabaseUnavailableError."""
        return known_projects(state.scope, timeout_seconds=state.deadline.leg_seconds)

    def _narrowed(self, state: SearchState, routing: Routing) -> SearchState:
        text = state.query.for_models
        seconds = state.deadline.leg_seconds
        said = time_in(text, state.now)
        project = project_in(text, state.prefetched(self.name, partial(self.projects, state)))
        is_episodic = routing.memory_type is MemoryType.EPISODIC
        # Otherwise the time is part of the topic.
        if said is not None and not (said.is_past or is_episodic or _DONE.search(text)):
            said = None
        window = said.window if said else None
        of_type = self._filtered_types(state, routing)
        for one, types in dict.fromkeys(((window, of_type), (None, of_type), (window, _ALL), (None, _ALL))):
            kept = narrowed(state.filter, one, project, types)
            if kept == state.filter:
                break
            if holds_any(kept, scope=state.scope, timeout_seconds=seconds):
                found = replace(routing, window=one, project=project)
                of_types = (Note("route_type", f"Remembered items are limited to {it} memory.") for it in types)
                return replace(state, parts=state.parts_with(found), filter=kept).noted(*_notes(found), *of_types)
        if said or project:
            words = " and ".join(filter(None, (said.window.words if said else "", project)))
            text = f"Nothing in scope matches {words}; the entire scope was searched."
            return state.noted(Note("route_let_go", text))
        return state

    def _filtered_types(self, state: SearchState, routing: Routing) -> frozenset[MemoryType]:
        """Return the question's memory type if it is to filter and the request names none; else nothing."""
        found = routing.memory_type if self.config.filters_type and not state.filter.memory_types else None
        return frozenset({found}) if found else _ALL


def narrowed(
    kept: RequestFilter, window: TimeWindow | None, project: str, types: frozenset[MemoryType] = frozenset()
) -> RequestFilter:
    """Return the intersection of a filter with a time window, a project and memory types; no types for all."""
    window = window or TimeWindow()
    return replace(
        kept,
        since=max(filter(None, (kept.since, window.since)), default=None),
        until=min(filter(None, (kept.until, window.until)), default=None),
        project=kept.project or project,
        memory_types=kept.memory_types or types,
    )


def _notes(routing: Routing) -> tuple[Note, ...]:
    window, notes = routing.window, []
    if window is not None:
        since = f" from {window.since:%Y-%m-%d %H:%M}" if window.since else ""
        until = f" until {window.until:%Y-%m-%d %H:%M}" if window.until else ""
        words = f"\N{LEFT DOUBLE QUOTATION MARK}{window.words}\N{RIGHT DOUBLE QUOTATION MARK}"
        notes.append(Note("route_window", f"{words} narrows the time{since}{until}."))
    if routing.project:
        text = f"Remembered items are limited to the project {routing.project} and to those without a project."
        notes.append(Note("route_project", text))
    return tuple(notes)
