"""One budget of time for several searches, one after the other."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Final

#: In less than this a search finds nothing: the first ones get it rather than all of them too little.
MIN_SECONDS: Final = 0.25


@dataclass(frozen=True, slots=True)
class Budget:
    """Seconds for all searches together, counted from when it started; None for no limit."""

    seconds: float | None
    started: float
    clock: Callable[[], float] = perf_counter

    @property
    def left(self) -> float | None:
        """Seconds that are left, at least 0; None without a limit."""
        return None if self.seconds is None else max(0.0, self.started + self.seconds - self.clock())

    def share(self, waiting: int) -> float | None:
        """Return the seconds for the next of `waiting` searches, 1 or more; None without a limit.

        Each gets an equal share of what is left, so what one leaves over goes to those behind it. A share is at least
        what a search can use, as long as there is so much.
        """
        left = self.left
        return None if left is None else min(left, max(MIN_SECONDS, left / waiting))
