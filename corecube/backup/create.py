"""Making a backup."""

import logging
import socket
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.db import connection
from django.utils import timezone

from corecube.backup import tables
from corecube.backup.manifest import FORMAT, Manifest
from corecube.backup.parts import Parts
from corecube.backup.shelf import Shelf
from corecube.backup.uploads import Uploads, preserved_uploads
from corecube.errors import ConflictError, CoreCubeError
from corecube.health import database_facts
from corecube.models import Backup, Connection
from corecube.secrets import key_ids, own_key
from corecube.version import VERSION

logger = logging.getLogger(__name__)

#: Not part of a backup: sessions, as users sign in again, the list of backups, and what runs where.
LEFT_OUT: Final = frozenset({"sessions.Session", "corecube.Backup", "corecube.KeyUse"})
_LOCK: Final = 7_310  #: Key of the advisory lock of the only backup that runs.
_INTERRUPTED: Final = "It was interrupted."


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a backup contains and where it goes."""

    place: str
    keep: int  #: Newest backups that remain, at least 1.
    left_out: Collection[str] = ()  #: Labels of further models that are not part of it.
    models: tuple[str, ...] = ()  #: Names of the models that restoring it requires.
    share: float = 1.0  #: Of the time that it works, above 0 to 1; it rests in between, for searches.


def back_up(request: Request, *, report: Callable[[str], None] = lambda _: None) -> Backup:
    """Make a backup, check it, and delete old ones; raise BackupError, ConflictError while another one is running."""
    with _only_backup():
        Backup.objects.filter(finished_at=None).update(finished_at=timezone.now(), problem=_INTERRUPTED)
        row = Backup.objects.create(place=request.place, host=socket.gethostname())
        try:
            _make(row, request, report)
        except BaseException as error:
            row.problem = str(error) if isinstance(error, CoreCubeError) else f"{_INTERRUPTED} ({type(error).__name__})"
            raise
        finally:
            row.finished_at = timezone.now()
            row.save()
    logger.info("backup.done place=%s name=%s bytes=%d added=%d", row.place, row.name, row.size, row.added)
    return row


def _make(row: Backup, request: Request, report: Callable[[str], None]) -> None:
    shelf = Shelf.at(request.place, settings.CORECUBE_BACKUP_PASSPHRASE, is_new=True)
    shelf.require_ours()
    parts = shelf.parts(request.share)
    parts.look()
    manifest = _stored(request, parts, report)
    report("check")
    parts.check(manifest.parts)
    row.name, row.size, row.added = shelf.add(manifest), manifest.size, parts.written_bytes
    for name in shelf.retain(request.keep):
        logger.info("backup.deleted place=%s name=%s", request.place, name)


def _stored(request: Request, parts: Parts, report: Callable[[str], None]) -> Manifest:
    with preserved_uploads() as uploads:
        uploads.link()
        with tables.one_moment():
            database = _database(request, uploads, parts, report)
        return Manifest(
            **database,
            format=FORMAT,
            version=VERSION,
            key_id=key_ids()[0],
            secret_key=own_key(),
            models=request.models,
            files=uploads.store(parts, report=report),
        )


def _database(request: Request, uploads: Uploads, parts: Parts, report: Callable[[str], None]) -> dict[str, Any]:
    made_at = timezone.now()
    connections = list(Connection.objects.values_list("pk", flat=True))
    uploads.link()
    uploads.leave_out(connections)
    found = tables.all_tables({*LEFT_OUT, *request.left_out})
    entries = []
    for table in found:
        report(f"table {table.name}")
        entries.append(tables.read_table(table, parts))
    return {
        "made_at": made_at,
        "postgresql": database_facts().server,
        "migrations": tables.read_migrations(),
        "tables": tuple(entries),
        "sequences": tuple(tables.read_sequences(found)),
    }


@contextmanager
def _only_backup() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK])
        if cursor.fetchone() != (True,):
            raise ConflictError("Another backup of this installation is running.")
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])
