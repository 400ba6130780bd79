"""What one worker is at, step by step, so that its watchdog sees when it makes no progress."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from time import monotonic

from retrieval.ingest.run import SyncEndedError


class Doing(StrEnum):
    """What a worker does with items, as a message says it."""

    READING = "Reading it from its source"
    PREPARING = "Parsing and preparing it"
    EMBEDDING = "Embedding it"
    STORING = "Storing it"


@dataclass(frozen=True, slots=True)
class Step:
    """A piece of work on claimed items, which may take so long without progress."""

    doing: Doing
    #: Ids of the claims that it is about.
    claims: tuple[int, ...]
    seconds: float
    #: When it last made progress, by the monotonic clock.
    since: float


@dataclass(slots=True)
class Steps:
    """The step that a worker is at. Written by the worker's threads, read by its watchdog's."""

    #: What one step may take without progress.
    seconds: float
    is_ended: bool = False
    _step: Step | None = field(default=None)

    def begin(self, doing: Doing, claims: Sequence[int], *, seconds: float = 0.0) -> None:
        """Begin a step, which may take `seconds` where that is more than usual; raise SyncEndedError after the end."""
        self.require_wanted()
        self._step = Step(doing, tuple(claims), max(self.seconds, seconds), monotonic())

    def progress(self) -> None:
        """Note that the step goes on; raise SyncEndedError after the end."""
        self.require_wanted()
        step = self._step
        if step is not None:
            self._step = replace(step, since=monotonic())

    def rest(self) -> None:
        """Note that no item is in hand."""
        self._step = None

    def end(self) -> None:
        """Let the worker do nothing more."""
        self.is_ended = True

    def require_wanted(self) -> None:
        """Raise SyncEndedError after the end."""
        if self.is_ended:
            raise SyncEndedError

    def overdue(self) -> Step | None:
        """Return the step when it has made no progress for longer than it may."""
        step = self._step
        return step if step is not None and monotonic() - step.since > step.seconds else None
