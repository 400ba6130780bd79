"""Writing the records of searches behind their answers: one thread of a web server, several at once.

A record costs as much as a stage of its search, mostly by its own transaction. Reading records in the same process
waits for those that are pending. Elsewhere, in commands, workers and transactions, each is written at once.
"""

import atexit
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from django.db import InterfaceError, OperationalError

from corecube.database import release_connection
from retrieval.index.writer import add_all_later
from retrieval.models import SearchRecord
from retrieval.models.search import reading_records

logger = logging.getLogger(__name__)

#: For which records gather. PostgreSQL, which does not wait for the disk either, may lose as much in a crash.
_GATHER_SECONDS: Final = 0.2
_LIMIT: Final = 1_000  #: Pending records; further ones are written at once.
_WAIT_SECONDS: Final = 10.0  #: For which a reader waits, and the end of the process.
_WRITE_SECONDS: Final = 5.0  #: Time limit of a statement.


@dataclass(eq=False, slots=True)
class PendingRecord:
    """A record that is written soon."""

    id: UUID
    make: Callable[[], SearchRecord]
    writer: "RecordWriter"
    is_stored: bool = False
    ended: threading.Event = field(default_factory=threading.Event)

    def wait(self) -> bool:
        """Have it written now, and return whether it is stored; waits for ten seconds at most."""
        if not self.ended.is_set():
            self.writer.hurry()
            self.ended.wait(_WAIT_SECONDS)
        return self.is_stored


class RecordWriter:
    """Pending records, and the thread that writes them in their order."""

    def __init__(self) -> None:
        self._pending: list[PendingRecord] = []
        self._writing: Sequence[PendingRecord] = ()
        self._changed = threading.Condition()
        self._is_hurried = False
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Write behind from now on, until `end` or the end of the process."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="records", daemon=True)
            self._thread.start()
            reading_records.connect(self.flush)
            atexit.register(self.end)

    def end(self) -> None:
        """Write what is pending, and everything later at once."""
        with self._changed:
            thread, self._thread = self._thread, None
            self._is_hurried = True
            self._changed.notify()
        if thread is not None:
            thread.join(_WAIT_SECONDS)
            reading_records.disconnect(self.flush)
            atexit.unregister(self.end)

    def add(self, record_id: UUID, make: Callable[[], SearchRecord]) -> PendingRecord | None:
        """Have a record made and written soon; None where it must be written at once."""
        with self._changed:
            if self._thread is None or len(self._pending) >= _LIMIT:
                return None
            found = PendingRecord(record_id, make, self)
            self._pending.append(found)
            if len(self._pending) == 1:
                self._changed.notify()
            return found

    def hurry(self) -> None:
        """Have all pending records written without gathering more."""
        with self._changed:
            self._is_hurried = bool(self._pending)
            self._changed.notify()

    def flush(self, **_: object) -> None:
        """Wait until what is pending now is written, for ten seconds at most."""
        with self._changed:
            last = (*self._writing, *self._pending)[-1:]
        for it in last:
            it.wait()

    def _run(self) -> None:
        while self._thread is not None or self._pending:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._thread is None)
                self._changed.wait_for(lambda: self._is_hurried, timeout=_GATHER_SECONDS)
                self._writing, self._pending, self._is_hurried = self._pending, [], False
            if self._writing:
                _write(self._writing)


def _write(batch: Sequence[PendingRecord]) -> None:
    stored: set[PendingRecord] = set()
    try:
        stored = _stored(batch)
    finally:
        for it in batch:
            it.is_stored = it in stored
            it.ended.set()
        release_connection()


def _stored(batch: Sequence[PendingRecord], *, is_again: bool = False) -> set[PendingRecord]:
    """Write records in one transaction, or one by one where that fails, and return those that are stored.

    A lost connection, as after a restart of the database, gets a second try. The log gets no text of a record.
    """
    try:
        add_all_later([it.make() for it in batch], timeout_seconds=_WRITE_SECONDS)
    except (OperationalError, InterfaceError) as error:
        release_connection()
        return _lost(batch, error) if is_again else _stored(batch, is_again=True)
    except Exception as error:  # noqa: BLE001 -- a record that cannot be made takes no other with it either
        if len(batch) == 1:
            return _lost(batch, error)
        # Such as that of a user who was deleted meanwhile.
        return {it for one in batch for it in _stored([one], is_again=is_again)}
    return set(batch)


def _lost(batch: Sequence[PendingRecord], error: Exception) -> set[PendingRecord]:
    for it in batch:
        logger.error("search.unrecorded id=%s error=%s", it.id, type(error.__cause__ or error).__name__)
    return set()


record_writer: Final = RecordWriter()
