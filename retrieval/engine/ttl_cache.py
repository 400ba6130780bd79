"""A cache of one second for values that every search reads. Free of Django."""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Final, Generic, TypeVar

SECONDS: Final = 1.0  #: Time after which a process sees a change of another one.

_T = TypeVar("_T")


@dataclass(slots=True)
class TtlCache(Generic[_T]):
    """Caches what a function returned for a second; thread-safe."""

    read: Callable[[], _T]
    clock: Callable[[], float] = monotonic
    _cached: tuple[float, _T] | None = field(default=None, repr=False)

    def get(self) -> _T:
        """Return the value, read again after a second; raise what `read` raises."""
        cached, now = self._cached, self.clock()
        if cached is None or now - cached[0] >= SECONDS:
            # Stamped before reading, so that a concurrent change is seen after a second at most.
            cached = self._cached = (now, self.read())
        return cached[1]

    def forget(self) -> None:
        """Clear the cache."""
        self._cached = None
