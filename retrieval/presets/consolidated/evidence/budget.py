"""A time budget for several consecutive searches."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Final

#: Minimum share: with less a search finds nothing, so the first searches get it rather than all too little.
MIN_SECONDS: Final = 0.25


@dataclass(frozen=True, slots=True)
class Budget:
    """Seconds for all searches together, from `started`; None for no limit."""

    seconds: float | None
    started: float
    clock: Callable[[], float] = perf_counter

    @property
    def left(self) -> float | None:
        """Remaining seconds, at least 0; None without a limit."""
        return None if self.seconds is None else max(0.0, self.started + self.seconds - self.clock())

    def share(self, waiting: int) -> float | None:
        """Return the seconds for the next of `waiting` searches, 1 or more; None without a limit.

        Each gets an equal share of the remaining time, but at least the minimum while it lasts.
        """
        left = self.left
        return None if left is None else min(left, max(MIN_SECONDS, left / waiting))
