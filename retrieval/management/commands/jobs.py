"""`manage.py jobs`: the syncs, how far each is, and what can be done about one."""

from argparse import ArgumentParser
from typing import Any, Final
from uuid import UUID

from django.core.management.base import CommandError
from django.utils import timezone

from corecube.commands import DatabaseCommand
from corecube.errors import CoreCubeError
from retrieval.ingest.jobs import JobState, job_states
from retrieval.ingest.reasons import advice
from retrieval.ingest.services import cancel_sync, retry_failed
from retrieval.models import Sync, SyncItem

_MAX_ERRORS: Final = 20


class Command(DatabaseCommand):
    """List jobs, show one with its errors, cancel one, or try again what failed in one."""

    help = "List the syncs of all connections, newest first, or cancel or retry one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("job", nargs="?", type=UUID, help="show this one with its errors")
        parser.add_argument("--cancel", type=UUID, metavar="ID", help="end one that waits or runs")
        parser.add_argument("--retry", type=UUID, metavar="ID", help="queue what failed in one, and nothing else")
        parser.add_argument("--open", action="store_true", help="list only those that wait or run")
        parser.add_argument("--limit", type=int, default=20, metavar="N", help="jobs to list (default: 20)")

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            if options["cancel"]:
                self._show(cancel_sync(_sync(options["cancel"]), actor=None))
            elif options["retry"]:
                self._show(retry_failed(_sync(options["retry"]), actor=None))
            elif options["job"]:
                self._show(_sync(options["job"]))
                self._errors(_sync(options["job"]))
            else:
                self._list(only_open=options["open"], limit=options["limit"])
        except CoreCubeError as error:
            raise CommandError(str(error)) from error

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

    def _errors(self, sync: Sync) -> None:
        failed = sync.items.filter(state=SyncItem.State.FAILED)
        for item in failed[:_MAX_ERRORS]:
            self.stdout.write(f"  {item.external_id}: {item.reason}: {item.message} {advice(item.reason)}".rstrip())
        if (more := failed.count() - _MAX_ERRORS) > 0:
            self.stdout.write(f"  and {more} more")


def _sync(pk: UUID) -> Sync:
    """Return a sync; raise CommandError when there is none."""
    sync = Sync.objects.select_related("connection").filter(pk=pk).first()
    if sync is None:
        raise CommandError(f"There is no job {pk}.")
    return sync


def _line(job: JobState) -> str:
    """Return a job in one line, in full sentences no longer than a terminal needs."""
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
