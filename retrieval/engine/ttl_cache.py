"""Values that every search reads and that people seldom change: read anew once a second. Free of Django."""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Final, Generic, TypeVar

#: How long a process may go by what another one has changed.
SECONDS: Final = 1.0

_T = TypeVar("_T")


@dataclass(slots=True)
class TtlCache(Generic[_T]):
    """What a function returned within the last second; safe to use from several threads."""

    read: Callable[[], _T]
    clock: Callable[[], float] = monotonic
    #: When it was read, and what.
    _kept: tuple[float, _T] | None = field(default=None, repr=False)

    def get(self) -> _T:
        """Return the value, read anew when it is a second old; raise what reading raises."""
        kept, now = self._kept, self.clock()
        if kept is None or now - kept[0] >= SECONDS:
            # Of before it was read: what changes meanwhile is seen a second later at most.
            kept = self._kept = (now, self.read())
        return kept[1]

    def forget(self) -> None:
        """Have the next `get` read it."""
        self._kept = None
