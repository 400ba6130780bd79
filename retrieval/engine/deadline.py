"""How long a search may take, on a clock that tests can set."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Final

#: Share of the budget after which stages that a search can do without are skipped.
SOFT_SHARE: Final = 0.85
#: Share of the time left for legs that embedding the query may take.
EMBED_SHARE: Final = 0.6
#: Share of what is reserved that a read may take which a search can do nothing without: what follows takes time too.
_READ_SHARE_OF_RESERVE: Final = 2 / 3


@dataclass(frozen=True, slots=True)
class Deadline:
    """A time budget in seconds, started at `started` on `clock`."""

    budget_seconds: float
    started: float
    clock: Callable[[], float]
    #: Share of the budget that legs and models may use; the rest is reserved for making passages of what they found.
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
        """Seconds that a leg may take, at least 0: until 85 % of the budget, so that the rest can still run."""
        return max(0.0, self.soft_share * self.budget_seconds - self.elapsed_seconds)

    @property
    def embed_seconds(self) -> float:
        """Seconds that a model may take to embed the query, at least 0, so that words can still be searched for."""
        return self.embed_share * self.leg_seconds

    @property
    def read_seconds(self) -> float:
        """Seconds that a read may take which the search cannot do without, at least 0: until 95 % of the budget."""
        share = self.soft_share + _READ_SHARE_OF_RESERVE * (1 - self.soft_share)
        return max(0.0, share * self.budget_seconds - self.elapsed_seconds)

    @property
    def is_soft(self) -> bool:
        """Whether 85 % of the budget is spent, so that only what must run still runs."""
        return self.elapsed_seconds >= self.soft_share * self.budget_seconds

    @property
    def is_over(self) -> bool:
        """Whether the whole budget is spent."""
        return self.elapsed_seconds >= self.budget_seconds
