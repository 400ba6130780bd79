"""The deadline of a search."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Final

SOFT_SHARE: Final = 0.85  #: Share of the budget after which stages that a search can do without are skipped.
EMBED_SHARE: Final = 0.6  #: Share of the time left for legs that embedding the query may take.
_READ_SHARE_OF_RESERVE: Final = 2 / 3  #: Share of the reserve that an indispensable read may take.


@dataclass(frozen=True, slots=True)
class Deadline:
    """A time budget in seconds, started at `started` on `clock`."""

    budget_seconds: float
    started: float
    clock: Callable[[], float]
    #: Share of the budget for legs and models; the rest is reserved for packing passages.
    soft_share: float = SOFT_SHARE
    embed_share: float = EMBED_SHARE

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float] = perf_counter) -> "Deadline":
        """Return a deadline this many seconds from now."""
        return cls(seconds, clock(), clock)

    @property
    def elapsed_seconds(self) -> float:
        """Seconds since the start."""
        return self.clock() - self.started

    @property
    def remaining_seconds(self) -> float:
        """Seconds left, at least 0."""
        return max(0.0, self.budget_seconds - self.elapsed_seconds)

    @property
    def leg_seconds(self) -> float:
        """Seconds left for a leg, at least 0: until 85 % of the budget."""
        return max(0.0, self.soft_share * self.budget_seconds - self.elapsed_seconds)

    @property
    def embed_seconds(self) -> float:
        """Seconds left to embed the query, at least 0, so that text can still be searched."""
        return self.embed_share * self.leg_seconds

    @property
    def read_seconds(self) -> float:
        """Seconds left for an indispensable read, at least 0: until 95 % of the budget."""
        share = self.soft_share + _READ_SHARE_OF_RESERVE * (1 - self.soft_share)
        return max(0.0, share * self.budget_seconds - self.elapsed_seconds)

    @property
    def is_soft(self) -> bool:
        """Whether 85 % of the budget is spent, so that optional stages are skipped."""
        return self.elapsed_seconds >= self.soft_share * self.budget_seconds

    @property
    def is_over(self) -> bool:
        """Whether the budget is spent."""
        return self.elapsed_seconds >= self.budget_seconds
