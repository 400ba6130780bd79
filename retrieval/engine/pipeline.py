"""Running stages over a search state, and checking their wiring at construction."""

import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from time import perf_counter
from typing import ClassVar, Final, Protocol, Self, runtime_checkable

from corecube import tracing
from corecube.errors import CoreCubeError
from retrieval.engine.about import About, StageGroup
from retrieval.engine.state import Note, SearchState, Span
from retrieval.errors import PipelineError, StageError, UnknownModeError

logger = logging.getLogger(__name__)


#: Called before each stage with its place from 0, the number of stages and its label; what it raises ends the search.
Watch = Callable[[int, int, str], None]

HYBRID: Final = "hybrid"  #: The mode in which every leg runs. Any other mode is the name of the only leg that does.


class Stage(Protocol):
    """One step of a search: a pure function over the state, with what it needs and what it gives."""

    @property
    def name(self) -> str:
        """The stage's name in traces and pages."""

    @property
    def needs(self) -> frozenset[str]:
        """Fields of the state that earlier stages must have given."""

    @property
    def gives(self) -> frozenset[str]:
        """Fields of the state that this stage fills."""

    @property
    def optional(self) -> bool:
        """Whether the search can do without it when time runs short."""

    @property
    def about(self) -> About:
        """Its description for people."""

    def __call__(self, state: SearchState) -> SearchState:
        """Return the changed state."""


@runtime_checkable
class RunsLegs(Protocol):
    """A stage that runs legs, or holds stages that do."""

    def only(self, leg: str) -> Stage:
        """Return the same with only the leg of this name."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Stages in order. Raises PipelineError at construction when one needs what none before it gives."""

    stages: tuple[Stage, ...]

    def __post_init__(self) -> None:
        given = {"query", "scope"}
        for stage in self.stages:
            if missing := stage.needs - given:
                raise PipelineError(f"{stage.name} needs {sorted(missing)} first")
            given |= stage.gives

    def __repr__(self) -> str:
        return " >> ".join(str(stage) if isinstance(stage, Legs) else stage.name for stage in self.stages)

    @property
    def legs(self) -> tuple[str, ...]:
        """The names of the legs that run."""
        return tuple(leg.name for stage in self.stages if isinstance(stage, Legs) for leg in stage.legs)

    def in_mode(self, mode: str) -> Self:
        """Return the pipeline unchanged for "hybrid", else with only the leg that the mode names."""
        return self if mode == HYBRID else self.only(mode)

    def only(self, leg: str) -> Self:
        """Return the same stages with only this leg; raise UnknownModeError, which lists the modes."""
        if leg not in self.legs:
            raise UnknownModeError(f"Unknown mode {leg!r}. Valid modes: {', '.join((HYBRID, *self.legs))}.")
        return self._narrowed(leg)

    def _narrowed(self, leg: str) -> Self:
        return replace(self, stages=narrowed(self.stages, leg))

    def inserted(self, place: int, stage: Stage) -> Self:
        """Return the pipeline with a stage inserted at this index, at least 1."""
        return replace(self, stages=(*self.stages[:place], stage, *self.stages[place:]))

    def run(self, state: SearchState, watch: Watch | None = None) -> SearchState:
        """Run every stage and return the last state with its trace.

        The deadline is checked between stages. Past its soft share optional stages are skipped. Past the deadline the
        search stops; hits that were checked against the scope are still packed. Each leaves a degraded note. A stage
        can end the search without hits. Raises StageError, or the CoreCubeError that a stage or `watch` raised.
        """
        is_late = False
        for place, stage in enumerate(self.stages):
            if state.is_finished:
                return state
            if watch:
                watch(place, len(self.stages), stage.about.label)
            if state.deadline.is_over and not state.access_checked:
                return marked(state, stage.name, f"deadline_exceeded_before_{stage.name}", "The deadline was exceeded.")
            if state.deadline.is_over and not is_late:
                state, is_late = late(state, stage.name), True
            if stage.optional and state.deadline.is_soft:
                state = marked(state, stage.name, f"skipped_{stage.name}", "Skipped to meet the deadline.")
                continue
            state = run_stage(stage, state)
        return state


def narrowed(stages: Iterable[Stage], leg: str) -> tuple[Stage, ...]:
    """Return the stages limited to the leg of this name."""
    return tuple(stage.only(leg) if isinstance(stage, RunsLegs) else stage for stage in stages)


def run_stage(stage: Stage, state: SearchState, clock: Callable[[], float] = perf_counter) -> SearchState:
    """Run one stage and append its span."""
    started = clock()
    try:
        with tracing.span(f"stage {stage.name}", corecube__hits_in=len(state.hits)) as traced:
            after = stage(state)
            traced.set(corecube__hits_out=len(after.hits))
    except CoreCubeError:
        raise
    except Exception as error:
        raise StageError(stage.name) from error
    # What it left: its passages, its rankings if it runs legs, else the hits.
    left = after.hits
    if "passages" in stage.gives:
        left = tuple(passage.hit for passage in after.passages)
    elif new := [ranking for leg, ranking in after.rankings.items() if leg not in state.rankings]:
        left = tuple(hit for ranking in new for hit in ranking)
    span = Span(
        stage=stage.name,
        seconds=clock() - started,
        hits_in=len(state.hits),
        hits_out=len(left),
        drops=after.drops[len(state.drops) :],
        notes=after.notes[len(state.notes) :],
        events=after.events[len(state.events) :],
        gives=stage.gives,
        left=left,
    )
    return replace(after, trace=(*after.trace, span))


def run_alone(stage: Stage, state: SearchState) -> SearchState:
    """Run one stage and return the state with only what it adds: rankings, events, drops, notes and a span."""
    return run_stage(stage, replace(state, rankings={}, events=(), drops=(), notes=(), trace=()))


def marked(state: SearchState, stage: str, code: str, text: str) -> SearchState:
    """Return the state with a span for a stage that did not run, and a degraded note in it."""
    note = Note(code, text, degraded=True)
    count = len(state.hits)
    span = Span(stage=stage, seconds=0.0, hits_in=count, hits_out=count, notes=(note,), left=state.hits)
    return replace(state, notes=(*state.notes, note), trace=(*state.trace, span))


def late(state: SearchState, stage: str) -> SearchState:
    """Return the state with a degraded note that the deadline was exceeded before a stage that still runs."""
    return marked(
        state, stage, f"late_from_{stage}", f"The deadline was exceeded before {stage}; the hits are still packed."
    )


@dataclass(frozen=True, slots=True)
class Legs:
    """Runs first-stage legs in parallel on the same state and merges their rankings.

    `parallel` are stages that need nothing from the legs and run in parallel with them.
    """

    legs: tuple[Stage, ...]
    executor: Executor
    parallel: tuple[Stage, ...] = ()

    name: ClassVar[str] = "legs"
    optional: ClassVar[bool] = False
    about: ClassVar[About] = About("legs", "Runs the first-stage legs in parallel.", group=StageGroup.FIND)

    def __str__(self) -> str:
        return f"({' | '.join(leg.name for leg in self.legs)})"

    @property
    def needs(self) -> frozenset[str]:
        """Everything that any leg needs."""
        return frozenset[str]().union(*(leg.needs for leg in (*self.legs, *self.parallel)))

    @property
    def gives(self) -> frozenset[str]:
        """The rankings, and what the stages in `parallel` give."""
        return frozenset({"rankings"}).union(*(stage.gives for stage in self.parallel))

    def only(self, leg: str) -> "Legs":
        """Return the same with only the leg of this name."""
        return replace(self, legs=tuple(it for it in self.legs if it.name == leg))

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with every leg's ranking; legs that were prefetched do not run again."""
        ahead = [leg for leg in self.legs if leg.name in state.prefetch]

        def run(stages: Iterable[Stage]) -> dict[str, SearchState]:
            return {stage.name: run_alone(stage, state) for stage in stages}

        here, *beside = self._threads([leg for leg in self.legs if leg not in ahead])
        others = [self.executor.submit(run, stages) for stages in beside]
        found = run(here)
        for other in others:
            found |= other.result()
        found |= {leg.name: state.prefetched(leg.name, partial(run_alone, leg, state)) for leg in ahead}
        afters = [found[stage.name] for stage in (*self.legs, *self.parallel)]
        return replace(
            state,
            # The legs run again for other texts.
            prefetch={name: it for name, it in state.prefetch.items() if name not in found},
            parts=dict(chain(state.parts.items(), *(found[stage.name].parts.items() for stage in self.parallel))),
            rankings=dict(chain(state.rankings.items(), *(after.rankings.items() for after in afters))),
            events=(*state.events, *chain.from_iterable(after.events for after in afters)),
            drops=(*state.drops, *chain.from_iterable(after.drops for after in afters)),
            trace=(*state.trace, *(replace(span, parent=self.name) for after in afters for span in after.trace)),
        )

    def _threads(self, legs: Sequence[Stage]) -> list[list[Stage]]:
        """Return the stages of each thread, first the caller's. `parallel` runs after the last leg.

        A separate thread would take processor time from the first leg, which is the slowest.
        """
        threads = [[leg] for leg in legs] or [[]]
        if self.parallel:
            threads += [[]] if len(threads) == 1 else []
            threads[-1] += self.parallel
        return threads
