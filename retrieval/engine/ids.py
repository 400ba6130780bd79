"""Ids that tell when they were made: UUIDs of version 7 (RFC 9562, 5.7)."""

import math
import secrets
import time
from typing import Final
from uuid import UUID

_VERSION: Final = 7
_VARIANT: Final = 0b10
_TIME_BITS: Final = 80  #: Those below the milliseconds since 1970.


def timed_id() -> UUID:
    """Return a new id: milliseconds, then 74 random bits."""
    milliseconds = time.time_ns() // 1_000_000
    above, below = secrets.randbits(12), secrets.randbits(62)
    return UUID(int=milliseconds << _TIME_BITS | _VERSION << 76 | above << 64 | _VARIANT << 62 | below)


def age_of(made: UUID) -> float:
    """Return the seconds since an id was made, by this machine's clock; infinite for another kind of id."""
    return time.time() - (made.int >> _TIME_BITS) / 1000 if made.version == _VERSION else math.inf
