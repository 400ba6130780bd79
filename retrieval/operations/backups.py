"""Backups of this installation: their content, their schedule, and whether the last one is good."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.utils import timezone

from corecube.backup.create import Request
from corecube.errors import BackupError
from corecube.models import Backup
from retrieval.index.citus import has_shards
from retrieval.models import EmbeddingIndex

#: They follow transactions of this database and are made anew after a restore.
_LEFT_OUT: Final = ("retrieval.OutboxEntry", "retrieval.ReadModel")
_RETRY: Final = timedelta(hours=1)  #: Until another attempt after a failed one.
#: Of its time, a backup works so much and leaves the rest to searches.
_SHARE: Final = 0.1
_GRACE: Final = 1.5  #: A backup is overdue after so many intervals.


@dataclass(frozen=True, slots=True)
class BackupStatus:
    """The last backups to the configured place."""

    is_scheduled: bool
    last_good: Backup | None
    latest: Backup | None  #: The latest that has ended, good or not.
    now: datetime

    @property
    def problem(self) -> str:
        """What an admin should know of; empty without a problem, and without scheduled backups."""
        if not self.is_scheduled:
            return ""
        if self.latest and self.latest.problem:
            return f"The last backup failed: {self.latest.problem}"
        if self.last_good and self.now - self.last_good.started_at > _GRACE * _interval():
            return "The last backup is overdue: is a worker running?"
        return ""


def backup_request(place: str = "", keep: int = 0, *, is_fast: bool = False) -> Request:
    """Return a request for a backup, by default as configured; raise BackupError if none can be made.

    A fast one does not rest for the sake of searches.
    """
    place = place or settings.CORECUBE_BACKUP_TO
    if not place:
        raise BackupError("Name a folder or s3://bucket/prefix, or set CORECUBE_BACKUP_TO.")
    if has_shards():
        raise BackupError("The documents are distributed over several machines: back these up with PostgreSQL's tools.")
    models = EmbeddingIndex.objects.order_by("pk").values_list("model", flat=True)
    return Request(
        place=place,
        keep=keep or settings.CORECUBE_BACKUP_KEEP,
        left_out=_LEFT_OUT,
        models=tuple(dict.fromkeys(models)),
        share=1.0 if is_fast else _SHARE,
    )


def backup_status() -> BackupStatus:
    """Return the state of the backups to the configured place, or to any place without one."""
    place = settings.CORECUBE_BACKUP_TO
    ended = Backup.objects.filter(finished_at__isnull=False, **({"place": place} if place else {}))
    return BackupStatus(bool(place), ended.filter(problem="").first(), ended.first(), timezone.now())


def is_backup_due() -> bool:
    """Return whether a scheduled backup should begin now."""
    found = backup_status()
    if not found.is_scheduled:
        return False
    if found.latest and found.latest.problem and found.now - found.latest.started_at < min(_RETRY, _interval()):
        return False
    return not found.last_good or found.now - found.last_good.started_at >= _interval()


def _interval() -> timedelta:
    return timedelta(hours=settings.CORECUBE_BACKUP_EVERY_HOURS)
