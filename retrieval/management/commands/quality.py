"""`manage.py quality`: what the quality filter would drop, lowest first."""

from argparse import ArgumentParser
from typing import Any, Final

from django.core.management.base import CommandError

from corecube.commands import DatabaseCommand
from corecube.models import Connection
from retrieval.operations.quality_preview import LowChunk, QualityPreview, live_minimum, preview

_DEFAULT_LIMIT: Final = 20


class Command(DatabaseCommand):
    """Print how many chunks of each connection lie below a threshold, and the lowest of them."""

    help = "Show what the quality filter would drop, connection by connection, the lowest first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--connection", metavar="SLUG", help="only this one (default: all)")
        parser.add_argument(
            "--minimum", type=float, metavar="X", help="threshold from 0 to 1 (default: the one that searches use)"
        )
        parser.add_argument(
            "--limit", type=int, default=_DEFAULT_LIMIT, metavar="N", help="chunks listed for each (default: 20)"
        )

    def handle(self, *_: Any, **options: Any) -> None:
        minimum = live_minimum() if options["minimum"] is None else options["minimum"]
        if not 0 <= minimum <= 1:
            raise CommandError("--minimum is from 0 to 1.")
        if options["limit"] < 0:
            raise CommandError("--limit is 0 or more.")
        for connection in _connections(options["connection"]):
            self.stdout.write(_report(preview(connection, minimum=minimum, limit=options["limit"])))


def _connections(slug: str | None) -> list[Connection]:
    found = list(Connection.objects.filter(slug=slug) if slug else Connection.objects.order_by("slug"))
    if slug and not found:
        raise CommandError(f"There is no connection {slug!r}.")
    return found


def _report(found: QualityPreview) -> str:
    head = f"{found.slug}: {found.dropped} of {found.chunks} chunks below {found.minimum:g}"
    return "\n".join([head, *map(_line, found.lowest)])


def _line(chunk: LowChunk) -> str:
    parts = ", ".join(f"{name} {share:.2f}" for name, share in chunk.parts.items())
    return f"  {chunk.quality:.2f}  {chunk.title} #{chunk.ordinal} ({parts}): {chunk.beginning}"
