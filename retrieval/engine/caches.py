"""Caches: for one second, for values that every search reads, and of the most recently used values. Free of Django."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Lock
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


@dataclass(slots=True, eq=False)
class RecentCache(Generic[_T]):
    """The most recently used values, at most `entries` of them; thread-safe."""

    entries: int
    _values: OrderedDict[Hashable, _T] = field(default_factory=OrderedDict, init=False, repr=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def get(self, key: Hashable) -> _T | None:
        """Return the value of a key; None if it is not cached."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: Hashable, value: _T) -> _T:
        """Cache a value and return it; the least recently used ones are evicted."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self.entries:
                self._values.popitem(last=False)
        return value

    def __len__(self) -> int:
        return len(self._values)
