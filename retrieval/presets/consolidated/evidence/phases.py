"""Running a pipeline in phases, with a deadline check between them.

A run that ends early ends between two phases; the closing phases, which only pack checked hits, always run.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

from retrieval.encoders.breaker import CircuitBreaker
from retrieval.engine.deadline import Deadline
from retrieval.engine.pipeline import Pipeline, Stage, Watch, late, marked, narrowed, run_stage
from retrieval.engine.state import Note, SearchState
from retrieval.errors import SearchTimeoutError, StorePausedError
from retrieval.presets.consolidated.evidence.store_guard import guarded


def early_end(stage: str, deadline: Deadline) -> Note | None:
    """Return why a run has to end before a stage; None if the stage may run."""
    if deadline.is_over:
        return Note(f"deadline_exceeded_before_{stage}", f"The deadline was exceeded before {stage}.", degraded=True)
    if deadline.is_soft:
        return Note(f"soft_cancelled_before_{stage}", f"The deadline was almost reached before {stage}.", degraded=True)
    return None


@dataclass(frozen=True, slots=True)
class Phase:
    """A group of stages; `is_closing` ones run even after an early end."""

    name: str
    stages: tuple[Stage, ...]
    is_closing: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class PhasedPipeline(Pipeline):
    """A pipeline made of phases."""

    phases: tuple[Phase, ...] = ()
    store: CircuitBreaker | None = None  #: Counts the searches that the store failed; None counts none.

    @classmethod
    def of(cls, phases: Iterable[Phase], store: CircuitBreaker | None = None) -> Self:
        """Return the pipeline of these phases, without empty ones."""
        filled = tuple(phase for phase in phases if phase.stages)
        return cls(tuple(stage for phase in filled for stage in phase.stages), filled, store)

    def _narrowed(self, leg: str) -> Self:
        return self.of((replace(phase, stages=narrowed(phase.stages, leg)) for phase in self.phases), self.store)

    def inserted(self, place: int, stage: Stage) -> Self:
        """Return the pipeline with a stage inserted, in the phase of the stage before it."""
        phases, passed = [], 0
        for phase in self.phases:
            inside = place - passed
            is_here = 0 < inside <= len(phase.stages)
            passed += len(phase.stages)
            stages = (*phase.stages[:inside], stage, *phase.stages[inside:]) if is_here else phase.stages
            phases.append(replace(phase, stages=stages))
        return self.of(phases, self.store)

    def run(self, state: SearchState, watch: Watch | None = None) -> SearchState:
        """Run phase after phase and return the last state, with its trace.

        `watch` is called before each phase.

        Past the deadline, or its soft share, the run ends before a phase with a note; a closing phase still packs the
        hits. A phase in which the store times out or is paused ends with its current hits, and so does the run. Hits
        without a second access check are dropped.
        """
        run = partial(self._run_phases, watch=watch)
        return run(state) if self.store is None else guarded(run, state, self.store)

    def _run_phases(self, state: SearchState, watch: Watch | None) -> SearchState:
        ended = False
        for place, phase in enumerate(self.phases):
            if watch:
                watch(place, len(self.phases), phase.name)
            if ended and not phase.is_closing:
                continue
            end = early_end(phase.name, state.deadline)
            # However little time is left, a closing phase packs what may be shown.
            closes = phase.is_closing and (state.access_checked or not state.deadline.is_over)
            if end is not None and not closes:
                state, ended = marked(state, phase.name, end.code, end.text), True
                continue
            if state.deadline.is_over and not ended:
                state = late(state, phase.name)
            state, is_whole = _run(phase, _shown(state) if ended else state)
            ended = ended or not is_whole
        return _shown(state) if ended else state


def _shown(state: SearchState) -> SearchState:
    if state.access_checked or not state.hits:
        return state
    text = f"{len(state.hits)} hits without a second access check were dropped."
    return marked(replace(state, hits=()), "access", "unchecked_hits", text)


def _run(phase: Phase, state: SearchState) -> tuple[SearchState, bool]:
    for stage in phase.stages:
        if stage.optional and state.deadline.is_soft and not phase.is_closing:
            state = marked(state, stage.name, f"skipped_{stage.name}", "Skipped to meet the deadline.")
            continue
        try:
            state = run_stage(stage, state)
        except SearchTimeoutError:
            text = f"{stage.name} timed out, in the phase {phase.name}."
            return marked(state, stage.name, f"timed_out_in_{stage.name}", text), False
        except StorePausedError as error:
            return marked(state, stage.name, error.code, str(error)), False
    return state, True


def run_again(stages: Iterable[Stage], state: SearchState, *, within: str = "") -> SearchState:
    """Return the result of stages for the state without rankings and hits.

    The spans of legs become children of the stage `within`. Raises what the stages raise.
    """
    fresh = replace(state, rankings={}, hits=(), prefetch={}, access_checked=False)
    for stage in stages:
        fresh = stage(fresh)
    new = fresh.trace[len(state.trace) :]
    return replace(fresh, trace=(*state.trace, *(replace(span, parent=within or span.parent) for span in new)))
