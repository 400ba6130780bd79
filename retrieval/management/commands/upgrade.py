"""`manage.py upgrade --check`: what this version changes in the database."""

from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.utils import timezone

from corecube.checks import require_server
from corecube.commands import CoreCubeCommand
from corecube.health import require_restored
from corecube.version import VERSION
from retrieval.ingest.versions import ingest_version
from retrieval.operations.upgrades import UpgradePlan, upgrade_plan

_MB = 10**6


class Command(CoreCubeCommand):
    """Show what the upgrade to this version changes: migrations, and documents that are read again. Changes nothing."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", required=True, help="only show it")

    def handle(self, *_: Any, **__: Any) -> None:
        require_server()
        require_restored()
        plan = upgrade_plan()
        for lines in (_migrations(plan), _documents(plan), _index(plan), _backup(plan)):
            self.stdout.writelines(f"{it}\n" for it in lines)


def _migrations(plan: UpgradePlan) -> Iterator[str]:
    if not plan.changes:
        yield f"Migrations: none. The database has those of CoreCube {VERSION}."
        return
    names = dict.fromkeys(it.migration for it in plan.changes)
    seconds = sum(it.seconds or 0 for it in plan.changes)
    more = ", and steps whose time is unknown" if any(it.seconds is None for it in plan.changes) else ""
    yield f"Migrations: {len(names)} pending, about {seconds:.0f} s{more}."
    for it in plan.changes:
        size = f" ({it.bytes / _MB:,.1f} MB)" if it.bytes else ""
        yield f"  {it.migration}: {it.what}: {it.effect}{size}"


def _documents(plan: UpgradePlan) -> Iterator[str]:
    if plan.documents is None:
        yield "Documents: unknown before the migrations."
        return
    count = sum(it.documents for it in plan.documents)
    if not count:
        yield f"Documents: all have ingestion version {ingest_version()}."
        return
    seconds = plan.document_seconds
    time = f", about {count * seconds / 60:.0f} minutes of sync" if seconds else ""
    yield f"Documents: the next full sync of each connection reads {count:,} again{time}."
    yield "  Unchanged text is not embedded again."
    for it in plan.documents:
        yield f"  {it.slug}: {it.documents:,} of ingestion version {it.version}"


def _index(plan: UpgradePlan) -> Iterator[str]:
    yield f"Embeddings: {'unknown before the migrations.' if plan.index is None else plan.index or 'nothing to do.'}"


def _backup(plan: UpgradePlan) -> Iterator[str]:
    if plan.last_backup is None:
        yield "Backup: none is known. Make one first: manage.py backup."
        return
    hours = (timezone.now() - plan.last_backup).total_seconds() / 3600
    yield f"Backup: the last good one is {hours:.0f} hours old."
