"""The current step of a worker, which its watchdog checks for progress."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from time import monotonic

from retrieval.ingest.run import SyncEndedError


class Doing(StrEnum):
    """What a worker does with items, as messages show it."""

    READING = "Reading it from its source"
    PREPARING = "Parsing and preparing it"
    EMBEDDING = "Embedding it"
    STORING = "Storing it"


@dataclass(frozen=True, slots=True)
class Step:
    """One operation on claimed items, with a time limit for progress."""

    doing: Doing
    #: Ids of the claimed items.
    claims: tuple[int, ...]
    seconds: float
    #: When it last made progress, by the monotonic clock.
    since: float


@dataclass(slots=True)
class Steps:
    """The current step of a worker. Written by the worker's threads, read by its watchdog's."""

    #: How long one step may take without progress.
    seconds: float
    #: Set once, to stop the worker.
    is_ended: bool = False
    _step: Step | None = field(default=None)

    def begin(self, doing: Doing, claims: Sequence[int], *, seconds: float = 0.0) -> None:
        """Begin a step, with a limit of `seconds` if that is more than usual; raise SyncEndedError after the end."""
        self.require_wanted()
        self._step = Step(doing, tuple(claims), max(self.seconds, seconds), monotonic())

    def progress(self) -> None:
        """Record progress of the step; raise SyncEndedError after the end."""
        self.require_wanted()
        step = self._step
        if step is not None:
            self._step = replace(step, since=monotonic())

    def rest(self) -> None:
        """Record that the worker has no item."""
        self._step = None

    def require_wanted(self) -> None:
        """Raise SyncEndedError after the end."""
        if self.is_ended:
            raise SyncEndedError

    def overdue(self) -> Step | None:
        """Return the step if it exceeds its time limit without progress."""
        step = self._step
        return step if step is not None and monotonic() - step.since > step.seconds else None
