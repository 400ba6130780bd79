"""Ending a run between two stages, before a timeout interrupts one."""

from dataclasses import dataclass

from retrieval.engine.deadline import Deadline
from retrieval.engine.state import Note


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
