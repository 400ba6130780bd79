"""When documents were last read: noted in memory, written by one statement every few seconds.

A document counts as read when somebody opens it (its page, the API's document, an agent's fetch) and when a passage of
it reaches a reader: cited in an answer, packed for `recall`. Being a hit does not count: a document would become recent
by being found, and be found because it is recent.
"""

import atexit
import logging
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import Error
from django.utils import timezone

from corecube.database import release_connection
from retrieval.index.writer import Access, write_accesses

logger = logging.getLogger(__name__)

_LIMIT: Final = 10_000  #: Documents buffered while the database cannot be written; more are dropped.


@dataclass
class AccessBuffer:
    """Accesses not yet written; thread-safe."""

    _noted: dict[UUID, Access] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, documents: Iterable[UUID], at: datetime) -> bool:
        """Note that documents were read; return whether the buffer was empty."""
        with self._lock:
            was_empty = not self._noted
            for document in set(documents):
                known = self._noted.get(document)
                if known is not None:
                    self._noted[document] = Access(max(known.at, at), known.times + 1)
                elif len(self._noted) < _LIMIT:
                    self._noted[document] = Access(at, 1)
            return was_empty and bool(self._noted)

    def take(self) -> dict[UUID, Access]:
        """Empty the buffer and return what it held."""
        with self._lock:
            noted, self._noted = self._noted, {}
            return noted


_buffer: Final = AccessBuffer()


def note_accesses(documents: Iterable[UUID]) -> None:
    """Note that somebody reads these documents now; they are written later, in a thread."""
    seconds = settings.CORECUBE_ACCESS_SECONDS
    if seconds and _buffer.note(documents, timezone.now()):
        timer = threading.Timer(seconds, _write_in_thread)
        timer.daemon = True
        timer.start()


def flush_accesses() -> int:
    """Write the buffer and return the number of documents; a failed write is logged and its accesses are lost."""
    noted = _buffer.take()
    try:
        write_accesses(noted)
    except Error:
        logger.warning("accesses.lost documents=%d", len(noted), exc_info=True)
        return 0
    return len(noted)


def _write_in_thread() -> None:
    try:
        flush_accesses()
    finally:
        release_connection()


atexit.register(_write_in_thread)
