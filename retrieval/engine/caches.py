"""Caches: for one second, for values that every search reads, and of the most recently used values. Free of Django."""

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic
from typing import Final, Generic, TypeVar

from corecube.shared_state.store import shared

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
    """The most recently used values, at most `entries` of them, none older than `seconds`; thread-safe.

    With a `kind`, processes share them for `seconds` where there is a shared store.
    """

    entries: int
    seconds: float = math.inf
    kind: str = ""
    clock: Callable[[], float] = monotonic
    #: Time and value, the least recently used first.
    _values: OrderedDict[Hashable, tuple[float, _T]] = field(default_factory=OrderedDict, init=False, repr=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def get(self, key: Hashable) -> _T | None:
        """Return the value of a key; None if it is not cached."""
        with self._lock:
            at, value = self._values.get(key, (-math.inf, None))
            if value is not None and self.clock() - at < self.seconds:
                self._values.move_to_end(key)
                return value
        value = store.cached(self.kind, key) if self.kind and (store := shared()) else None
        return None if value is None else self._keep(key, value)

    def put(self, key: Hashable, value: _T) -> _T:
        """Cache a value and return it; old and the least recently used ones are evicted."""
        if self.kind and (store := shared()):
            store.cache(self.kind, key, value, seconds=self.seconds)
        return self._keep(key, value)

    def _keep(self, key: Hashable, value: _T) -> _T:
        with self._lock:
            now = self.clock()
            self._values[key] = now, value
            self._values.move_to_end(key)
            while len(self._values) > self.entries or now - next(iter(self._values.values()))[0] >= self.seconds:
                self._values.popitem(last=False)
        return value

    def clear(self) -> None:
        """Forget the values of this process."""
        with self._lock:
            self._values.clear()

    def __len__(self) -> int:
        return len(self._values)
