"""How many searches are at work at once: few, and the others wait for their turn.

Side by side many would all be late, since each takes the processor from the others until its deadline has passed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore
from typing import Final

from django.db import transaction

from retrieval.encoders.session import cores

_FEWEST: Final = 4
_PER_CORE: Final = 2
#: After so long a search begins all the same: late, and with what it can get done.
_LONGEST_WAIT_SECONDS: Final = 15.0

_turns: Final = BoundedSemaphore(max(_FEWEST, _PER_CORE * cores()))


@contextmanager
def search_turn(turns: BoundedSemaphore = _turns, *, wait_seconds: float = _LONGEST_WAIT_SECONDS) -> Iterator[None]:
    """Hold one of the turns; who waits for one keeps no database connection, except inside a transaction."""
    is_held = turns.acquire(blocking=False)
    if not is_held:
        connection = transaction.get_connection()
        if not connection.in_atomic_block:
            connection.close()
        is_held = turns.acquire(timeout=wait_seconds)
    try:
        yield
    finally:
        if is_held:
            turns.release()
