"""Ending a run between two stages, before something breaks it off inside of one."""

from dataclasses import dataclass
from threading import Event

from retrieval.deadline import Deadline
from retrieval.types import Note


class SoftCancel:
    """A flag that asks a run to end at the next stage; polled, never waited for. Once up it stays up.

    It goes up by itself at 85 % of the hard limit, and when somebody raises it. Safe to share between threads.
    """

    def __init__(self, hard_limit: Deadline) -> None:
        self._hard_limit = hard_limit
        self._raised = Event()

    def ask_to_end(self) -> None:
        """Put the flag up."""
        self._raised.set()

    @property
    def is_up(self) -> bool:
        """Whether the run is to end."""
        if not self._raised.is_set() and self._hard_limit.is_soft:
            self._raised.set()
        return self._raised.is_set()

    @property
    def seconds_until_up(self) -> float:
        """Seconds until it goes up by itself, at least 0: what a stage's own work may take."""
        return 0.0 if self.is_up else self._hard_limit.leg_seconds


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


def early_end(stage: str, *, deadline: Deadline, soft_cancel: SoftCancel) -> EarlyEnd | None:
    """Return that a run has to end before a stage, None where the stage may run. The deadline is named first."""
    if deadline.is_over:
        return EarlyEnd(stage, f"deadline_exceeded_before_{stage}")
    if soft_cancel.is_up:
        return EarlyEnd(stage, f"soft_cancelled_before_{stage}")
    return None
