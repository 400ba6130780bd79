"""The orchestrator: phases in order, with a look at the deadline and at its soft end between them.

It sequences and decides nothing else. What ends a run early ends it at a phase's border, and the closing phases, which
only pack what may be shown, always run.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

from retrieval.engine.deadline import Deadline
from retrieval.engine.pipeline import Pipeline, Stage, late, marked, narrowed, run_stage
from retrieval.engine.state import Note, SearchState
from retrieval.errors import SearchTimeoutError


@dataclass(frozen=True, slots=True)
class EarlyEnd:
    """The stage before which a run ended, and why."""

    #: The stage that did not run.
    stage: str
    #: "deadline_exceeded_before_recovery" or "soft_cancelled_before_recovery".
    code: str

    @property
    def note(self) -> Note:
        """The note in the trace."""
        reason = "The deadline was exceeded" if self.code.startswith("deadline") else "The deadline was almost reached"
        return Note(self.code, f"{reason} before {self.stage}.", degraded=True)


def early_end(stage: str, deadline: Deadline) -> EarlyEnd | None:
    """Return why a run has to end before a stage; None if the stage may run."""
    if deadline.is_over:
        return EarlyEnd(stage, f"deadline_exceeded_before_{stage}")
    if deadline.is_soft:
        return EarlyEnd(stage, f"soft_cancelled_before_{stage}")
    return None


@dataclass(frozen=True, slots=True)
class Phase:
    """Stages that belong together; `is_closing` ones still run after a run was asked to end."""

    name: str
    stages: tuple[Stage, ...]
    is_closing: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class PhasedPipeline(Pipeline):
    """A pipeline whose stages are those of its phases, one phase after the other."""

    phases: tuple[Phase, ...] = ()

    @classmethod
    def of(cls, phases: Iterable[Phase]) -> Self:
        """Return the pipeline of these phases; those without stages are left out."""
        filled = tuple(phase for phase in phases if phase.stages)
        return cls(tuple(stage for phase in filled for stage in phase.stages), filled)

    def _narrowed(self, leg: str) -> Self:
        return self.of(replace(phase, stages=narrowed(phase.stages, leg)) for phase in self.phases)

    def inserted(self, place: int, stage: Stage) -> Self:
        """Return the pipeline with a stage more, in the phase of the stage before it."""
        phases, passed = [], 0
        for phase in self.phases:
            inside = place - passed
            is_here = 0 < inside <= len(phase.stages)
            passed += len(phase.stages)
            stages = (*phase.stages[:inside], stage, *phase.stages[inside:]) if is_here else phase.stages
            phases.append(replace(phase, stages=stages))
        return self.of(phases)

    def run(self, state: SearchState) -> SearchState:
        """Run phase after phase and return the last state, its trace complete.

        Where the time is up, or nearly, the run ends before a phase and says which; a closing phase still packs what
        was found. A phase in which the store takes longer than there is time ends with what it had, and so does the
        run. What it ends with before its access was checked again is left out.
        """
        ended = False
        for phase in self.phases:
            if ended and not phase.is_closing:
                continue
            end = early_end(phase.name, state.deadline)
            # However little time is left, a closing phase packs what may be shown.
            closes = phase.is_closing and (state.access_checked or not state.deadline.is_over)
            if end is not None and not closes:
                state, ended = marked(state, end.stage, end.note.code, end.note.text), True
                continue
            if state.deadline.is_over and not ended:
                state = late(state, phase.name)
            state, is_whole = _run(phase, _shown(state) if ended else state)
            ended = ended or not is_whole
        return _shown(state) if ended else state


def _shown(state: SearchState) -> SearchState:
    """Return the state without hits whose access was not checked again."""
    if state.access_checked or not state.hits:
        return state
    text = f"{len(state.hits)} hits whose access had not been checked again were left out."
    return marked(replace(state, hits=()), "access", "unchecked_hits", text)


def _run(phase: Phase, state: SearchState) -> tuple[SearchState, bool]:
    """Return the state after a phase, and whether it came to its end."""
    for stage in phase.stages:
        if stage.optional and state.deadline.is_soft and not phase.is_closing:
            state = marked(state, stage.name, f"skipped_{stage.name}", "Skipped to keep the deadline.")
            continue
        try:
            state = run_stage(stage, state)
        except SearchTimeoutError:
            text = f"The time was up within {stage.name}, in the phase {phase.name}."
            return marked(state, stage.name, f"timed_out_in_{stage.name}", text), False
    return state, True


def run_again(stages: Iterable[Stage], state: SearchState, *, within: str = "") -> SearchState:
    """Return what stages find for a state that begins anew: no rankings and no hits yet.

    Legs leave spans of their own in the trace, as parts of the stage that this is run `within`. Raises what the stages
    raise.
    """
    fresh = replace(state, rankings={}, hits=(), prefetch={}, access_checked=False)
    for stage in stages:
        fresh = stage(fresh)
    new = fresh.trace[len(state.trace) :]
    return replace(fresh, trace=(*state.trace, *(replace(span, parent=within or span.parent) for span in new)))
