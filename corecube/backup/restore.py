"""Restoring a backup."""

from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings
from django.core.management import call_command
from django.db import connection

from corecube.backup import tables
from corecube.backup.manifest import Manifest
from corecube.backup.parts import Parts
from corecube.backup.shelf import Shelf
from corecube.backup.uploads import has_uploads, write_uploads
from corecube.errors import BackupError
from corecube.models import Connection, User
from corecube.only_start import only_start
from corecube.secrets import key_ids, own_key, replace_own_key


@dataclass(frozen=True, slots=True)
class Restored:
    """A backup that was listed, checked or restored."""

    name: str
    manifest: Manifest


def listed(place: str) -> list[Restored]:
    """Return the complete backups of a place, the oldest first; raise BackupError."""
    shelf = Shelf.at(place, settings.CORECUBE_BACKUP_PASSPHRASE)
    return [Restored(name, shelf.manifest(name)) for name in shelf.names()]


def checked(place: str, name: str = "", *, report: Callable[[str], None] = lambda _: None) -> Restored:
    """Read and check every part of a backup, the newest without a name; raise BackupError."""
    shelf = Shelf.at(place, settings.CORECUBE_BACKUP_PASSPHRASE)
    return _checked(shelf, name, report)


def restore(
    place: str,
    name: str = "",
    *,
    replace: bool,
    finish: Callable[[], object],
    report: Callable[[str], None] = lambda _: None,
) -> Restored:
    """Put a backup in place of this installation, which must be empty unless `replace`; raise BackupError.

    Everything is checked before anything is changed. `finish` runs on the restored database. Until the end no other
    process uses the database; after an interruption the same call begins again.
    """
    shelf = Shelf.at(place, settings.CORECUBE_BACKUP_PASSPHRASE)
    with only_start():
        if not replace:
            _require_empty()
        if others := tables.other_sessions():
            raise BackupError(f"{others} other sessions use the database. Stop all web servers, workers and commands.")
        found = _checked(shelf, name, report)
        _require_key(found.manifest)
        _replace(found.manifest, shelf.parts(), report)
        report("indexes")
        finish()
        tables.end_restoring()
    return found


def _checked(shelf: Shelf, name: str, report: Callable[[str], None]) -> Restored:
    names = shelf.names()
    if not names:
        raise BackupError("There is no complete backup.")
    name = name or names[-1]
    manifest, parts = shelf.manifest(name), shelf.parts()
    tables.require_known(manifest.migrations, manifest.version)
    for entry in manifest.files:
        entry.folder()
    for number, part in enumerate(sorted(manifest.parts), start=1):
        report(f"check {number} of {len(manifest.parts)}")
        parts.part(part)
    return Restored(name, manifest)


def _require_empty() -> None:
    """Raise BackupError if the installation has users, connections or uploads, unless a restore was interrupted."""
    with connection.cursor() as cursor:
        existing = set(connection.introspection.table_names(cursor))
    if tables.is_restoring():
        return
    used = (it for it in (User, Connection) if it._meta.db_table in existing)  # noqa: SLF001 -- Django's documented way
    if any(it.objects.exists() for it in used) or has_uploads():
        raise BackupError(
            "This installation has data. With --replace, the backup takes its place and the data is lost."
        )


def _require_key(manifest: Manifest) -> None:
    """Raise BackupError if the secrets in the backup could not be decrypted with the key of the environment."""
    if manifest.key_id not in key_ids() and not (manifest.secret_key and own_key()):
        raise BackupError("SECRET_KEY differs from that of the backup. Set SECRET_KEY to the same value.")


def _replace(manifest: Manifest, parts: Parts, report: Callable[[str], None]) -> None:
    report("schema")
    tables.begin_restoring(manifest.migrations)
    report(f"{manifest.rows} rows")
    tables.write_tables(manifest.tables, manifest.sequences, parts)
    call_command("migrate", interactive=False, verbosity=0, skip_checks=True)
    report(f"{len(manifest.files)} uploads")
    write_uploads(manifest.files, parts)
    if manifest.key_id not in key_ids():
        replace_own_key(manifest.secret_key)
