"""`manage.py jobs`: list, show, cancel and retry syncs."""

from argparse import ArgumentParser
from typing import Any, Final
from uuid import UUID

from django.core.management.base import CommandError
from django.utils import timezone

from corecube.commands import DatabaseCommand
from corecube.database import first_or
from retrieval.ingest.jobs import JobState, job_states
from retrieval.ingest.problems import advice
from retrieval.ingest.services import cancel_sync, retry_failed
from retrieval.models import Sync, SyncItem

_MAX_ERRORS: Final = 20


class Command(DatabaseCommand):
    """List the syncs of all connections, newest first, or cancel or retry one."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("job", nargs="?", type=UUID, help="show this one with its errors")
        parser.add_argument("--cancel", type=UUID, metavar="ID", help="cancel a queued or running job")
        parser.add_argument("--retry", type=UUID, metavar="ID", help="queue the failed items of a job")
        parser.add_argument("--open", action="store_true", help="list only queued and running jobs")
        parser.add_argument("--limit", type=int, default=20, metavar="N", help="maximum number of jobs (default: 20)")

    def handle(self, *_: Any, **options: Any) -> None:
        if options["cancel"]:
            self._show(cancel_sync(_sync(options["cancel"]), actor=None))
        elif options["retry"]:
            self._show(retry_failed(_sync(options["retry"]), actor=None))
        elif options["job"]:
            sync = _sync(options["job"])
            self._show(sync)
            failed = sync.items.filter(state=SyncItem.State.FAILED)
            for it in failed[:_MAX_ERRORS]:
                self.stdout.write(f"  {it.external_id}: {it.reason}: {it.message} {advice(it.reason)}".rstrip())
            if (more := failed.count() - _MAX_ERRORS) > 0:
                self.stdout.write(f"  and {more} more")
        else:
            self._list(only_open=options["open"], limit=options["limit"])

    def _list(self, *, only_open: bool, limit: int) -> None:
        syncs = Sync.objects.select_related("connection")
        if only_open:
            syncs = syncs.filter(status__in=Sync.OPEN)
        jobs = job_states(syncs[: max(limit, 0)], timezone.now())
        for job in jobs:
            self.stdout.write(_line(job))
        if not jobs:
            self.stdout.write("There are no jobs.")

    def _show(self, sync: Sync) -> None:
        self.stdout.write(_line(job_states([sync], timezone.now())[0]))


def _sync(pk: UUID) -> Sync:
    return first_or(CommandError(f"There is no job {pk}."), Sync.objects.select_related("connection").filter(pk=pk))


def _line(job: JobState) -> str:
    sync = job.sync
    counts = ("seen", "added", "changed", "unchanged", "deleted", "failed", "chunks")
    words = [
        str(sync.pk),
        f"{job.label:<9}",
        sync.connection.slug,
        "" if sync.kind == Sync.Kind.FULL else sync.get_kind_display().lower(),
        sync.stage,
        ", ".join(f"{count} {name}" for name in counts if (count := getattr(sync, name))),
        f"{job.documents_per_second:.1f} documents/s {job.chunks_per_second:.1f} chunks/s" if sync.chunks else "",
        "; ".join(f"{count} {name}" for name, count in job.items.items()),
        f"{job.chunks_embedded} of {job.chunks_in_hand} chunks embedded" if job.chunks_in_hand else "",
        f"about {job.seconds_left:.0f} s left" if job.seconds_left is not None else "",
        f"{job.retryable} to retry" if job.retryable else "",
        sync.message,
    ]
    return "  ".join(filter(None, words))
