"""Writing the records of searches behind their answers: one thread of a web server, several at once.

A record costs as much as a stage of its search, mostly by its own transaction. Whoever reads records in the same
process waits for those that are pending. Elsewhere, in commands, workers and transactions, each is written at once.
"""

import atexit
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from django.db import Error

from corecube.database import release_connection
from retrieval.index.writer import add_all_later
from retrieval.models import SearchRecord
from retrieval.models.search import reading_records

logger = logging.getLogger(__name__)

#: For which records gather. PostgreSQL, which does not wait for the disk either, may lose as much in a crash.
_GATHER_SECONDS: Final = 0.2
_LIMIT: Final = 1_000  #: Pending records; further ones are written at once.
_WAIT_SECONDS: Final = 10.0  #: For which a reader waits, and the end of the process.


@dataclass(eq=False, slots=True)
class PendingRecord:
    """A record that is written soon."""

    make: Callable[[], SearchRecord]
    writer: "RecordWriter"
    is_stored: bool = False
    ended: threading.Event = field(default_factory=threading.Event)

    def wait(self) -> bool:
        """Have it written now, and return whether it is stored."""
        if not self.ended.is_set():
            self.writer.hurry()
            self.ended.wait(_WAIT_SECONDS)
        return self.is_stored


class RecordWriter:
    """Pending records, and the thread that writes them."""

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

    def add(self, make: Callable[[], SearchRecord]) -> PendingRecord | None:
        """Have a record made and written soon; None where it must be written at once."""
        with self._changed:
            if self._thread is None or len(self._pending) >= _LIMIT:
                return None
            found = PendingRecord(make, self)
            self._pending.append(found)
            if len(self._pending) == 1:
                self._changed.notify()
            return found

    def hurry(self) -> None:
        """Have all pending records written without gathering more."""
        with self._changed:
            self._is_hurried = True
            self._changed.notify()

    def flush(self, **_: object) -> None:
        """Wait until what is pending now is written; longer than ten seconds for none."""
        with self._changed:
            pending = (*self._writing, *self._pending)
        for it in pending:
            it.wait()

    def _run(self) -> None:
        while self._thread is not None or self._pending:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._thread is None)
                self._changed.wait_for(lambda: self._is_hurried, timeout=_GATHER_SECONDS)
                self._writing, self._pending, self._is_hurried = self._pending, [], False
            if self._writing:
                self._write(self._writing)

    def _write(self, batch: Sequence[PendingRecord]) -> None:
        try:
            stored = _stored(batch)
        except Exception:
            logger.exception("search.unrecorded count=%d", len(batch))
            stored = set()
        finally:
            release_connection()
        for it in batch:
            it.is_stored = it in stored
            it.ended.set()


def _stored(batch: Sequence[PendingRecord]) -> set[PendingRecord]:
    """Write records in one transaction, or one by one where that fails, and return those that are stored."""
    rows = {it: it.make() for it in batch}
    try:
        add_all_later(list(rows.values()))
    except Error:
        # Such as that of a user who was deleted meanwhile.
        return {it for it, row in rows.items() if _is_stored(row)}
    return set(batch)


def _is_stored(row: SearchRecord) -> bool:
    try:
        add_all_later([row])
    except Error as error:
        logger.error("search.unrecorded id=%s error=%s", row.pk, type(error).__name__)  # noqa: TRY400
        return False
    return True


record_writer: Final = RecordWriter()
