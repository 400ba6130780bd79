"""Staying within a service's requests or tokens per minute."""

from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import Final

_MINUTE: Final = 60.0
#: What may go at once after a pause, in seconds of the rate.
_BURST_SECONDS: Final = 10.0


class RateLimit:
    """A bucket that fills at `per_minute` and holds ten seconds of it; safe to share between threads.

    What is taken may exceed what the bucket holds: the taker then waits until it is filled again, and so does everyone
    after. 0 per minute limits nothing.
    """

    def __init__(self, per_minute: float, *, clock: Callable[[], float] = monotonic) -> None:
        self._rate = per_minute / _MINUTE
        self._capacity = self._rate * _BURST_SECONDS
        self._clock = clock
        self._lock = Lock()
        self._held = self._capacity
        self._at = clock()

    def take(self, amount: float) -> float:
        """Take an amount and return the seconds to wait before using it."""
        if not self._rate:
            return 0.0
        with self._lock:
            now = self._clock()
            self._held = min(self._capacity, self._held + (now - self._at) * self._rate) - amount
            self._at = now
            return max(0.0, -self._held / self._rate)
