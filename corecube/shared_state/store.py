"""Small values that are read and changed at once, in memory or in Redis, and the store of this process. Free of Django.

`provide` tells at the start whether there is a Redis; `shared` is the store then.
"""

from collections.abc import Callable, Hashable
from functools import cache
from threading import Lock
from time import monotonic
from typing import Any, Protocol, TypeVar

Value = Any  #: What JSON can hold; None where nothing is stored.

_T = TypeVar("_T")


class Store(Protocol):
    """Holds values by key."""

    def update(self, key: str, change: Callable[[Value, float], tuple[Value, _T]]) -> _T:
        """Replace a value by what `change` makes of it and of the store's time in seconds; return its second result.

        No other process changes the value in between; therefore `change` may run several times, and must not change
        what it gets. None deletes the value, and so do two hours without a change.
        """


class CachingStore(Store, Protocol):
    """A store that also caches what processes compute; it may lose anything at any time."""

    @property
    def is_away(self) -> bool:
        """Whether processes share nothing now, as far as is known."""

    @property
    def problem(self) -> str:
        """Why processes share nothing now; empty if they do."""

    def cached(self, kind: str, key: Hashable) -> Any:  # noqa: ANN401 -- what was cached
        """Return a cached value; None if there is none."""

    def cache(self, kind: str, key: Hashable, value: object, *, seconds: float) -> None:
        """Cache a value for so many seconds."""


class MemoryStore:
    """A store for one process; thread-safe."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._values: dict[str, Value] = {}

    def update(self, key: str, change: Callable[[Value, float], tuple[Value, _T]]) -> _T:
        """Replace a value as `Store.update` does; it stays until it is deleted."""
        with self._lock:
            value, result = change(self._values.get(key), self._clock())
            if value is None:
                self._values.pop(key, None)
            else:
                self._values[key] = value
        return result


_open: Callable[[], CachingStore | None] = lambda: None  # noqa: E731 -- replaced by `provide`


def provide(open_store: Callable[[], CachingStore | None]) -> None:
    """Set what opens the shared store on first use."""
    global _open  # noqa: PLW0603 -- set once, at the start
    _open = cache(open_store)


def shared() -> CachingStore | None:
    """Return the store that processes share; None without Redis."""
    return _open()
