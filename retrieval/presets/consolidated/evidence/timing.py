"""Ending a run between two stages, before something breaks it off inside of one."""

from dataclasses import dataclass

from retrieval.engine.deadline import Deadline
from retrieval.engine.state import Note


@dataclass(frozen=True, slots=True)
class EarlyEnd:
    """Where a run ended before its last stage, and why."""

    #: The stage that did not run.
    stage: str
    #: "deadline_exceeded_before_recovery" or "soft_cancelled_before_recovery".
    code: str

    @property
    def note(self) -> Note:
        """What the trace says of it."""
        reason = "The time was up" if self.code.startswith("deadline") else "Nearly all of the time was spent"
        return Note(self.code, f"{reason} before {self.stage}.", degraded=True)


def early_end(stage: str, deadline: Deadline) -> EarlyEnd | None:
    """Return that a run has to end before a stage, None where the stage may run.

    It is asked to end softly at 85 % of its time; a deadline that is over is named first.
    """
    if deadline.is_over:
        return EarlyEnd(stage, f"deadline_exceeded_before_{stage}")
    if deadline.is_soft:
        return EarlyEnd(stage, f"soft_cancelled_before_{stage}")
    return None
